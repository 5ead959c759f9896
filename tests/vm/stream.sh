# shellcheck shell=bash
# Which call must have read which segment of a stream that a task reads with read(): a tap sees the
# segments' sequence numbers, and the calls how much each of them read. Sourced after check.sh.

# stream_agrees DEVICE PCAP: segments that DEVICE received and PCAP has, against calls of socat.
# Sets `segments`, `right`: given to the call that read their last byte, `at`: where in the stream
# the first one begins, `others`: how many that came behind it overtook others, too, before its turn
# came, and `first`: "right", or what was said of it.
stream_agrees() {
  frames "$results/$2" >"$results/frames"
  arrivals "$1" >"$results/arrivals"
  reads >"$results/reads"
  equal "$(wc -l <"$results/arrivals")" "$(wc -l <"$results/frames")" 'packets against those of the tap'
  local wrong
  read -r segments right wrong at others first < <(judge)
  equal "$wrong" 0 'segments given to another call, and said to be exact'
}

# Of each packet that the device received, in order: outcome, confidence, when the call returned that
# read it.
arrivals() {
  "$skbtrail" packets --format json "$results/skbtrail.dat" |
    jq -sr --arg device "$1" '
      [.[].legs[] | select(.direction == "rx" and .device == $device)] | sort_by(.birth_ns)[] |
      [.outcome, .confidence, (.stages["return"] // 0)] | join(" ")'
}
# Where in the stream its bytes are: the first, and the one behind the last; 0 0 where it has none.
frames() {
  tcpdump -n -t -S -r "$1" 2>/dev/null |
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
# another and said to be exact; of the first one where in the stream it is, how many overtook others
# before its turn came, and whether it is right.
judge() {
  paste -d ' ' "$results/frames" "$results/arrivals" | awk -v reads="$results/reads" '
    BEGIN {
      while ((getline line <reads) > 0) { split(line, of, " "); time[++calls] = of[1]; end[calls] = of[2] }
      next_byte = 0
    }
    $2 == 0 { next }
    segments && next_byte < at && $3 != "dropped" {
      others += $1 > next_byte
      here[$1] = $2
      while (next_byte in here) next_byte = here[next_byte]
    }
    $2 in seen { next }
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
    END { print segments + 0, right + 0, wrong + 0, at + 0, others + 0, first }'
}
