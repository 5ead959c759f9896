# shellcheck shell=bash
# A third device is given clones of what a veth receives and sends.
once=6.1
network=mirror
prepare() { start_nginx; }
traffic() { requests 20 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  equal "$(packets_of mir tx)" "$(device_delta mir "$tx_packets")" 'clones'
}
