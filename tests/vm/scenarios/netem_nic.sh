# shellcheck shell=bash
# Over a NIC whose queue delays, drops, doubles and reorders. What it doubles nobody had queued.
# iperf3 waits 30 seconds for the answer to its first datagram, and gives up: socat sends those.
once=6.12
network=nic
prepare() {
  in_server iperf3 --server >/dev/null &
  in_server socat -u UDP4-RECV:5202 OPEN:/tmp/received,creat &
  wait_for 5201
  wait_for 5202
  tc -n cl qdisc replace dev n1 root netem delay 2ms 1ms loss 5% duplicate 5% reorder 25% limit 100
}
traffic() {
  head -c 150000 /dev/zero | in_client socat -u -b 1000 - "UDP4-SENDTO:$server:5202"
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
