# shellcheck shell=bash
# Checks of a scenario's results, outside the guest. Each prints what is wrong, in a line.
# `results` is the folder of the scenario, `skbtrail` the program. A check that prints nothing passed.

wrong() { echo "    $*"; }
# equal FOUND EXPECTED WHAT
equal() { [[ $1 == "$2" ]] || wrong "$3: $1, not $2"; }
# at_least LEAST FOUND WHAT
at_least() { (($2 >= $1)) || wrong "$3: $2, fewer than $1"; }
at_most() { (($2 <= $1)) || wrong "$3: $2, more than $1"; }

# --- the capture ------------------------------------------------------------------------------------

# What is read more than once is made once.
prepare_check() {
  [[ -e $results/skbtrail.dat ]] || return 0
  "$skbtrail" report --format json "$results/skbtrail.dat" >"$results/report.json" \
    2>"$results/report.err" || wrong "skbtrail report fails: $(<"$results/report.err")"
  "$skbtrail" netdev-times --format json "$results/skbtrail.dat" >"$results/rx.json" \
    2>"$results/rx.err" || wrong "skbtrail netdev-times fails: $(<"$results/rx.err")"
  events_of_file "$results/skbtrail.dat" >"$results/skbtrail.txt"
}
events_of_file() { trace-cmd report -N -i "$1" 2>/dev/null | event_lines; }

report() { jq -r "$1" "$results/report.json"; }
event_count() { report "[.events[] | select(.name == \"$1\") | .count] | add // 0"; }

# "CPU EVENT: FIELDS" of every line of trace-cmd report that is an event.
event_lines() {
  sed -nE 's/^.*-[0-9]+ +\[([0-9]{3})\] .*[0-9]+\.[0-9]+: +([a-z0-9_]+): */\1 \2: /p'
}

nothing_lost() {
  equal "$(report .capture.lost_events)" 0 'lost events'
  equal "$(report .capture.gaps)" 0 'gaps'
  equal "$(report '.capture.damage | length')" 0 'damage'
  equal "$(report .capture.switched_off)" false 'tracing ended before the recording'
  events_agree
}

# trace-cmd report has a line for every event we count, and so had the summary of the recording.
events_agree() {
  local said
  equal "$(report .capture.events)" "$(wc -l <"$results/skbtrail.txt")" \
    'events against trace-cmd report'
  said=$(sed -nE 's/^  events +([0-9,]+),? .*/\1/p' "$results/skbtrail.err" | tr -d ,)
  equal "$(report .capture.events)" "$said" 'events against the summary of record'
}

# What trace-cmd recorded beside us: on each CPU, ours is one unbroken piece of it. For tasks, softirqs
# and hard interrupts apart: a tracepoint writes into one instance after the other with only preemption
# off (__DO_TRACE(), include/linux/tracepoint.h), and an interrupt between the two has its own events
# before the interrupted one in the second instance, behind it in the first.
agrees_with_tracecmd() {
  local cpu level kinds='net_dev_queue|net_dev_xmit|netif_receive_skb|kfree_skb|consume_skb|napi_poll'
  levels_of_file "$results/skbtrail.dat" | grep -E " ($kinds): " >"$results/ours" || true
  levels_of_file "$results/tracecmd.dat" | grep -E " ($kinds): " >"$results/theirs" || true
  for cpu in 0 1; do
    for level in task softirq hardirq; do
      grep "^$cpu $level " "$results/ours" >"$results/ours.$cpu.$level" || true
      grep "^$cpu $level " "$results/theirs" >"$results/theirs.$cpu.$level" || true
      is_piece "$results/ours.$cpu.$level" "$results/theirs.$cpu.$level" && continue
      wrong "cpu $cpu, $level: what both recorded differs: diff $results/{ours,theirs}.$cpu.$level"
      diff "$results/ours.$cpu.$level" "$results/theirs.$cpu.$level" | sed 's/^/      /; 20q' || true
    done
  done
  at_least 100 "$(wc -l <"$results/ours")" 'events that both recorded'
}

# "CPU LEVEL EVENT: FIELDS" of every event: the third of the flags behind the CPU says what it was in.
levels_of_file() {
  trace-cmd report -N -l -i "$1" 2>/dev/null |
    sed -nE 's/^.*-[0-9]+ +([0-9]+)..(.)[^ ]* +[0-9]+\.[0-9]+: +([a-z0-9_]+): */\1 \2 \3: /p' |
    sed -E 's/^([0-9]+) \. /\1 task /; s/^([0-9]+) s /\1 softirq /; s/^([0-9]+) [hHzZ] /\1 hardirq /'
}

# is_piece OURS THEIRS: the lines of OURS stand in THEIRS, in one piece.
is_piece() {
  awk 'FILENAME == ARGV[1] { ours[n++] = $0; next }
       { theirs[m++] = $0 }
       END {
         for (start = 0; start + n <= m; ++start) {
           for (i = 0; i < n && ours[i] == theirs[start + i]; ++i) { }
           if (i == n) exit 0
         }
         exit 1
       }' "$1" "$2"
}

# read_alike FILE: skbtrail counts the events that trace-cmd report prints, and trusts the file.
read_alike() {
  local found
  found=$("$skbtrail" report --format json "$1" | jq -r '[.capture.events, .capture.lost_events,
    (.capture.damage | length), .capture.undecodable_events] | join(" ")')
  equal "$found" "$(events_of_file "$1" | wc -l) 0 0 0" \
    "events, lost, damage and undecodable of $(basename "$1")"
}

outcomes_add_up() {
  local direction
  for direction in rx tx; do
    equal "$(report ".packets.$direction.outcomes | add")" "$(report ".packets.$direction.births")" \
      "outcomes of $direction against births"
  done
}

# --- ground truth -----------------------------------------------------------------------------------

# The columns of a device in /proc/net/dev, summed over namespaces: rx packets 2, tx packets 10.
device_counter() {
  awk -v device="$2:" -v column="$3" '$1 == device { sum += $(column + 1) } END { print sum + 0 }' \
    "$results/$1"/*.dev
}
device_delta() { echo $(($(device_counter after "$1" "$2") - $(device_counter before "$1" "$2"))); }
readonly rx_packets=2 tx_packets=10

# delta FILE TABLE COLUMN: of /proc/net/snmp and netstat.
delta() {
  local when
  for when in before after; do
    awk -v table="$2:" -v column="$3" '$1 != table { next }
      !head { head = 1; for (i = 2; i <= NF; ++i) if ($i == column) at = i; next }
      { print $at }' "$results/$when/$1"
  done | paste -sd ' ' | awk '{ print $2 - $1 }'
}

# all_namespaces TABLE COLUMN: the delta, summed.
all_namespaces() {
  local file sum=0
  for file in "$results"/after/*.snmp; do
    sum=$((sum + $(delta "$(basename "$file")" "$1" "$2")))
  done
  echo "$sum"
}

# Received packets that nothing was heard of again. An acknowledgement that waits for a busy socket is
# freed without an event when the next one says more (tcp_add_backlog(), net/ipv4/tcp_ipv4.c). How many
# do, hangs on how fast the guest is; the kernel counts them.
few_unknown() {
  local unknown acks coalesced
  unknown=$(report '.packets.rx.unknown_causes | with_entries(select(.key != "socket closed")) | add // 0')
  acks=$(short_and_unknown)
  coalesced=$(all_namespaces TcpExt TCPBacklogCoalesce)
  unknown=$((unknown - (acks < coalesced ? acks : coalesced)))
  at_least $((unknown * 50)) "$(report .packets.rx.births)" \
    "packets, of which $unknown have no known end and none that is in the kernel's counters"
}
# Received, and no longer than a TCP header with options, IPv6's, and those of a tunnel. That there is
# none at all is said on standard error.
short_and_unknown() {
  "$skbtrail" packets --outcome unknown --format json "$results/skbtrail.dat" 2>"$results/unknown.err" |
    jq -s '[.[] | select(.direction == "rx" and .reason == "address reused" and .len <= 122)] | length'
}

# Where nothing is forwarded, nothing was.
forwards_agree() {
  equal "$(report '.packets.rx.outcomes.forwarded')" "$(all_namespaces Ip ForwDatagrams)" \
    'forwarded packets'
}

# queue_drops NAMESPACE DEVICE: what its queueing discipline dropped.
queue_drops() {
  local when
  for when in before after; do
    grep -A 1 " dev $2 " "$results/$when/$1.qdisc" | sed -nE 's/.*\(dropped ([0-9]+),.*/\1/p'
  done | paste -sd ' ' | awk '{ print $2 - $1 }'
}

packets_of() { report "[.devices[] | select(.name == \"$1\") | .$2.packets] | add // 0"; }
events_of() { grep -cE "^[0-9]+ $2: .*dev=$1( |\$)" "$results/skbtrail.txt" || true; }

# veth without NAPI and lo: the kernel counts a packet where it hands it to the stack, GSO or not.
devices_agree() {
  local device
  for device in "$@"; do
    equal "$(packets_of "$device" rx)" "$(device_delta "$device" $rx_packets)" "$device: rx packets"
    equal "$(packets_of "$device" tx)" "$(device_delta "$device" $tx_packets)" "$device: tx packets"
    at_least 1 "$(device_delta "$device" $tx_packets)" "$device: tx packets of the guest"
  done
}

# A NIC counts before GRO what netif_receive_skb sees after it, and after software GSO what was
# queued before it: there the events of the driver's side are counted.
nic_devices_agree() {
  local device received=0
  for device in "$@"; do
    received=$((received + $(device_delta "$device" $rx_packets)))
    equal "$(events_of "$device" net_dev_xmit)" "$(device_delta "$device" $tx_packets)" \
      "$device: net_dev_xmit events"
    equal "$(packets_of "$device" rx)" "$(events_of "$device" netif_receive_skb)" \
      "$device: received packets"
    at_least "$(packets_of "$device" rx)" "$(device_delta "$device" $rx_packets)" \
      "$device: rx packets before GRO"
  done
  equal "$(event_count net:napi_gro_receive_entry)" "$received" 'napi_gro_receive_entry events'
}

# Since 6.12.
tcp_probe_names_skb() { grep -qE '^[0-9]+ tcp_probe: .*skbaddr=' "$results/skbtrail.txt"; }
# Since 6.3.
consume_skb_has_place() { grep -qE '^[0-9]+ consume_skb: .*location=' "$results/skbtrail.txt"; }

# Fragments received, less the packets made of them: so many have become a part of another. For where
# GRO merges nothing.
fragments_agree() {
  local expected
  expected=$(($(delta sv.snmp Ip ReasmReqds) - $(delta sv.snmp Ip ReasmOKs)))
  equal "$(report '.packets.rx.outcomes.merged')" "$expected" 'merged packets'
  at_least 50 "$expected" 'fragments that the guest joined'
}

# passed_on DEVICE: how often what it sent was queued by one below.
passed_on() {
  "$skbtrail" packets --format json "$results/skbtrail.dat" |
    jq -s "[.[].legs[] | select(.direction == \"tx\" and .device == \"$1\") | .hops] | add // 0"
}

# stacked_devices_agree UPPER LOWER...: what the upper device of each pair sent is one packet with what
# the lower one sent for it.
stacked_devices_agree() {
  while (($# > 0)); do
    equal "$(passed_on "$1")" "$(device_delta "$2" $tx_packets)" "packets of $1 that $2 sent"
    at_least 1 "$(device_delta "$1" $tx_packets)" "$1: tx packets of the guest"
    shift 2
  done
}

# segments_agree UPPER LOWER: so do all segments that software GSO cut what UPPER sent into.
segments_agree() {
  equal "$("$skbtrail" packets --format json "$results/skbtrail.dat" | jq -s "[.[].legs[] |
      select(.direction == \"tx\" and .device == \"$1\") | [.segments, 1] | max] | add // 0")" \
    "$(device_delta "$2" $tx_packets)" "segments of $1 that $2 sent"
  at_least 1 "$(report "[.offloads[] | select(.device == \"$1\" or .device == \"$2\") | .segmented] | add // 0")" \
    "packets of $1 that were cut into segments"
}

# flows_of ADDRESS: packets of connections from that address.
flows_of() {
  "$skbtrail" packets --format json "$results/skbtrail.dat" | grep -cF "\"flow\":\"[$1" || true
}

# Lines of a file of /proc, those that match PATTERN, the numbers of both CPUs summed.
both_cpus() { awk -v pattern="$2" '$0 ~ pattern { sum += $2 + $3 } END { print sum + 0 }' "$results/$1"; }

# Hard interrupts of the NICs, runs of NET_RX and packets into the stack, as the kernel counts them.
interrupts_agree() {
  local expected
  expected=$(($(both_cpus after/interrupts ' virtio[0-9]+-') - $(both_cpus before/interrupts ' virtio[0-9]+-')))
  equal "$(grep -cE '^[0-9]+ irq_handler_entry: .*name=virtio' "$results/skbtrail.txt")" "$expected" \
    'hard interrupts of virtio'
}
softirqs_agree() {
  local expected
  expected=$(($(both_cpus after/softirqs NET_RX) - $(both_cpus before/softirqs NET_RX)))
  equal "$(grep -cE '^[0-9]+ softirq_entry: .*NET_RX' "$results/skbtrail.txt")" "$expected" \
    'runs of NET_RX'
  expected=$(($(processed after) - $(processed before)))
  equal "$(event_count net:netif_receive_skb)" "$expected" 'netif_receive_skb against softnet_stat'
}
# The first column, in hexadecimal, of every CPU.
processed() {
  local sum=0 column
  while read -r column _; do sum=$((sum + 16#$column)); done <"$results/$1/softnet_stat"
  echo "$sum"
}

# Tasks of that name sleep where their counters are read: every switch in between is in the capture.
# Involuntary is who could have gone on: state R, or R+ when preempted.
switches_agree() {
  local tid voluntary involuntary switches found tasks=0
  while read -r tid _ voluntary involuntary; do
    tasks=$((tasks + 1))
    switches=$(grep -E "^[0-9]+ sched_switch: .*prev_pid=$tid " "$results/skbtrail.txt" || true)
    found=$(grep -cE ' prev_state=R\+? ' <<<"$switches" || true)
    equal "$found" "$involuntary" "involuntary switches of $1 $tid"
    found=$(grep -cE ' prev_state=[^R]' <<<"$switches" || true)
    equal "$found" "$voluntary" "voluntary switches of $1 $tid"
  done < <(switch_deltas "$1")
  at_least 1 "$tasks" "tasks named $1"
}
switch_deltas() {
  awk -v name="$1" 'FILENAME == ARGV[1] { voluntary[$1] = $3; involuntary[$1] = $4; next }
    $2 == name && $1 in voluntary { print $1, $2, $3 - voluntary[$1], $4 - involuntary[$1] }' \
    "$results/switches.before" "$results/switches.after"
}

roots_include() {
  local roots
  roots=$(jq -r '.rx[].root' "$results/rx.json" | sort | uniq -c | sort -rn |
    awk '{ printf "%s %s, ", $2, $1 }')
  [[ ", $roots" == *", $1 "* ]] || wrong "no hunk has the root $1, only: ${roots%, }"
}
