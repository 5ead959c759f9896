# shellcheck shell=bash
# Who waits for a NIC polls it (net.core.busy_read, net.core.busy_poll), and receives in its own call.
network=nic
prepare() {
  echo 100 | tee /proc/sys/net/core/busy_{read,poll} >/dev/null
  start_nginx
}
traffic() { requests 60 small 8 1; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  roots_include busy_poll
}
