# shellcheck shell=bash
# nginx with two workers, a file of 1 MiB, over veth.
once=6.12
network=veth
beside=0
prepare() { start_nginx; }
traffic() { requests 6 1m 2; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  roots_include local_bh_enable
  at_least 1000000 "$(report '[.devices[].tx.bytes] | add')" 'bytes sent'
}
