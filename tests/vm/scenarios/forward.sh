# shellcheck shell=bash
# TCP through a namespace that forwards.
once=6.12
network=forward
prepare() { start_nginx; }
traffic() { requests 60 small 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  at_least 60 "$(delta ro.snmp Ip ForwDatagrams)" 'Ip ForwDatagrams of the guest'
  softirqs_agree
  devices_agree fc rc rs fs
  switches_agree nginx
}
