# shellcheck shell=bash
# Three streams at once, and readers that let much of them be coalesced: the addresses of coalesced skbs
# go from one connection to the other.
network=veth
# shellcheck disable=SC2034 # for ./dev test oracles: much is coalesced in backlogs, too
disorder=1
prepare() {
  in_server socat TCP-LISTEN:5202,fork,reuseaddr EXEC:"bash /vm/halting_reader.sh",nofork &
  wait_for 5202
}
write_stream() { for _ in {1..60}; do printf "%04000d" 0; done | in_client socat -u -b 1100 - "TCP:$server:5202,nodelay"; }
traffic() {
  local writers=()
  for _ in 1 2 3; do
    write_stream &
    writers+=($!)
  done
  wait "${writers[@]}"
  until_closed 5202
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  # Of each connection whose data the server has received: how many tasks were given some.
  "$skbtrail" packets --format json "$results/skbtrail.dat" | jq -sc '
    [.[] | select(.legs[-1].device == "vs" and .outcome == "delivered")] | group_by(.flow) |
    map([.[].task.pid] | unique | length)' >"$results/readers"
  equal "$(<"$results/readers")" '[1,1,1]' 'tasks that read each of the streams'
  at_least 200 "$(report '.packets.rx.outcomes.delivered')" 'delivered packets'
}
