#!/bin/bash
# usage: load.sh SECONDS COMMAND [ARGUMENT...]
# Runs COMMAND while two network namespaces joined by a veth pair talk to each other as fast as they can
# for SECONDS: nginx and wrk over TCP, iperf3 over UDP. The command that makes the client's traffic is put
# behind the ARGUMENTs, for COMMAND to run it, as `skbtrail record ... --` and `perf record ... --` do.
# Root. Processes, namespaces and files of the load are gone afterwards. Exit status 77: this machine does
# not allow it; the reason is on standard error.
set -euo pipefail

readonly purpose=bench
# shellcheck source=tests/live/two_namespaces.bash
source "$(dirname "$(realpath "$0")")/../live/two_namespaces.bash"

say() { printf 'load: %s\n' "$*" >&2; }
refuse() {
  say "no load can be made here: $*"
  exit 77
}

# In the client's namespace.
traffic() {
  local seconds=$1 log=$2/client.log udp
  iperf3 --client "$address" --udp --bitrate 100M --length 1000 --time "$seconds" >"$log" 2>&1 &
  udp=$!
  wrk --threads 2 --connections 16 --duration "${seconds}s" "http://$address/" >>"$log" 2>&1
  wait "$udp" || say "iperf3 failed: $(cat "$log")"
}

if [[ $1 == --traffic ]]; then
  traffic "$2" "$3"
else
  seconds=$1
  shift
  set_up
  "$@" ip netns exec "$client" "$(realpath "$0")" --traffic "$seconds" "$folder"
fi
