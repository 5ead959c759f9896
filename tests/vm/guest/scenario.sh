#!/bin/bash
# usage: scenario.sh NAME            runs a scenario in a guest, results in /out/NAME
#        scenario.sh --inside NAME   its traffic, with the ground truth around it: what is recorded
#        scenario.sh --clean-up      ends every process and namespace of scenarios
# A scenario is a file that may set `network`, `once` (run.sh), `options` (of skbtrail record), `beside`
# (whether trace-cmd records too), `disorder` (1: the packet oracle, which goes by the order of arrival,
# does not know what is right), and define functions: prepare (servers, before recording), traffic,
# and record, which replaces the recording, or run, which replaces all of it. Its function check runs
# outside the guest. Exit status 77: this kernel cannot do it, and the last line says what it lacks.
set -euo pipefail
source /vm/networks.sh

# A namespace gives its NICs back some time after it was deleted.
wait_for_device() {
  local i
  for i in {1..100}; do
    if [[ -e /sys/class/net/$1 ]]; then return 0; fi
    doze 0.05
  done
}

clean_up() {
  local namespace nic offload
  for namespace in $(namespace_names); do
    # shellcheck disable=SC2046 # a word each
    kill -KILL $(processes_of "$namespace") || true
    echo "netns del $namespace"
  done | ip -batch -
  # A NIC comes back from its namespace with what a scenario made of it.
  for nic in n0 n1; do
    wait_for_device "$nic"
    echo 0 >"/sys/class/net/$nic/threaded"
    echo 0 >"/sys/class/net/$nic/queues/rx-0/rps_cpus"
  done
  while read -r nic offload; do
    [[ ! -e /sys/class/net/$nic ]] || ethtool -K "$nic" "$offload" on || true
  done < <(cat /run/switched_off 2>/dev/null)
  echo 0 | tee /proc/sys/net/core/busy_{read,poll} >/dev/null
  rm -rf /tmp/* /run/switched_off
}

# --- ground truth -----------------------------------------------------------------------------------

# Counters are read while recording: by few processes, or the capture is full of them.

# remember_tasks: those of the namespaces now, for switches; the holders sleep.
remember_tasks() {
  local namespace process
  for namespace in $(namespace_names); do
    for process in $(processes_of "$namespace"); do
      [[ $process == "${holders[$namespace]}" ]] || echo "/proc/$process/status"
    done
  done >/run/tasks
}

# tid, name, voluntary and involuntary switches of the tasks.
switches() {
  local tasks
  mapfile -t tasks </run/tasks
  ((${#tasks[@]} > 0)) || return 0
  awk '/^Name:/ { name = $2 } /^Pid:/ { pid = $2 } /^voluntary/ { voluntary = $2 }
       /^nonvoluntary/ { print pid, name, voluntary, $2 }' "${tasks[@]}" 2>/dev/null || true
}

counters() {
  local to=/out/$name/$1 namespace pid file files=()
  mkdir -p "$to"
  for file in interrupts softirqs net/softnet_stat; do
    files+=("to=$to/${file##*/}" "/proc/$file")
  done
  files+=("to=$to/root.dev" /proc/net/dev "to=$to/root.snmp" /proc/net/{snmp,netstat})
  while read -r namespace pid; do
    files+=("to=$to/$namespace.dev" "/proc/$pid/net/dev")
    files+=("to=$to/$namespace.snmp" "/proc/$pid/net/"{snmp,netstat})
  done </run/holders
  awk '{ print >to }' "${files[@]}"
}

qdiscs() {
  local namespace
  mkdir -p "/out/$name/$1"
  for namespace in $(namespace_names); do
    tc -n "$namespace" -s qdisc show >"/out/$name/$1/$namespace.qdisc"
  done
}

# Until no CPU has handled a packet for 0.25 s: longer than a delayed ACK takes.
settle() {
  local before=() now=() i
  for i in {1..40}; do
    mapfile -t now </proc/net/softnet_stat
    if ((i > 1)) && [[ ${now[*]} == "${before[*]}" ]]; then return 0; fi
    before=("${now[@]}")
    doze 0.25
  done
  echo 'packets without end' >&2
  return 1
}

# What is recorded. Counters are read while no packet is on its way.
inside() {
  counters before
  switches >"/out/$name/switches.before"
  traffic >"/out/$name/traffic.out" 2>&1
  settle
  switches >"/out/$name/switches.after"
  counters after
}

# --- recording --------------------------------------------------------------------------------------

# Its status in a file: trace-cmd does not pass it on.
record_with_skbtrail() {
  local status=0
  echo "skbtrail record${options[*]:+ ${options[*]}}" >"/out/$name/options"
  skbtrail record -o "/out/$name/skbtrail.dat" "${options[@]}" -- bash /vm/scenario.sh --inside "$name" \
    2>"/out/$name/skbtrail.err" || status=$?
  echo "$status" >"/out/$name/skbtrail.status"
}

# record_with_tracecmd OPTION...: and nobody else. Its size is said: on 6.1 the top buffer may have
# stayed at two pages when an instance was used before it.
record_with_tracecmd() {
  echo "trace-cmd record -b 2048 $*" >"/out/$name/options"
  trace-cmd record -o "/out/$name/tracecmd.dat" -b 2048 "$@" bash /vm/scenario.sh --inside "$name" \
    >"/out/$name/tracecmd.log" 2>&1
}

# lacks REASON: the scenario is skipped on this kernel.
lacks() {
  echo "$*"
  exit 77
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

record() {
  if ((beside)); then record_with_both; else record_with_skbtrail; fi
  return "$(<"/out/$name/skbtrail.status")"
}

run() {
  remember_tasks
  settle
  qdiscs before
  record
  qdiscs after
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
    uname -r >"/out/$name/kernel"
    : >/run/holders
    [[ -p /run/never ]] || mkfifo /run/never
    source "/vm/scenarios/$name.sh"
    "network_$network"
    hold_namespaces
    prepare
    run
    ;;
esac
