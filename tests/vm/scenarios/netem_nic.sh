# shellcheck shell=bash
# Over a NIC whose queue delays, drops, doubles and reorders. What it doubles nobody had queued.
once=6.12
network=nic
prepare() {
  in_server iperf3 --server >/dev/null &
  wait_for 5201
  tc -n cl qdisc replace dev n1 root netem delay 2ms 1ms loss 5% duplicate 5% reorder 25% limit 100
}
traffic() {
  in_client iperf3 --client "$server" --udp --bitrate 4M --length 1000 --bytes 150K
  in_client iperf3 --client "$server" --bitrate 4M --bytes 100K
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  interrupts_agree
  switches_agree iperf3
  nic_devices_agree n0 n1
  at_least 1 "$(report '.packets.tx.outcomes.dropped')" 'dropped packets'
}
