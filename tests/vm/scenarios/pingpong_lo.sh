# shellcheck shell=bash
# Requests and responses, one at a time, over lo.
network=lo
prepare() { start_nginx; }
traffic() { in_server wrk -t 1 -c 1 -d 1s "http://$server:80/small"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree lo
  switches_agree nginx
  roots_include local_bh_enable
}
