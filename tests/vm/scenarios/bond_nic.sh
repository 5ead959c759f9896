# shellcheck shell=bash
# nginx over bonds, whose software GSO cuts up what they send.
once=6.1
network=bond
prepare() { start_nginx; }
traffic() {
  requests 20 small 4 2
  requests 1 1m 1 1
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  nic_devices_agree n0 n1
  segments_agree bs n0
  stacked_devices_agree bc n1
  switches_agree nginx
}
