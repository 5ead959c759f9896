# shellcheck shell=bash
# nginx over ESP in tunnel mode: what was unpacked is received once more, by the same device.
once=6.12
network=ipsec_tunnel
prepare() { start_nginx; }
traffic() {
  requests 20 small 4 2
  requests 1 1m 1 1
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  interrupts_agree
  local device received=0
  for device in n0 n1; do
    received=$((received + $(device_delta "$device" "$rx_packets")))
    equal "$(packets_of "$device" rx)" "$(device_delta "$device" "$rx_packets")" "$device: rx packets"
    equal "$(packets_of "$device" tx)" "$(device_delta "$device" "$tx_packets")" "$device: tx packets"
  done
  equal "$(report .packets.rx.births)" "$received" 'received packets'
  equal "$(event_count net:napi_gro_receive_entry)" $((2 * received)) 'napi_gro_receive_entry events'
  switches_agree nginx
}
