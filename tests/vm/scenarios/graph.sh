# shellcheck shell=bash
# The calls of the stack's entry points: on 6.12 among the events, before in the top buffer.
# Others' choice of functions and tracer is there again afterwards.
network=veth
beside=0
readonly functions=net_rx_action,__netif_receive_skb,ip_rcv,tcp_v4_rcv,udp_rcv,__dev_queue_xmit,dev_hard_start_xmit,ip_output
options=(--graph "$functions")
readonly top=/sys/kernel/tracing
prepare() {
  start_nginx
  # Something of somebody's, which --graph must put back.
  printf 'tcp_v4_rcv\nudp_sendmsg\n' >$top/set_ftrace_filter
  echo 512 >$top/buffer_size_kb
  echo 0 >$top/options/overwrite
}
traffic() {
  requests 40 small 1
  in_client bash -c 'for i in {1..20}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
files_of_graph() {
  local file
  for file in current_tracer tracing_on trace_clock buffer_size_kb set_event set_ftrace_filter \
    set_graph_function max_graph_depth options/overwrite options/funcgraph-irqs saved_cmdlines_size; do
    echo "== $file"
    cat "$top/$file"
  done
  ls $top/instances
}
record() {
  files_of_graph >"/out/$name/graph.before"
  record_with_skbtrail
  files_of_graph >"/out/$name/graph.after"
  echo >$top/set_ftrace_filter
  echo 1 >$top/options/overwrite
  return "$(<"/out/$name/skbtrail.status")"
}
# "KIND FUNCTION TASK" of every entry and exit, in order. -R: or the pair of a call that calls
# nothing is one line. Every CPU has an idle task, and all of them have the pid 0.
graph_lines() {
  trace-cmd report -R -i "$results/skbtrail.dat" 2>/dev/null |
    sed -nE 's/^.*-([0-9]+) +\[([0-9]+)\] .* funcgraph_(entry|exit): .*func=([A-Za-z0-9_.]+).*/\3 \4 \1 \2/p' |
    awk '{ print $1, $2, $3 == 0 ? "idle" $4 : $3 }'
}
check() {
  diff "$results/graph.before" "$results/graph.after" >"$results/graph.diff" ||
    wrong "files of tracefs are not as before: $results/graph.diff"
  equal "$(report .capture.lost_events)" 0 'lost events'
  equal "$(report '.capture.damage | length')" 0 'damage'
  outcomes_add_up
  softirqs_agree
  devices_agree vs vc
  graph_lines >"$results/graph.txt"
  at_least 100 "$(grep -c '^entry' "$results/graph.txt")" 'calls'
  # Per function as many are left as are entered; within a task the innermost is left first.
  awk '$1 == "entry" { stack[$3, ++depth[$3]] = $2; next }
       depth[$3] == 0 { print "    left, never entered: " $2; next }
       stack[$3, depth[$3]--] != $2 { print "    left out of order: " $2 }
       END { for (task in depth) if (depth[task]) print "    never left: " depth[task] " of task " task }' \
    "$results/graph.txt" | sort | uniq -c | head -n 5
  equal "$(cut -d ' ' -f 2 "$results/graph.txt" | sort -u | paste -sd ,)" \
    "$(tr , '\n' <<<"$functions" | sort -u | paste -sd ,)" 'functions called'
}
