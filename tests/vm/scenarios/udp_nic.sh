# shellcheck shell=bash
# iperf3's datagrams over the emulated NIC.
network=nic
prepare() {
  in_server iperf3 --server --one-off >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --udp --bitrate 2M --length 1000 --time 1; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  roots_include irq
  at_least 200 "$(delta sv.snmp Udp InDatagrams)" 'Udp InDatagrams of the guest'
  at_least "$(delta sv.snmp Udp InDatagrams)" "$(report '.packets.rx.outcomes.delivered')" \
    'delivered packets'
}
