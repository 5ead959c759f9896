# shellcheck shell=bash
# A rule of nftables drops 60 datagrams; it counts them itself.
once=6.12
network=veth
beside=0
prepare() {
  in_server nft -f - <<'NFT'
table ip filter {
  chain input { type filter hook input priority 0; udp dport 9 counter drop; }
}
NFT
}
traffic() {
  in_client bash -c 'for i in {1..60}; do echo "$i" >"/dev/udp/$0/9"; done' "$server"
}
record() {
  record_with_skbtrail
  in_server nft list ruleset >"/out/$name/after/nft"
  return "$(<"/out/$name/skbtrail.status")"
}
check() {
  local counted
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vc
  counted=$(sed -nE 's/.*counter packets ([0-9]+) .*/\1/p' "$results/after/nft")
  equal "$counted" 60 'packets that the rule counts'
  equal "$(report '[.drops[] | select(.reason == "NETFILTER_DROP") | .packets] | add')" "$counted" \
    'drops NETFILTER_DROP'
}
