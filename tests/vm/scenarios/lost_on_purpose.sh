# shellcheck shell=bash
# The smallest buffer under nginx: what is lost is said, and nobody comes to other numbers.
network=veth
beside=0
options=(--buffer-size 64)
prepare() { start_nginx; }
traffic() { in_client wrk -t 2 -c 8 -d 2s "http://$server:80/small"; }
check() {
  at_least 1 "$(report .capture.lost_events)" 'lost events'
  at_least 1 "$(report .capture.gaps)" 'gaps'
  events_agree
  outcomes_add_up
  forwards_agree
}
