# shellcheck shell=bash
# nginx over a VXLAN tunnel on the emulated NIC.
once=6.1
network=vxlan
prepare() { start_nginx; }
traffic() { requests 20 small 4 2 cl "$overlay_server"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  devices_agree vs vc
  stacked_devices_agree vs n0 vc n1
  switches_agree nginx
  roots_include irq
  equal "$(jq '[.rx[].packets[]? | select(.hops == 0)] | length' "$results/rx.json")" 0 \
    'packets that no tunnel received'
}
