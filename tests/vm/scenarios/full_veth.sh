# shellcheck shell=bash
# The profile full over veth: every system call is told of twice, by an event of its own and by
# raw_syscalls. Requests over TCP, datagrams over UDP.
network=veth
beside=0
options=(--profile full)
prepare() {
  start_nginx
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() {
  requests 8 small 2
  in_client iperf3 --client "$server" --udp --bitrate 20M --length 1000 --bytes 10K
}
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  at_least 8 "$(event_count syscalls:sys_enter_writev)" 'calls told of by name'
  at_least 20 "$(event_count raw_syscalls:sys_enter)" 'calls told of by number'
  at_least "$(delta sv.snmp Udp InDatagrams)" "$(report '.packets.rx.outcomes.delivered')" \
    'delivered packets'
  equal "$("$skbtrail" packets --format json "$results/skbtrail.dat" | grep -c '"call":"?"')" 0 \
    'packets whose call has no name'
}
