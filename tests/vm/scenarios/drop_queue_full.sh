# shellcheck shell=bash
# A queue that is too short for its rate: what it drops was never sent.
network=veth
prepare() { ip netns exec cl tc qdisc add dev vc root tbf rate 500kbit burst 2k limit 3k; }
traffic() {
  in_client bash -c 'printf -v kilobyte "%01000d" 1
    for i in {1..100}; do echo "$kilobyte" >"/dev/udp/$0/9"; done 2>/dev/null' "$server" || true
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs
  at_least 10 "$(queue_drops cl vc)" 'drops of the queue, as tc says'
  equal "$(report '[.drops[] | select(.reason == "QDISC_DROP") | .packets] | add')" \
    "$(queue_drops cl vc)" 'drops QDISC_DROP'
}
