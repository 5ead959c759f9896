# shellcheck shell=bash
# Requests, three flows with GRO and datagrams over the emulated NIC, with --probes: nothing about them
# is inferred. Somebody else's kprobe event stays, ours are gone afterwards.
network=nic
beside=0
options=(--probes)
readonly kprobes=/sys/kernel/tracing/kprobe_events
prepare() {
  start_nginx
  in_server iperf3 --server >/dev/null &
  wait_for 5201
  echo 'p:somebody/their_probe udp_sendmsg' >$kprobes
}
traffic() {
  requests 40 small 1
  in_client iperf3 --client "$server" --parallel 3 --bitrate 4M --bytes 150K
  in_client iperf3 --client "$server" --udp --bitrate 2M --length 1000 --bytes 30K
  cat /sys/kernel/tracing/kprobe_profile >"/out/$name/kprobe_profile"
}
record() {
  cat $kprobes >"/out/$name/kprobes.before"
  record_with_skbtrail
  cat $kprobes >"/out/$name/kprobes.after"
  echo >$kprobes
  return "$(<"/out/$name/skbtrail.status")"
}
packets() { jq -r "select(.legs[-1].direction == \"rx\") | $1" "$results/packets.json"; }
# A probe is not told of when its CPU is in another one (kprobe_ftrace_handler(),
# arch/x86/kernel/kprobes/ftrace.c); the kernel counts those.
missed_probes() { jq '[.capture.missed_probes[].count] | add // 0' "$results/report.json"; }
# share WHAT CONDITION OF: at least 995 of 1000 packets for which OF is true fulfil CONDITION, not
# counting those of missed probes.
share() {
  local all good
  all=$(packets "select($3) | .id" | wc -l)
  good=$(packets "select(($3) and ($2)) | .id" | wc -l)
  at_least 1 "$all" "$1: packets"
  at_least $((all * 995)) $(((good + $(missed_probes)) * 1000)) "$1: $good of $all packets, in thousandths"
}
# What __tcp_transmit_skb() was called for is of a connection, but for a SYN of each.
segments_have_a_connection() {
  local segments sent
  segments=$(event_count skbtrail:__tcp_transmit_skb)
  sent=$("$skbtrail" flows --format json "$results/skbtrail.dat" 2>/dev/null |
    jq '[.flows[].sent.packets] | add // 0')
  at_least $((segments - $(delta cl.snmp Tcp ActiveOpens))) "$sent" 'segments of known connections'
  at_most $((segments + $(missed_probes))) "$sent" 'segments of known connections'
}
check() {
  diff "$results/kprobes.before" "$results/kprobes.after" >"$results/kprobes.diff" ||
    wrong "kprobe events are not as before: $results/kprobes.diff"
  nothing_lost
  # Read before the end of the recording, and of somebody else's probe too.
  at_least "$(awk '!/their_probe/ { missed += $NF } END { print missed + 0 }' "$results/kprobe_profile")" \
    "$(missed_probes)" 'missed probes'
  outcomes_add_up
  forwards_agree
  softirqs_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  # What a socket's backlog coalesces has one tcp_probe, and no probe tells of the others
  # (tcp_add_backlog(), net/ipv4/tcp_ipv4.c): a busy machine has some.
  "$skbtrail" packets --format json "$results/skbtrail.dat" 2>"$results/packets.err" |
    jq -sc '(map(.stages.proto // empty) | group_by(.) | map(select(length > 1)[0])) as $shared
      | (map(select(.outcome == "delivered" and (.stages | has("ready") | not)) | .flow) | unique) as $quiet
      | .[] | .stages.proto as $proto | .flow as $flow
      | . + {coalesced: ($shared | index([$proto]) != null), unannounced: ($quiet | index([$flow]) != null)}' \
      >"$results/packets.json"
  at_least 1 "$(event_count skbtrail:skb_gro_receive)" 'calls of skb_gro_receive'
  segments_have_a_connection
  at_least 1 "$(event_count skbtrail:__udp_enqueue_schedule_skb)" 'datagrams to sockets'
  local lack='["softirq", "stack", "ready", "copy", "return"] - (.stages | keys)'
  share "all stages (what lacks: $(packets "select(.outcome == \"delivered\") | ($lack)[]" | sort | uniq -c | xargs))" \
    "($lack) == []" '.outcome == "delivered"'
  share 'TCP with proto' '.stages | has("proto")' '.outcome == "delivered" and .flow != null'
  # What TCP does not announce may have come too early: of its flow, what is read until its place is
  # known is inferred. A packet each of 'all stages' at most.
  share 'exact' '.confidence == "exact" or .unannounced' \
    '(.outcome == "delivered" or .outcome == "merged") and (.coalesced | not)'
}
