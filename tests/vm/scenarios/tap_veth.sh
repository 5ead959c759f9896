# shellcheck shell=bash
# tcpdump on both ends of a veth: it is given clones.
once=6.12
network=veth
prepare() {
  start_nginx
  tap sv vs
  tap cl vc
}
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
}
