# shellcheck shell=bash
# Three flows of iperf3 over veth.
once=6.12
network=veth
beside=0
prepare() {
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --parallel 3 --bitrate 4M --bytes 300K; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree iperf3
  roots_include local_bh_enable
  at_least 250000 "$(report '[.devices[] | select(.name == "vs") | .rx.bytes] | add')" 'bytes received'
}
