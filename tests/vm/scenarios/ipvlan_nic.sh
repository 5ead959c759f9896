# shellcheck shell=bash
# nginx over ipvlan, which receives as its NIC: its answers are no forwards.
once=6.1
network=ipvlan
prepare() { start_nginx; }
traffic() { requests 20 small 4 2 cl "$overlay_server"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  stacked_devices_agree is n0 ic n1
  switches_agree nginx
}
