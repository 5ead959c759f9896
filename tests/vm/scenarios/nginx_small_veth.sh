# shellcheck shell=bash
# nginx with two workers, a small file, over veth.
network=veth
prepare() { start_nginx; }
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  roots_include local_bh_enable
}
