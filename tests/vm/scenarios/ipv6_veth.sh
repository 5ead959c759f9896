# shellcheck shell=bash
# TCP and UDP over IPv6, on veth.
once=6.12
network=veth6
prepare() {
  start_nginx
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() {
  requests 30 small 4 2 cl "[$server6]"
  in_client iperf3 --client "$server6" --udp --bitrate 4M --length 1000 --bytes 50K
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  roots_include local_bh_enable
  at_least 100 "$(flows_of 2001:db8::)" 'packets with a flow over IPv6'
}
