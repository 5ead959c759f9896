#!/bin/bash
# usage: demo.sh SKBTRAIL                    record the demo and show its reports (root)
#        demo.sh --record SKBTRAIL CAPTURE   only record, into that file (root)
#        demo.sh --show SKBTRAIL CAPTURE     show the reports of a capture
#        demo.sh --traffic ADDRESS FOLDER    the workload, in the client's namespace
# Two network namespaces joined by a veth pair; nginx with two workers in one, wrk and a little UDP in
# the other, a few seconds of both. Exit status 77: this machine does not allow it; the reason is on
# standard error. Whatever happens, processes, namespaces and files of the demo are gone afterwards.
set -euo pipefail

readonly server=skbtrail-demo-sv-$$ client=skbtrail-demo-cl-$$
readonly address=192.0.2.1 # TEST-NET-1: routed nowhere
readonly web_port=80 udp_port=5201 closed_port=9
folder='' # all files of the demo

say() { printf 'demo: %s\n' "$*" >&2; }

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

# --- the network and its server ---------------------------------------------------------------------

# Processes of the demo's namespaces are the demo's: nobody else knows these names.
stop_processes() {
  local namespace pid
  for namespace in "$server" "$client"; do
    for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill -s "$1" "$pid" 2>/dev/null || true; done
  done
}

processes_left() { [[ $(ip netns pids "$server" 2>/dev/null; ip netns pids "$client" 2>/dev/null) ]]; }

# wait_until SECONDS COMMAND...: polls until COMMAND succeeds.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

clean_up() {
  trap '' INT TERM HUP
  stop_processes TERM
  wait_until 3 none_left || stop_processes KILL
  ip netns del "$server" 2>/dev/null || true
  ip netns del "$client" 2>/dev/null || true
  [[ ! $folder ]] || rm -rf "$folder"
}
none_left() { ! processes_left; }

refuse() {
  say "cannot record here: $*"
  exit 77
}

# Instances are what skbtrail records into; a container may have tracefs and still refuse them.
check_tracefs() {
  local probe=/sys/kernel/tracing/instances/skbtrail-demo-$$ message
  message=$(mkdir "$probe" 2>&1) || refuse "tracefs makes no instance: ${message#mkdir: }"
  rmdir "$probe"
}

# Without IPv6 there is nothing but the demo's own packets.
quiet() {
  ip netns exec "$1" sh -c 'cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0
    echo 1 >all/disable_ipv6; echo 1 >default/disable_ipv6'
}

make_network() {
  local message
  message=$(ip netns add "$server" 2>&1 && ip netns add "$client" 2>&1) ||
    refuse "no network namespace can be made: $message"
  message=$(ip netns exec "$client" true 2>&1) ||
    refuse "no process can enter a network namespace: $message"
  message=$(ip link add veth-client netns "$client" type veth \
    peer name veth-server netns "$server" 2>&1) || refuse "no veth pair can be made: $message"
  quiet "$server"
  quiet "$client"
  ip -n "$server" address add "$address/24" dev veth-server
  ip -n "$client" address add 192.0.2.2/24 dev veth-client
  ip -n "$server" link set veth-server up
  ip -n "$client" link set veth-client up
}

start_servers() {
  cat >"$folder/nginx.conf" <<NGINX
worker_processes 2;
daemon off;
pid $folder/nginx.pid;
error_log $folder/nginx.log;
events { worker_connections 64; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path $folder/body;
  proxy_temp_path $folder/proxy;
  fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi;
  scgi_temp_path $folder/scgi;
  server {
    listen $address:$web_port reuseport;
    default_type text/plain;
    location / { return 200 "hello from the other side of the veth pair\n"; }
  }
}
NGINX
  ip netns exec "$server" nginx -e "$folder/nginx.log" -c "$folder/nginx.conf" &
  ip netns exec "$server" iperf3 --server --one-off --port $udp_port >"$folder/iperf3.log" 2>&1 &
  wait_until 5 answers $web_port || {
    cat "$folder/nginx.log" >&2 || true
    say "nginx does not answer"
    exit 1
  }
  wait_until 5 listens $udp_port || {
    cat "$folder/iperf3.log" >&2
    say "iperf3 does not listen"
    exit 1
  }
}
answers() { ip netns exec "$client" bash -c "exec 3<>/dev/tcp/$address/$1" 2>/dev/null; }
# iperf3 --one-off would take a connection for its one client.
listens() { [[ $(ip netns exec "$server" ss --no-header --listening --tcp "sport = :$1") ]]; }

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

set_up() {
  check_tracefs
  folder=$(mktemp -d)
  # SIGINT and SIGTERM end the script; the EXIT trap then cleans up.
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  make_network
  start_servers
}

case ${1:-} in
  --show) show_reports "$2" "$3" ;;
  --traffic) traffic "$2" "$3" ;;
  --record)
    set_up
    record "$2" "$3"
    ;;
  *)
    set_up
    record "$1" "$folder/trace.dat"
    show_reports "$1" "$folder/trace.dat"
    ;;
esac
