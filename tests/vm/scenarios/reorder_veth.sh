# shellcheck shell=bash
# Segments that are lost and that overtake others, and a reader that is slower than they come: what it
# reads has been coalesced in the socket. A tap behind the sender's queue sees sequence numbers: which
# call must have read which segment. The first segment with data opens the connection.
network=veth
# shellcheck disable=SC2034 # for ./dev test oracles
disorder=1
prepare() {
  without cl vc tso gso
  tc -n cl qdisc replace dev vc root netem delay 2ms reorder 3% loss 1% limit 1000
  start_slow_reader
  tap cl vc --direction=out tcp
}
traffic() { stream 600000; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs
  local segments right at others first
  stream_agrees vs vc.pcap
  at_least 400 "$segments" 'segments with data'
  # Before 6.3 nothing tells when one is read that has overtaken others: it is given to some call, and
  # now and then that is the right one.
  if ((at > 0 && $(event_count sock:sk_data_ready) == 0)); then
    equal "$(sed -E 's/^(right|delivered).*/read/' <<<"$first")" read 'the first of them, which came too early'
  else
    equal "$first" right 'the first of them'
  fi
  # Before 6.3 only copies tell the order.
  (($(event_count sock:sk_data_ready) == 0)) ||
    at_least $((segments * 80 / 100)) "$right" "segments given to the right call, of $segments"
}
