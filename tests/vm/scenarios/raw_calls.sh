# shellcheck shell=bash
# System calls by their numbers only: raw_syscalls, in nginx's workers under wrk.
once=6.12
network=veth
beside=0
options=(--profile sched -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
prepare() { start_nginx; }
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  switches_agree nginx
  at_least 60 "$(event_count raw_syscalls:sys_enter)" 'calls of the workers'
}
