# shellcheck shell=bash
# A queue that cuts what it is given and takes turns between connections (sch_cake): the order of the
# segments does not tell whose they are, but their length does.
once=6.12
network=veth
prepare() {
  local port
  for port in 5202 5203; do
    in_server socat -u "TCP-LISTEN:$port,reuseaddr,fork" OPEN:/dev/null &
    wait_for "$port"
  done
  tc -n cl qdisc replace dev vc root cake bandwidth 20mbit
}
write_stream() { head -c 250000 /dev/zero | in_client socat -u -b 50000 - "TCP:$server:$1,mss=$2"; }
traffic() {
  local writers=()
  for _ in 1 2; do
    write_stream 5202 1000 &
    writers+=($!)
    write_stream 5203 1400 &
    writers+=($!)
  done
  wait "${writers[@]}"
  until_closed 5202
  until_closed 5203
}
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  "$skbtrail" packets --format json "$results/skbtrail.dat" >"$results/packets"
  jq -sc '[.[] | select(.legs[-1].device == "vs") | select(
      (.legs[-1].len == 1040 and (.flow // "" | endswith(":5203"))) or
      (.legs[-1].len == 1440 and (.flow // "" | endswith(":5202")))) | .id] | length' \
    "$results/packets" >"$results/others"
  # A rest may happen to be as long as the other's segments: tcp_probe says so, it names the socket.
  grep -cE ' tcp_probe: .* src=[^ ]*:(5203 .* data_len=988|5202 .* data_len=1388) ' \
    "$results/skbtrail.txt" >"$results/rests" || true
  equal "$(<"$results/others")" "$(<"$results/rests")" 'segments that are said to be of the other connection'
  jq -sc '[.[] | select(.legs[-1].device == "vs" and (.parent // 0) > 0)] | group_by(.parent) | map(
      map(.legs[-1].len) | select(max == 1440 and index(1040))) | length' "$results/packets" >"$results/mixed"
  equal "$(<"$results/mixed")" 0 'packets with segments of two lengths'
  at_least 1 "$(report '.packets.tx.unknown_causes["segments mixed"] // 0')" 'packets of which it is not known'
  jq -sc '[.[] | select(.legs[-1].device == "vs" and .outcome == "delivered")] | length' "$results/packets" >"$results/delivered"
  at_least 200 "$(<"$results/delivered")" 'delivered packets'
}
