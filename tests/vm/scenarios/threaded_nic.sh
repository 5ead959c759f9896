# shellcheck shell=bash
# A kernel thread polls the NIC: no softirq receives.
once=6.12
network=nic
prepare() {
  start_nginx
  in_server bash -c 'echo 1 >/sys/class/net/n0/threaded'
}
traffic() { requests 60 small 4; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  roots_include napi_thread
}
