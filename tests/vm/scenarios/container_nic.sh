# shellcheck shell=bash
# A client in a container: veth, a bridge, masquerading, the emulated NIC; nginx behind it.
network=container
prepare() { start_nginx; }
traffic() { requests 20 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  nic_devices_agree n0 n1
  devices_agree pc ph br0
  stacked_devices_agree br0 ph
  switches_agree nginx
  roots_include irq
  at_least 100 "$(delta ro.snmp Ip ForwDatagrams)" 'Ip ForwDatagrams of the guest'
}
