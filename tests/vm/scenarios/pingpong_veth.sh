# shellcheck shell=bash
# Requests and responses, one at a time, over veth.
once=6.1
network=veth
beside=0
prepare() { start_nginx; }
traffic() { requests 60 small 1; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  roots_include local_bh_enable
}
