#!/bin/bash
# usage: scenario.sh NAME            runs a scenario in a guest, results in /out/NAME
#        scenario.sh --inside NAME   its traffic, with the ground truth around it: what is recorded
#        scenario.sh --clean-up      ends every process and namespace of scenarios
# A scenario is a file that may set `network`, `options` (of skbtrail record), `beside` (whether
# trace-cmd records too), and define functions: prepare (servers, before recording), traffic, and
# run, which replaces all of it. Its function check runs outside the guest.
set -euo pipefail
source /vm/networks.sh

clean_up() {
  local namespace pid
  for namespace in $(ip netns list | cut -d ' ' -f 1); do
    for pid in $(ip netns pids "$namespace"); do kill -KILL "$pid" || true; done
    ip netns del "$namespace"
  done
  rm -rf /tmp/*
}

# --- ground truth -----------------------------------------------------------------------------------

# tid, voluntary and involuntary switches of every task in the namespaces of the scenario.
switches() {
  local namespace pid
  for namespace in $(ip netns list | cut -d ' ' -f 1); do
    for pid in $(ip netns pids "$namespace"); do
      awk '/^Name:/ { name = $2 } /^Pid:/ { pid = $2 } /ctxt_switches:/ { n[++i] = $2 }
           END { print pid, name, n[1], n[2] }' "/proc/$pid/status" || true
    done
  done
}

counters() {
  local to=/out/$name/$1 namespace
  mkdir -p "$to"
  for namespace in $(ip netns list | cut -d ' ' -f 1); do
    ip netns exec "$namespace" bash -c 'cat /proc/net/dev >"$0.dev"; cat /proc/net/snmp >"$0.snmp"
      tc -s qdisc show >"$0.qdisc"' "$to/$namespace"
  done
  cat /proc/net/dev >"$to/root.dev"
  cat /proc/net/snmp >"$to/root.snmp"
  cp /proc/interrupts /proc/softirqs /proc/net/softnet_stat "$to"
}

# What is recorded. Counters are read while no packet is on its way.
inside() {
  sleep 0.2
  counters before
  switches >"/out/$name/switches.before"
  traffic >"/out/$name/traffic.out" 2>&1
  sleep 0.5 # what is on its way arrives, and sent packets are freed
  switches >"/out/$name/switches.after"
  counters after
  sleep 0.1
}

# --- recording --------------------------------------------------------------------------------------

# Its status in a file: trace-cmd does not pass it on.
record_with_skbtrail() {
  local status=0
  skbtrail record -o "/out/$name/skbtrail.dat" "${options[@]}" -- bash /vm/scenario.sh --inside "$name" \
    2>"/out/$name/skbtrail.err" || status=$?
  echo "$status" >"/out/$name/skbtrail.status"
}

# The same packets in an instance of trace-cmd, started before skbtrail and stopped after it.
record_with_both() {
  local events=() event
  for event in net:net_dev_queue net:net_dev_xmit net:netif_receive_skb skb:kfree_skb skb:consume_skb \
    napi:napi_poll; do
    events+=(-e "$event")
  done
  trace-cmd record -o "/out/$name/tracecmd.dat" -B beside -C mono -b 8192 "${events[@]}" \
    bash /vm/scenario.sh --record "$name" >"/out/$name/tracecmd.log" 2>&1
}

run() {
  if ((beside)); then record_with_both; else record_with_skbtrail; fi
  return "$(<"/out/$name/skbtrail.status")"
}

network=none
options=()
beside=1
prepare() { :; }

case $1 in
  --clean-up) clean_up 2>/dev/null ;;
  --inside | --record)
    readonly name=$2
    source "/vm/scenarios/$name.sh"
    if [[ $1 == --inside ]]; then inside; else record_with_skbtrail; fi
    ;;
  *)
    readonly name=$1
    mkdir -p "/out/$name"
    source "/vm/scenarios/$name.sh"
    "network_$network"
    prepare
    run
    ;;
esac
