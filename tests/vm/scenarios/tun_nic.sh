# shellcheck shell=bash
# nginx over a VPN of a program: packets from and to tasks.
once=6.12
network=tun
prepare() { start_nginx; }
traffic() { requests 20 small 4 2 cl "$overlay_server"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  interrupts_agree
  devices_agree us uc
  switches_agree nginx
  roots_include task
}
