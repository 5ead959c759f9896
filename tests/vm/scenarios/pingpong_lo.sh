# shellcheck shell=bash
# Requests and responses, one at a time, over lo.
network=lo
prepare() { start_nginx; }
traffic() { requests 60 small 1 1 sv; }
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
