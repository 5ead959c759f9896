# shellcheck shell=bash
# TCP through a namespace that forwards.
network=forward
prepare() { start_nginx; }
traffic() { in_client wrk -t 1 -c 2 -d 1s "http://$server:80/small"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  at_least 100 "$(delta ro.snmp Ip ForwDatagrams)" 'Ip ForwDatagrams of the guest'
  softirqs_agree
  devices_agree fc rc rs fs
  switches_agree nginx
}
