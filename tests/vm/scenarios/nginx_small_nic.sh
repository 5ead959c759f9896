# shellcheck shell=bash
# nginx with two workers, a small file, over the emulated NIC.
network=nic
prepare() { start_nginx; }
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  roots_include irq
}
