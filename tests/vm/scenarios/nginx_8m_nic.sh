# shellcheck shell=bash
# nginx with two workers, a file of 8 MiB, over the emulated NIC.
once=6.12
network=nic
beside=0
prepare() { start_nginx; }
traffic() { requests 1 8m 2; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
  roots_include irq
  at_least 1000000 "$(report '[.devices[].tx.bytes] | add')" 'bytes sent'
}
