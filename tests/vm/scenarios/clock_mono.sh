# shellcheck shell=bash
# The clock mono, said explicitly: time stamps lie between what /proc/uptime says before and after.
once=6.1
network=veth
beside=0
options=(--clock mono --profile net-min)
traffic() {
  in_client bash -c 'for i in {1..40}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
record() {
  cp /proc/uptime "/out/$name/uptime.before"
  record_with_skbtrail
  cp /proc/uptime "/out/$name/uptime.after"
  return "$(<"/out/$name/skbtrail.status")"
}
check() {
  nothing_lost
  equal "$(report .capture.clock)" mono 'the clock'
  outcomes_add_up
  devices_agree vs vc
  # Nobody suspends a guest: its uptime is CLOCK_MONOTONIC.
  equal "$(report ".capture | .start_ns / 1e9 >= $(cut -d ' ' -f 1 "$results/uptime.before") - 0.01 and
    (.start_ns + .duration_ns) / 1e9 <= $(cut -d ' ' -f 1 "$results/uptime.after") + 0.01")" true \
    'time stamps within the uptime'
}
