# shellcheck shell=bash
# Requests and responses, one at a time, over the emulated NIC.
network=nic
beside=0
prepare() { start_nginx; }
traffic() { requests 60 small 1; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  roots_include irq
}
