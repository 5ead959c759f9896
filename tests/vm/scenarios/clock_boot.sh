# shellcheck shell=bash
# The clock boot; every other scenario uses mono.
once=6.12
network=veth
beside=0
options=(--clock boot)
traffic() {
  in_client bash -c 'for i in {1..40}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
check() {
  nothing_lost
  equal "$(report .capture.clock)" boot 'the clock'
  events_agree
  outcomes_add_up
  forwards_agree
  devices_agree vs vc
  # Beside what /proc said at both ends, which only means something when both are on one clock.
  equal "$("$skbtrail" sched --format json "$results/skbtrail.dat" |
    jq '[.tasks[].proc | select(. != null and (.agrees | not))] | length')" 0 'tasks whose switches differ'
}
