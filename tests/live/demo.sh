#!/bin/bash
# usage: demo.sh SKBTRAIL                    record the demo and show its reports (root)
#        demo.sh --record SKBTRAIL CAPTURE   only record, into that file (root)
#        demo.sh --show SKBTRAIL CAPTURE     show the reports of a capture
#        demo.sh --traffic ADDRESS FOLDER    the workload, in the client's namespace
# Two network namespaces joined by a veth pair; nginx with two workers in one, wrk and a little UDP in
# the other, a few seconds of both. Exit status 77: this machine does not allow it; the reason is on
# standard error. Whatever happens, processes, namespaces and files of the demo are gone afterwards.
set -euo pipefail

readonly closed_port=9 purpose=demo
# shellcheck source=tests/live/two_namespaces.bash
source "$(dirname "$(realpath "$0")")/two_namespaces.bash"

say() { printf 'demo: %s\n' "$*" >&2; }
refuse() {
  say "cannot record here: $*"
  exit 77
}

# --- reports ----------------------------------------------------------------------------------------

# show LINES COMMAND...: runs it, headed by what the reader would type.
show() {
  local lines=$1
  shift
  printf '\n$ skbtrail %s\n' "${*:2}"
  # sed reads to the end: the report must not see a closed pipe.
  "$@" | sed -n "1,${lines}p"
}

show_reports() {
  local skbtrail
  skbtrail=$(realpath "$1")
  cd "$(dirname "$2")"
  local capture=${2##*/}
  show 40 "$skbtrail" netdev-times rx -i "$capture"
  show 15 "$skbtrail" netdev-times tx -i "$capture"
  show '$' "$skbtrail" report "$capture"
}

# Instances are what skbtrail records into; a container may have tracefs and still refuse them.
check_tracefs() {
  local probe=/sys/kernel/tracing/instances/skbtrail-demo-$$ message
  message=$(mkdir "$probe" 2>&1) || refuse "tracefs makes no instance: ${message#mkdir: }"
  rmdir "$probe"
}

# --- the workload -----------------------------------------------------------------------------------

# A millisecond between a connection's requests: enough traffic for every report, and a tracer on a
# small machine keeps up with it.
traffic() {
  local to=$1 files=$2 udp i
  echo 'function delay() return 1 end' >"$files/pace.lua"
  iperf3 --client "$to" --port $udp_port --udp --bitrate 4M --length 1000 --time 2 \
    >"$files/iperf3-client.log" 2>&1 &
  udp=$!
  wrk --threads 2 --connections 8 --duration 3s --script "$files/pace.lua" "http://$to:$web_port/" >&2
  # Nobody listens there: drops for the report to explain.
  for i in 1 2 3 4 5; do { echo "$i" >"/dev/udp/$to/$closed_port"; } 2>/dev/null || true; done
  wait "$udp" || {
    cat "$files/iperf3-client.log" >&2
    return 1
  }
}

# record SKBTRAIL CAPTURE, in the capture's folder: what skbtrail says names no temporary folder.
record() {
  local skbtrail self status=0
  skbtrail=$(realpath "$1") self=$(realpath "$0")
  cd "$(dirname "$2")"
  say "recording nginx and wrk over a veth pair, and a little UDP, for three seconds"
  "$skbtrail" record -o "${2##*/}" --profile net -- \
    ip netns exec "$client" "$self" --traffic "$address" "$folder" || status=$?
  ((status != 3 && status != 4)) || refuse "see the message above"
  return "$status"
}

case ${1:-} in
  --show) show_reports "$2" "$3" ;;
  --traffic) traffic "$2" "$3" ;;
  --record)
    check_tracefs
    set_up
    record "$2" "$3"
    ;;
  *)
    check_tracefs
    set_up
    record "$1" "$folder/trace.dat"
    show_reports "$1" "$folder/trace.dat"
    ;;
esac
