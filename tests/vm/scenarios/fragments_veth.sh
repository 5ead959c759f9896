# shellcheck shell=bash
# Datagrams larger than the MTU of a veth: their fragments hang in a list until they are read.
once=6.1
network=veth
prepare() {
  in_server iperf3 --server >/dev/null &
  wait_for 5201
}
traffic() { in_client iperf3 --client "$server" --udp --bitrate 8M --length 8000 --bytes 240K; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree iperf3
  at_least "$(report '.packets.rx.outcomes.dropped')" 9 'packets dropped, of none that were'
  if consume_skb_has_place; then
    fragments_agree
  else
    # All but the first of each datagram.
    equal "$(report '.packets.rx.outcomes.merged')" \
      $(($(delta sv.snmp Ip ReasmReqds) - 2 * $(delta sv.snmp Ip ReasmOKs))) 'merged packets'
  fi
}
