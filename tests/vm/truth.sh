#!/bin/bash
# usage: truth.sh RESULTS      RESULTS is build/vm/KERNEL/SCENARIO
# Prints, as JSON, what is known about a scenario's run from anyone but skbtrail's readers: the
# kernel's counters before and after, the workload's own figures, the ring buffer's account of its
# events. Differences are after minus before. The same results give the same text, byte by byte.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here

# table JQ: every line of standard input through a jq program, $f its fields, as one array.
table() { jq -Rnc "[inputs | split(\"\t\") as \$f | $1]"; }

# both NAME: the files NAME of before/ and after/, for an awk that compares them.
both() { printf '%s\n' "$results/before/$1" "$results/after/$1"; }

namespaces() { (cd "$results/after" && printf '%s\n' *.dev | sed 's/\.dev$//'); }

# --- the recording ----------------------------------------------------------------------------------

# The first comment of the scenario, and its network.
scenario_about() { sed -n '2s/^# *//p; 3,/^[^#]/s/^# *//p' "$script" | paste -sd ' '; }
scenario_network() (
  network=none
  source "$script"
  echo "$network"
)

# summary WHAT CPUS: events or lost, as the summary of skbtrail record gives them, a line like
# "  events    151,575, 47,797/s". trace-cmd has none: what the ring buffer says of all CPUs.
summary() {
  if [[ -e $results/skbtrail.err ]]; then
    sed -nE "s/^  $1 +([0-9,]*[0-9]).*/\1/p" "$results/skbtrail.err" | tr -d ,
  else
    jq "[.[].$1] | add" <<<"$2"
  fi
}

# per_cpu/cpuN/stats of the recorded instances when tracing had stopped; trace-cmd asks before it
# reads the rest. Lost is what the buffer overwrote, what it had no room for, and what did not fit
# into a page that was being written.
ring_buffers() {
  trace-cmd report --stat -i "$capture" 2>/dev/null |
    awk '/^CPU: / { cpu = $2 }
      /^(overrun|commit overrun|dropped events): / { lost[cpu] += $NF }
      /^(entries|read events): / { read[cpu] += $NF }
      END { for (cpu = 0; cpu in read; ++cpu) printf "%s\t%s\t%s\n", cpu, read[cpu], lost[cpu] }' |
    table '{cpu: $f[0] | tonumber, events: $f[1] | tonumber, lost: $f[2] | tonumber}'
}

# As it was asked for; skbtrail's own choice is mono.
clock() {
  local found
  found=$(grep -oE -- '(--clock|-C) [a-z0-9_-]+' "$results/options" | head -n 1)
  found=${found:-mono}
  echo "${found##* }"
}

# --- the kernel's counters --------------------------------------------------------------------------

# /proc/net/dev: after "name:", 8 columns of receiving and 8 of sending. Bytes and packets of each,
# and its drops. Devices that saw nothing are left out.
devices() {
  local namespace
  for namespace in $(namespaces); do
    mapfile -t files < <(both "$namespace.dev")
    awk -v namespace="$namespace" -v OFS='\t' '
      FNR <= 2 { next }
      { sub(":", " "); for (i = 2; i <= 17; ++i) { if (NR == FNR) old[$1, i] = $i; else $i -= old[$1, i] } }
      NR != FNR && $2 + $3 + $5 + $10 + $11 + $13 > 0 { print namespace, $1, $2, $3, $5, $10, $11, $13 }
    ' "${files[@]}"
  done |
    table '{namespace: $f[0], device: $f[1]} + ([["rx_bytes", "rx_packets", "rx_dropped", "tx_bytes",
      "tx_packets", "tx_dropped"], ($f[2:] | map(tonumber))] | transpose
      | map({key: .[0], value: .[1]}) | from_entries)'
}

# /proc/net/snmp: a line of names and a line of values per protocol. Tcp CurrEstab and the like are
# levels, not counters; a level that changed is in here too.
snmp() {
  local namespace
  for namespace in $(namespaces); do
    mapfile -t files < <(both "$namespace.snmp")
    awk -v namespace="$namespace" -v OFS='\t' '
      $2 !~ /^-?[0-9]+$/ { for (i = 2; i <= NF; ++i) name[$1, i] = $i; next }
      { for (i = 2; i <= NF; ++i) {
          if (NR == FNR) old[$1, name[$1, i]] = $i
          else if ($i != old[$1, name[$1, i]]) print namespace, $1, name[$1, i], $i - old[$1, name[$1, i]]
        } }
    ' "${files[@]}"
  done |
    table '{namespace: $f[0], name: (($f[1] | rtrimstr(":")) + "." + $f[2]), value: $f[3] | tonumber}' |
    jq -c 'reduce .[] as $one ({}; .[$one.namespace][$one.name] = $one.value)'
}

# /proc/net/softnet_stat: a line of hexadecimal columns per CPU (softnet_seq_show(),
# net/core/net-procfs.c): processed, dropped, time_squeeze, ..., received_rps is the tenth.
softnet() {
  local cpu=0 old new columns=(processed dropped time_squeeze) i
  while read -r -u 3 -a old && read -r -u 4 -a new; do
    printf '%s' "$cpu"
    for ((i = 0; i < ${#columns[@]}; ++i)); do printf '\t%s' $((16#${new[i]} - 16#${old[i]})); done
    printf '\t%s\n' $((16#${new[9]} - 16#${old[9]}))
    cpu=$((cpu + 1))
  done 3<"$results/before/softnet_stat" 4<"$results/after/softnet_stat" |
    table '{cpu: $f[0] | tonumber, processed: $f[1] | tonumber, dropped: $f[2] | tonumber,
      time_squeeze: $f[3] | tonumber, received_rps: $f[4] | tonumber}'
}

# per_cpu FILE PATTERN: lines "KEY: N N ... REST" that match, as "KEY REST N N".
per_cpu() {
  mapfile -t files < <(both "$1")
  awk -v pattern="$2" -v OFS='\t' '
    FNR == 1 { cpus = NF; next }
    $0 !~ pattern { next }
    { key = $1; sub(":$", "", key); name = $NF; line = ""
      for (i = 2; i <= cpus + 1; ++i) { if (NR == FNR) old[key, i] = $i; else line = line OFS $i - old[key, i] }
      if (NR != FNR) print key, name line }
  ' "${files[@]}"
}
# Every vector of a NIC has its own line, named after its driver's device: "virtio1-input.0".
interrupts() {
  per_cpu interrupts ' virtio[0-9]+-(input|output)\.' |
    table '{irq: $f[0] | tonumber, name: $f[1], cpus: ($f[2:] | map(tonumber))}'
}
softirqs() {
  per_cpu softirqs '^ *[A-Z_]+:' | table '{key: $f[0], value: ($f[2:] | map(tonumber))}' |
    jq -c 'map(select(.value | add > 0)) | from_entries'
}

# tc -s qdisc show: "qdisc KIND HANDLE dev DEVICE ..." and a line with "(dropped N, ".
queue_drops() {
  local namespace
  for namespace in $(namespaces); do
    [[ -e $results/after/$namespace.qdisc ]] || continue
    mapfile -t files < <(both "$namespace.qdisc")
    awk -v namespace="$namespace" -v OFS='\t' '
      /^qdisc / { kind = $2; for (i = 1; i < NF; ++i) if ($i == "dev") device = $(i + 1) }
      match($0, /\(dropped [0-9]+/) {
        n = substr($0, RSTART + 9, RLENGTH - 9)
        if (NR == FNR) old[device, kind] += n; else drops[device OFS kind] += n - old[device, kind] }
      END { for (key in drops) if (drops[key] > 0) print namespace, key, drops[key] }
    ' "${files[@]}" | sort
  done | table '{namespace: $f[0], device: $f[1], kind: $f[2], dropped: $f[3] | tonumber}'
}

# "TID NAME VOLUNTARY INVOLUNTARY" of tasks that were there at both ends.
workers() {
  awk -v OFS='\t' 'FILENAME == ARGV[1] { voluntary[$1] = $3; involuntary[$1] = $4; next }
    $1 in voluntary { print $1, $2, $3 - voluntary[$1], $4 - involuntary[$1] }' \
    "$results/switches.before" "$results/switches.after" | sort -n |
    table '{pid: $f[0] | tonumber, comm: $f[1], voluntary: $f[2] | tonumber, involuntary: $f[3] | tonumber}'
}

# --- the workload's own figures ---------------------------------------------------------------------

# wrk: "  1348 requests in 1.01s, 1.08MB read". iperf3: its lines of the whole run, one per flow:
# "[  5]   0.00-1.00   sec   244 KBytes  2.00 Mbits/sec  0.910 ms  0/250 (0%)  receiver".
workload() {
  awk -v OFS='\t' '
    $2 == "requests" && $3 == "in" { sub(",", "", $4); print "wrk", $1, $5; next }
    /^\[ *[0-9]+\]/ && ($NF == "sender" || $NF == "receiver") {
      sub(/^\[ */, ""); sub(/\]/, "")
      datagrams = match($0, /[0-9]+\/[0-9]+/) ? substr($0, RSTART, RLENGTH) : ""
      print "iperf3", $1, $NF, $4 " " $5, datagrams }
  ' "$results/traffic.out" |
    table 'if $f[0] == "wrk" then {program: "wrk", requests: $f[1] | tonumber, read: $f[2]}
      else {program: "iperf3", flow: $f[1] | tonumber, end: $f[2], transfer: $f[3]}
        + (if $f[4] == "" then {} else ($f[4] | split("/") | map(tonumber)
          | {datagrams_lost: .[0], datagrams: .[1]}) end) end'
}

main() {
  local cpus
  results=${1%/}
  capture=$results/skbtrail.dat
  [[ -e $capture ]] || capture=$results/tracecmd.dat
  scenario=$(basename "$results")
  script=$here/scenarios/$scenario.sh
  readonly results capture scenario script
  cpus=$(ring_buffers)
  jq -n --arg kernel "$(<"$results/kernel")" --arg scenario "$scenario" \
    --arg about "$(scenario_about)" --arg network "$(scenario_network)" \
    --arg command "$(<"$results/options")" --arg clock "$(clock)" \
    --argjson events "$(summary events "$cpus")" --argjson lost "$(summary lost "$cpus")" \
    --argjson cpus "$cpus" --argjson devices "$(devices)" --argjson snmp "$(snmp)" \
    --argjson softnet "$(softnet)" --argjson interrupts "$(interrupts)" \
    --argjson softirqs "$(softirqs)" --argjson queue_drops "$(queue_drops)" \
    --argjson workers "$(workers)" --argjson workload "$(workload)" '
    {$kernel, $scenario, $about, $network,
     recorded: {$command, $clock, $events, $lost, $cpus},
     $devices, $snmp, $softnet, $interrupts, $softirqs, $queue_drops, $workers, $workload}'
}

main "$@"
