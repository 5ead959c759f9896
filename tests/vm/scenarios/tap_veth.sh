# shellcheck shell=bash
# tcpdump on both ends of a veth: it is given clones.
once=6.12
network=veth
prepare() {
  start_nginx
  tap sv vs
  tap cl vc
}
# tap NAMESPACE DEVICE: returns when packets are being read.
tap() {
  local i
  ip netns exec "$1" tcpdump -Z root -U -n -i "$2" -w "/tmp/$2.pcap" 2>"/tmp/$2.err" &
  for i in {1..100}; do
    if grep -q 'listening on' "/tmp/$2.err"; then return 0; fi
    doze 0.1
  done
  cat "/tmp/$2.err" >&2
  return 1
}
traffic() { requests 30 small 4 2; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
}
