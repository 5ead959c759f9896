# shellcheck shell=bash
# nginx over ESP: workers decrypt, and run TCP.
once=6.12
network=ipsec
prepare() { start_nginx; }
traffic() {
  requests 20 small 4 2
  requests 1 1m 1 1
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  # Before 6.12 its order alone tells which packet a worker works on.
  if tcp_probe_names_skb; then few_unknown; fi
  forwards_agree
  interrupts_agree
  nic_devices_agree n0 n1
  switches_agree nginx
}
