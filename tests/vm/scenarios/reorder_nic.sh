# shellcheck shell=bash
# Many segments that overtake others, in batches of a NIC's polls, while the reader keeps its socket
# locked: some wait in its backlog and are coalesced there. tcpdump on the receiving device is given
# clones. Many a run is opened by a segment that came too early.
network=nic
# shellcheck disable=SC2034 # for ./dev test oracles
disorder=1
prepare() {
  without sv n0 gro
  tc -n cl qdisc replace dev n1 root netem delay 3ms reorder 40% loss 1% limit 1000
  start_slow_reader
  tap sv n0 --direction=in tcp
}
traffic() { stream 600000; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  local segments right at others first
  stream_agrees n0 n0.pcap
  at_least 350 "$segments" 'segments with data'
  # How many are given to the right call reorder_veth checks: here they often leave more holes than an
  # answer has ranges for, and how many of those are filled nothing tells. Nor whether it is the first
  # one's turn, where others behind it came too early as well.
  if (($(event_count sock:sk_data_ready) == 0)); then return; fi
  if ((at > 0 && others > 0)); then
    equal "$(sed -E 's/^(right|delivered).*/read/' <<<"$first")" read 'the first of them, not the only one too early'
  else
    equal "$first" right 'the first of them'
  fi
}
