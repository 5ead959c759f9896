# shellcheck shell=bash
# TCP through a namespace that forwards.
network=forward
prepare() { start_nginx; }
traffic() { in_client wrk -t 1 -c 2 -d 1s "http://$server:80/small"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  softirqs_agree
  devices_agree fc rc rs fs
  switches_agree nginx
  equal "$(report '.packets.rx.outcomes.forwarded')" "$(delta ro.snmp Ip ForwDatagrams)" \
    'forwarded packets'
}
