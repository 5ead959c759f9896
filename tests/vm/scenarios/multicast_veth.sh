# shellcheck shell=bash
# Two sockets of a multicast group: one of them is given clones.
once=6.12
network=veth
prepare() {
  local i
  for i in 1 2; do
    in_server socat -u UDP4-RECV:5000,reuseaddr,ip-add-membership=239.1.1.1:"$server" "OPEN:/tmp/received.$i,creat" &
  done
  for i in {1..100}; do
    if (($(in_server ss -Hlnu 'sport = :5000' | wc -l) == 2)); then return 0; fi
    doze 0.1
  done
  return 1
}
traffic() {
  local i
  for i in {1..50}; do
    echo "datagram $i"
    sleep 0.02
  done | in_client socat - UDP4-DATAGRAM:239.1.1.1:5000,ip-multicast-if="$client"
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  equal "$(report '.packets.rx.outcomes.delivered')" "$(device_delta vs "$rx_packets")" 'delivered packets'
  at_least 20 "$(device_delta vs "$rx_packets")" 'datagrams'
  consume_skb_has_place || return 0
  equal "$(readers)" "$("$skbtrail" packets --format json "$results/skbtrail.dat" | jq -r .task.pid | sort | uniq -c)" \
    'datagrams by who read and freed them'
}
# Of the skbs that were received, not of clones.
readers() {
  trace-cmd report -N -l -i "$results/skbtrail.dat" 2>/dev/null |
    awk '/ netif_receive_skb: / { match($0, /skbaddr=[^ ]*/); received[substr($0, RSTART, RLENGTH)] = 1 }
      / consume_skb: .*udp_recvmsg/ {
        match($0, /skbaddr=[^ ]*/)
        if (substr($0, RSTART, RLENGTH) in received) {
          delete received[substr($0, RSTART, RLENGTH)]
          split($1, task, "-")
          print task[2]
        }
      }' | sort | uniq -c
}
