# shellcheck shell=bash
# Datagrams larger than the MTU of the emulated NIC.
once=6.12
network=nic
prepare() {
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --udp --bitrate 8M --length 8000 --bytes 240K; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree iperf3
  # Without the place of consume_skb, only the end of the one that was read is known.
  if consume_skb_has_place; then
    few_unknown
    fragments_agree
  fi
}
