# shellcheck shell=bash
# MPTCP with two subflows: messages and a file that are sent back. Before 6.3 nothing tells who reads.
once=6.12
network=mptcp
prepare() {
  truncate -s 512K /tmp/file
  # It writes and reads the pipe: more than a page at once may wait for ever, for itself.
  in_server socat -b 4096 SOCKET-LISTEN:2:262:x0050x00000000x0000000000000000,reuseaddr,fork PIPE &
  wait_for 80 # the socket of the first subflow
}
traffic() {
  local i
  for i in {1..40}; do
    echo "message $i"
    sleep 0.02
  done | in_client socat -t 2 - "$mptcp_server" >/dev/null
  in_client socat -t 5 "OPEN:/tmp/file!!CREATE:/tmp/back" "$mptcp_server"
  cmp /tmp/file /tmp/back
}
readonly mptcp_server=SOCKET-CONNECT:2:262:x0050xC0000201x0000000000000000
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  # Probes of a closed window repeat a byte, which MPTCP throws away without a word (6.12).
  at_most 12 "$(report '.packets.rx.outcomes.open + (.packets.rx.unknown_causes["socket closed"] // 0)')" \
    'packets that nobody read'
  at_least 150 "$(report '.packets.rx.outcomes.delivered')" 'packets that were read'
  # How much goes over the second subflow is the kernel's choice, from time to time.
  local data
  data=$(segments 192.0.2.3:)
  at_least 3 "$data" 'segments with data of the second subflow'
  at_least $((data - data / 5 - 1)) "$(flows 192.0.2.3:)" "of $data packets of the second subflow, read"
}
# With data, as trace-cmd prints what the stack received.
segments() {
  trace-cmd report -F tcp_probe "$results/skbtrail.dat" 2>/dev/null | grep -F "$1" | grep -vc 'data_len=0 '
}
flows() {
  "$skbtrail" packets --flow "$1" --outcome delivered --format json "$results/skbtrail.dat" | wc -l
}
