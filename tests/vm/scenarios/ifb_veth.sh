# shellcheck shell=bash
# What a veth receives goes through the queue of an ifb.
once=6.12
network=ifb
prepare() { start_nginx; }
traffic() { requests 40 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  softirqs_agree
  devices_agree vc
  switches_agree nginx
  equal "$(report '.packets.rx.outcomes.forwarded')" "$(device_delta ifb0 "$tx_packets")" 'forwarded packets'
  at_least 100 "$(device_delta ifb0 "$tx_packets")" 'packets of ifb0'
}
