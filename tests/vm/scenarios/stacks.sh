# shellcheck shell=bash
# trace-cmd's own capture with a call stack behind every event.
once=6.12
network=veth
traffic() {
  in_client bash -c 'for i in {1..60}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
record() {
  record_with_tracecmd -C mono -T -e net:net_dev_queue -e skb:kfree_skb -e net:netif_receive_skb
}
check() {
  events_of_file "$results/tracecmd.dat" >"$results/tracecmd.txt"
  read_alike "$results/tracecmd.dat"
  at_least 60 "$(grep -c ' kernel_stack:' "$results/tracecmd.txt")" 'stacks'
  at_least 60 "$(grep -c ' net_dev_queue:' "$results/tracecmd.txt")" 'packets queued'
  equal "$(grep -c ' kernel_stack:' "$results/tracecmd.txt")" \
    "$(grep -vc ' kernel_stack:' "$results/tracecmd.txt")" 'stacks against events'
}
