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
  local of_client of_server
  of_client=$(keepalives n1)
  of_server=$(keepalives n0)
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  equal "$(($(passed_on wc) + of_client))" "$(device_delta wc "$tx_packets")" \
    'packets of wc that were passed on'
  switches_agree nginx
  equal "$(($(passed_on ws) + of_server))" "$(device_delta ws "$tx_packets")" \
    'packets of ws that were passed on'
  equal "$(($(jq '[.rx[].packets[]?.hops] | add' "$results/rx.json") + of_client + of_server))" \
    "$(($(device_delta ws "$rx_packets") + $(device_delta wc "$rx_packets")))" 'packets that the tunnels received'
}
# keepalives NIC: who was sent data and had none to send for ten seconds, as in a guest that is slow, sends
# a message without a packet. It is counted as one of the tunnel's (wg_packet_send_keepalive(),
# drivers/net/wireguard/send.c) and was none of any device above the NIC. Ethernet, IP, UDP, 16 bytes of
# header and 16 of tag; by a worker, where the handshakes of TCP, as long as these, never are sent.
keepalives() {
  trace-cmd report -N -l -i "$results/skbtrail.dat" 2>/dev/null |
    grep -cE "^ *kworker/[^ ]* +[0-9]+..\\.[^ ]* .* net_dev_queue: .*dev=$1 .*len=74\$" || true
}
