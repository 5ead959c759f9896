# shellcheck shell=bash
# One file of trace-cmd with two named buffers.
once=6.12
network=veth
traffic() {
  in_client bash -c 'for i in {1..60}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
record() {
  record_with_tracecmd -C mono -B receive -e net:netif_receive_skb -e skb:kfree_skb \
    -B transmit -C mono -e net:net_dev_queue -e net:net_dev_xmit
}
check() {
  local buffer found
  for buffer in receive transmit; do
    trace-cmd report -N -i "$results/tracecmd.dat" 2>/dev/null | grep -E "^ *$buffer:" |
      event_lines >"$results/$buffer.txt" || true
    "$skbtrail" report --format json --buffer "$buffer" "$results/tracecmd.dat" \
      >"$results/$buffer.json" || wrong "skbtrail report --buffer $buffer ends with status $?"
    found=$(jq -r '[.capture.events, .capture.lost_events, .capture.buffer] | join(" ")' \
      "$results/$buffer.json")
    equal "$found" "$(wc -l <"$results/$buffer.txt") 0 $buffer" "events, lost and name of $buffer"
  done
  equal "$(jq '[.devices[].rx.packets] | add' "$results/receive.json")" \
    "$(($(device_delta vs "$rx_packets") + $(device_delta vc "$rx_packets")))" 'packets received'
  equal "$(jq '[.devices[].tx.packets] | add' "$results/transmit.json")" \
    "$(($(device_delta vs "$tx_packets") + $(device_delta vc "$tx_packets")))" 'packets sent'
  at_least 60 "$(device_delta vc "$tx_packets")" 'vc: tx packets'
}
