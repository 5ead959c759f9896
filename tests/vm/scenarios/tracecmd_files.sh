# shellcheck shell=bash
# The same traffic in every format that trace-cmd writes: 7 and 6, plain and compressed.
once=6.12
network=veth
traffic() {
  in_client bash -c 'for i in {1..60}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
record() {
  record_with_tracecmd --compression none -C mono -e net -e skb -e sched:sched_switch -e irq
}
check() {
  local copy
  trace-cmd convert -i "$results/tracecmd.dat" -o "$results/version6.dat" --file-version 6 &>/dev/null
  trace-cmd convert -i "$results/tracecmd.dat" -o "$results/zstd.dat" --compression zstd &>/dev/null
  for copy in tracecmd version6 zstd; do read_alike "$results/$copy.dat"; done
  at_least 500 "$(events_of_file "$results/tracecmd.dat" | wc -l)" 'events'
  for copy in version6 zstd; do
    "$skbtrail" netdev-times "$results/$copy.dat" | cmp - \
      <("$skbtrail" netdev-times "$results/tracecmd.dat") || wrong "netdev-times differs for $copy"
  done
  equal "$("$skbtrail" report --format json "$results/version6.dat" | jq .capture.file_version)" 6 \
    'file version'
  equal "$("$skbtrail" report --format json "$results/zstd.dat" | jq -r .capture.compression)" zstd \
    'compression'
}
