# shellcheck shell=bash
# nginx over a VXLAN tunnel on the emulated NIC.
once=6.1
network=vxlan
prepare() { start_nginx; }
traffic() {
  requests 20 small 4 2 cl "$overlay_server"
  requests 1 1m 1 1 cl "$overlay_server"
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  stacked_devices_agree vc n1
  segments_agree vs n0
  switches_agree nginx
  roots_include irq
  # In the tunnel's own NAPI poll one may be merged into another, before that device receives it.
  equal "$(jq '[.rx[].packets[]? | select(.hops == 0 and .outcome != "merged")] | length' \
    "$results/rx.json")" 0 \
    'packets that no tunnel received'
}
