# shellcheck shell=bash
# The clock local; every other scenario uses mono.
once=6.12
network=veth
beside=0
options=(--clock local)
traffic() {
  in_client bash -c 'for i in {1..40}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
check() {
  nothing_lost
  equal "$(report .capture.clock)" local 'the clock'
  events_agree
  outcomes_add_up
  forwards_agree
  devices_agree vs vc
}
