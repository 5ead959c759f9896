# shellcheck shell=bash
# Three flows over veth that polls: it merges the segments that the client has not sent as one.
once=6.12
network=veth
beside=0
prepare() {
  in_server ethtool -K vs gro on
  in_client ethtool -K vc tso off gso off
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --parallel 3 --bitrate 4M --bytes 300K; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  # The server's end counts before GRO, and its stack sees what is left after it.
  # The client's packets are cut into segments behind its queue.
  equal "$(events_of vc net_dev_xmit)" "$(device_delta vc "$tx_packets")" 'vc: net_dev_xmit events'
  equal "$(packets_of vc rx)" "$(device_delta vc "$rx_packets")" 'vc: rx packets'
  equal "$(packets_of vs tx)" "$(device_delta vs "$tx_packets")" 'vs: tx packets'
  equal "$(event_count net:napi_gro_receive_entry)" "$(device_delta vs "$rx_packets")" \
    'segments before GRO'
  at_least $(($(packets_of vs rx) * 2)) "$(device_delta vs "$rx_packets")" 'segments before GRO'
}
