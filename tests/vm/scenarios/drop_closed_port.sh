# shellcheck shell=bash
# 100 datagrams to a port nobody listens on: every one is dropped, for that reason.
once=6.1
network=veth
traffic() {
  in_client bash -c 'for i in {1..100}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  equal "$(delta sv.snmp Udp NoPorts)" 100 'Udp NoPorts of the guest'
  equal "$(report '[.drops[] | select(.reason == "NO_SOCKET") | .packets] | add')" 100 'drops NO_SOCKET'
}
