# shellcheck shell=bash
# perf records the same packets: each tree and each line that its netdev-times prints is in ours.
once=6.12
network=nic
readonly perf_events=(net:net_dev_xmit net:net_dev_queue net:netif_receive_skb net:netif_rx
  skb:consume_skb skb:kfree_skb skb:skb_copy_datagram_iovec napi:napi_poll irq:irq_handler_entry
  irq:irq_handler_exit irq:softirq_entry irq:softirq_exit irq:softirq_raise)
prepare() { start_nginx; }
traffic() { requests 30 small 4 2; }
record() {
  local options_of_perf=() event
  for event in "${perf_events[@]}"; do options_of_perf+=(-e "$event"); done
  perf record -a -k mono -m 4M -N -B -o "/out/$name/perf.data" "${options_of_perf[@]}" \
    -- bash /vm/scenario.sh --record "$name" >"/out/$name/perf.log" 2>&1 || tail -n 5 "/out/$name/perf.log"
  return "$(<"/out/$name/skbtrail.status")"
}

# perf's script with room for the fields that kernels since 5.17 have added behind the ones it knows.
perf_netdev_times() {
  local script
  script=$(find /usr/lib*/perf-core /usr/libexec/perf-core -name netdev-times.py 2>/dev/null | head -n 1)
  sed -E '/^def skb__(kfree|consume)_skb\(/,/:$/ s/\):$/, *args):/' "$script" >"$results/netdev-times.py"
  perf script -i "$results/perf.data" -s "$results/netdev-times.py" >"$results/perf.txt" \
    2>"$results/perf.err" || wrong "perf script fails: $(tail -n 2 "$results/perf.err")"
}
# Trees that received: "CPU: skb SKB LEN, ..., poll DEVICE, ..." in the order of perf's report.
perf_trees() {
  sed -nE 's/^[0-9]+\.[0-9]+sec cpu=([0-9]+)$/tree \1/p
    s/.*netif_receive_skb\(\+.*msec skb=([0-9a-f]+) len=([0-9]+)\)$/skb \1 \2/p
    s/.*napi_poll_exit\(\+.*msec (.*)\)$/poll \1/p' "$results/perf.txt" |
    awk '$1 == "tree" { if (tree) print tree; tree = $2 ":"; next } { tree = tree " " $0 "," }
         END { print tree }' | grep ' skb '
}
our_trees() {
  jq -r '.rx[] | "\(.cpu):" + ([(.packets[] | {time_ns, text: "skb \(.skbaddr) \(.len)"}),
    (.polls[] | {time_ns, text: "poll \(.device)"})] | sort_by(.time_ns) | map(" \(.text),") | add // "")' \
    "$results/rx.json" | grep ' skb '
}
# "DEVICE LEN QUEUED": seconds.
perf_lines() { sed -nE 's/^ +([a-z0-9]+) +([0-9]+) +([0-9.]+)sec .*msec .*/\1 \2 \3/p' "$results/perf.txt"; }
our_lines() { jq -r '.tx[] | "\(.device) \(.len) \(.queue_ns / 1e9)"' "$results/rx.json"; }

check() {
  local cpu
  nothing_lost
  perf_netdev_times
  our_trees >"$results/ours.trees"
  perf_trees >"$results/perf.trees"
  at_least 30 "$(wc -l <"$results/perf.trees")" 'trees of perf'
  # On each CPU those of perf are ours, in our order; perf leaves out those without an interrupt.
  for cpu in 0 1; do
    awk -v cpu="$cpu:" '$1 != cpu { next } FILENAME == ARGV[1] { ours[++n] = $0; next }
         { while (++i <= n && ours[i] != $0) { } }
         i > n { print "    not in ours, or not in this order: " $0; exit }' \
      "$results/ours.trees" "$results/perf.trees"
  done
  our_lines >"$results/ours.lines"
  perf_lines >"$results/perf.lines"
  at_least 100 "$(wc -l <"$results/perf.lines")" 'packets sent as perf says'
  # Each was stamped twice, with little between: 20 ms are a long pause of the emulation.
  awk 'FILENAME == ARGV[1] { device[++n] = $1 " " $2; time[n] = $3; next }
       { best = 0
         for (i = 1; i <= n; ++i) {
           if (taken[i] || device[i] != $1 " " $2) continue
           away = time[i] > $3 ? time[i] - $3 : $3 - time[i]
           if (away < 0.02 && (!best || away < least)) { best = i; least = away }
         }
         if (best) taken[best] = 1
         else if (++missing <= 3) print "    sent, but not in ours: " $0 }' \
    "$results/ours.lines" "$results/perf.lines"
}
