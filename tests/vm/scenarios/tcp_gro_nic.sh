# shellcheck shell=bash
# Three flows of iperf3 over the emulated NIC: segments are merged before the stack sees them.
once=6.1
network=nic
prepare() {
  # Where all is slow, TCP paces down to two segments at once: too few for GRO.
  in_client sysctl -qw net.ipv4.tcp_min_tso_segs=8
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --parallel 3 --bitrate 4M --bytes 300K; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree iperf3
  roots_include irq
  at_least $(($(packets_of n0 rx) * 2)) "$(device_delta n0 "$rx_packets")" 'segments before GRO'
}
