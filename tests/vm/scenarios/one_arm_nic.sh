# shellcheck shell=bash
# nginx behind a router that sends on by the NIC it received by.
network=one_arm
prepare() { start_nginx; }
traffic() {
  in_client ping -c 1 "$server" # longer than any ACK: from here on it is known that the NIC sends back
  requests 20 small 4 2
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  switches_agree nginx
  at_least 100 "$(delta ro.snmp Ip ForwDatagrams)" 'Ip ForwDatagrams of the guest'
}
