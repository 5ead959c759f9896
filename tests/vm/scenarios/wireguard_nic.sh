# shellcheck shell=bash
# nginx over WireGuard on the emulated NIC: a worker encrypts, another NAPI poll delivers.
network=wireguard
prepare() {
  start_nginx
  requests 1 small 1 1 cl "$overlay_server" >/dev/null # the handshake
}
traffic() {
  requests 1 small 1 1 # not by the tunnel: from here on it is known that frees are told of
  requests 20 small 4 2 cl "$overlay_server"
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  equal "$(passed_on wc)" "$(device_delta wc "$tx_packets")" 'packets of wc that were passed on'
  switches_agree nginx
  equal "$(passed_on ws)" "$(device_delta ws "$tx_packets")" 'packets of ws that were passed on'
  equal "$(jq '[.rx[].packets[]?.hops] | add' "$results/rx.json")" \
    "$(($(device_delta ws "$rx_packets") + $(device_delta wc "$rx_packets")))" 'packets that the tunnels received'
}
