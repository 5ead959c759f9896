# shellcheck shell=bash
# Packets are handed to the other CPU, which an interrupt between processors wakes.
once=6.1
network=nic
prepare() {
  start_nginx
  in_server bash -c 'echo 3 >/sys/class/net/n0/queues/rx-0/rps_cpus'
  in_client bash -c 'echo 3 >/sys/class/net/n1/queues/rx-0/rps_cpus'
}
traffic() { requests 40 small 8 2; }
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
  roots_include ipi
}
