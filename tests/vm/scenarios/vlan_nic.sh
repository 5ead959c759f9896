# shellcheck shell=bash
# nginx over a VLAN of the emulated NIC. What the VLAN's device receives has no event of its own
# (vlan_do_receive(), net/8021q/vlan_core.c: another round in the stack).
once=6.12
network=vlan
prepare() { start_nginx; }
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  nic_devices_agree n0 n1
  stacked_devices_agree n0.5 n0 n1.5 n1
  switches_agree nginx
  roots_include irq
}
