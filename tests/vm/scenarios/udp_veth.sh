# shellcheck shell=bash
# iperf3's datagrams over veth.
once=6.12
network=veth
beside=0
prepare() {
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --udp --bitrate 2M --length 1000 --bytes 150K; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree iperf3
  roots_include local_bh_enable
  at_least 100 "$(delta sv.snmp Udp InDatagrams)" 'Udp InDatagrams of the guest'
  at_least "$(delta sv.snmp Udp InDatagrams)" "$(report '.packets.rx.outcomes.delivered')" \
    'delivered packets'
}
