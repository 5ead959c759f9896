# shellcheck shell=bash
# Three datagrams at a time, sent as one packet (UDP_SEGMENT), to a socket that gets them one by one.
once=6.12
network=veth
prepare() {
  in_server socat -u UDP4-RECV:5000 OPEN:/tmp/received,creat &
  for _ in {1..100}; do
    if (($(in_server ss -Hlnu 'sport = :5000' | wc -l) == 1)); then return 0; fi
    doze 0.1
  done
  return 1
}
# A read of socat's is what its writer wrote; 17:103 is UDP_SEGMENT of IPPROTO_UDP. One in four is a
# datagram alone.
traffic() {
  local i
  for i in {1..60}; do
    printf "%0$((i % 4 == 0 ? 700 : 2000))d" "$i"
    sleep 0.02
  done | in_client socat -u -b 2100 - UDP4-SENDTO:"$server":5000,setsockopt-int=17:103:700
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  equal "$(packets_of vs rx)" "$(device_delta vs "$rx_packets")" "vs: packets of the guest"
  # All that was written, 100,500 bytes: two writes that socat reads as one are one datagram less.
  at_least 144 "$(delta sv.snmp Udp InDatagrams)" 'Udp InDatagrams of the guest'
  consume_skb_has_place || return 0
  equal "$(event_count sock:sk_data_ready)" "$(delta sv.snmp Udp InDatagrams)" 'datagrams that were announced'
  equal "$(report '.packets.rx.outcomes.delivered')" "$(device_delta vs "$rx_packets")" 'delivered packets'
  equal "$(returns_of_reads)" "$("$skbtrail" packets --format json "$results/skbtrail.dat" |
    jq -r '.legs[-1] | select(.device == "vs") | .stages.return')" 'when the last datagram of each packet was read'
}
# Of each packet, in order: the return of the read that brings the bytes read to its own and those before it.
returns_of_reads() {
  trace-cmd report -t -N -l -i "$results/skbtrail.dat" 2>/dev/null | awk '
    BEGIN { read = packets = 0 }
    function nanoseconds(time) { sub(/:$/, "", time); sub(/\./, "", time); return time }
    function field(name) { match($0, name "[^ ,]*"); return substr($0, RSTART + length(name), RLENGTH - length(name)) }
    / netif_receive_skb: .*dev=vs / { ends[packets++] = received += field(" len=") - 28; next }
    / sock_recv_length: .*protocol = 0x11,/ && !/flags = 0x[0-9a-f]*[2367abef]$/ {  # MSG_PEEK
      length_of[$1] = field("length = ")
      next
    }
    / sys_exit_/ && $1 in length_of {
      bytes += length_of[$1]
      delete length_of[$1]
      while (read < packets && bytes >= ends[read]) { print nanoseconds($3); read++ }
    }'
}
