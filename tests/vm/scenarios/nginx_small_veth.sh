# shellcheck shell=bash
# nginx with two workers, a small file, over veth.
network=veth
prepare() { start_nginx; }
traffic() { in_client wrk -t 2 -c 4 -d 1s "http://$server:80/small"; }
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
