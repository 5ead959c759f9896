# shellcheck shell=bash
# Segments that are lost and that overtake others, and a reader that is slower than they come: what it
# reads has been coalesced in the socket. A tap behind the sender's queue sees sequence numbers: which
# call must have read which segment. The first segment with data opens the connection.
network=veth
# shellcheck disable=SC2034 # for ./dev test oracles
disorder=1
prepare() {
  in_client ethtool -K vc tso off gso off
  tc -n cl qdisc replace dev vc root netem delay 2ms reorder 3% loss 1% limit 1000
  in_server socat -u -b 900 TCP-LISTEN:5202,defer-accept=5 OPEN:/tmp/received,creat &
  wait_for 5202
  tap cl vc --direction=out tcp
}
traffic() { head -c 600000 /dev/zero | in_client socat -u -b 1400 - "TCP:$server:5202"; }
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs
  frames >"$results/frames"
  arrivals >"$results/arrivals"
  reads >"$results/reads"
  equal "$(wc -l <"$results/arrivals")" "$(wc -l <"$results/frames")" 'packets against those of the tap'
  local segments right wrong at first
  read -r segments right wrong at first < <(judge)
  at_least 400 "$segments" 'segments with data'
  # Before 6.3 nothing tells when one is read that has overtaken others.
  if ((at > 0 && $(event_count sock:sk_data_ready) == 0)); then
    equal "${first%% *}" delivered 'the first of them, which came too early'
  else
    equal "$first" right 'the first of them'
  fi
  equal "$wrong" 0 'segments given to another call, and said to be exact'
  # Before 6.3 only copies tell the order.
  (($(event_count sock:sk_data_ready) == 0)) ||
    at_least $((segments * 80 / 100)) "$right" "segments given to the right call, of $segments"
}

# Of each packet that vs received, in order: outcome, confidence, when the call returned that read it.
arrivals() {
  "$skbtrail" packets --format json "$results/skbtrail.dat" |
    jq -sr '[.[].legs[] | select(.direction == "rx" and .device == "vs")] | sort_by(.birth_ns)[] |
      [.outcome, .confidence, (.stages["return"] // 0)] | join(" ")'
}
# Where in the stream its bytes are: the first, and the one behind the last; 0 0 where it has none.
frames() {
  tcpdump -n -t -S -r "$results/vc.pcap" 2>/dev/null |
    sed -E 's/.* Flags \[S\], seq ([0-9]+),.*/SYN \1/; t; s/.* seq ([0-9]+):([0-9]+),.*/data \1 \2/; t; s/.*/none/' |
    awk '
      $1 == "SYN" { base = $2 + 1 }
      $1 == "data" { print place($2), place($3); next }
      { print 0, 0 }
      function place(seq) { return (seq - base + 2 ^ 32) % 2 ^ 32 }'
}
# Of each of the server's reads: when it returned, and how many bytes had been read by then.
reads() {
  trace-cmd report -N -t -i "$results/skbtrail.dat" 2>/dev/null |
    sed -nE "s/^ *socat-$(awk '$2 == "socat" { print $1 }' "$results/switches.before") .* ([0-9]+)\.([0-9]{9}): sys_exit_read: +0x([0-9a-f]{1,4})$/\1\2 \3/p" |
    while read -r time bytes; do echo "$time $((16#$bytes))"; done |
    awk '{ sum += $2; print $1, sum }'
}
# Segments whose last byte had not come before; those given to the call that read it; those given to
# another and said to be exact; of the first one where in the stream it is, and whether it is right.
judge() {
  paste -d ' ' "$results/frames" "$results/arrivals" | awk -v reads="$results/reads" '
    BEGIN { while ((getline line <reads) > 0) { split(line, of, " "); time[++calls] = of[1]; end[calls] = of[2] } }
    $2 == 0 || $2 in seen { next }
    {
      seen[$2]
      ++segments
      call = 1
      while (call <= calls && end[call] < $2) ++call
      is_right = $3 == "delivered" && $5 == time[call]
      right += is_right
      wrong += $3 == "delivered" && !is_right && $4 == "exact"
      if (segments == 1) at = $1
      if (segments == 1) first = is_right ? "right" : $3 " by " $5 " and not " time[call]
    }
    END { print segments + 0, right + 0, wrong + 0, at + 0, first }'
}
