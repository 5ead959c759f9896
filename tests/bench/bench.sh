#!/bin/bash
# usage: bench.sh SKBTRAIL BENCH_FOLDER [CAPTURE]
# What skbtrail's readers cost, beside their peers, on one capture in one run: events a second, CPU time,
# anonymous memory; then what more CPUs cost, how time and memory grow with the capture, and how long it
# takes until there is something to read. BENCH_FOLDER is where the programs of this folder were built.
#
# Without CAPTURE one of at least 5 million events is recorded (root): the profile net under a saturating
# load between two network namespaces. It is kept in ${XDG_CACHE_HOME:-~/.cache}/skbtrail-bench, for its
# owner only, for the next time.
#
# A figure is the best of some runs with the file in the page cache, and rows take turns: on a machine that
# does other things too, compare ratios, and CPU seconds rather than seconds. Growth, and what report is
# measured by, are compared within a round, because such a machine is not as fast in one as in the next.
set -euo pipefail

readonly runs=${SKBTRAIL_BENCH_RUNS:-5} least_events=5000000
skbtrail=$(realpath "$1")
folder=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
capture=${3:-}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/skbtrail-bench
scratch=''

say() { printf 'bench: %s\n' "$*" >&2; }
clean_up() { [[ ! $scratch ]] || rm -rf "$scratch"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

walks() { "$folder/bench_walks" "$@"; }

# --- captures ---------------------------------------------------------------------------------------

record_capture() {
  local seconds events
  capture=$cache/net.dat
  [[ ! -e $capture ]] || return 0
  ((EUID == 0)) || {
    say "no capture given, none in $cache, and recording one needs root"
    exit 1
  }
  for seconds in 6 12 24 48; do
    say "recording $seconds seconds of a saturating load"
    "$here/load.sh" "$seconds" "$skbtrail" record -q -o "$capture.part" --profile net \
      --buffer-size 262144 --
    events=$(walks pages "$capture.part")
    ((events < least_events)) || break
  done
  mv "$capture.part" "$capture"
}

record_perf() {
  local events
  [[ ! -e $cache/perf.data ]] || return 0
  ((EUID == 0)) || return 1
  # Those that perf's own netdev-times-record records.
  events=net:net_dev_xmit,net:net_dev_queue,net:netif_receive_skb,net:netif_rx,skb:consume_skb
  events+=,skb:kfree_skb,skb:skb_copy_datagram_iovec,napi:napi_poll,irq:irq_handler_entry
  events+=,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit,irq:softirq_raise
  "$here/load.sh" 2 perf record -q -a -m 16M -o "$cache/perf.part" -e "$events" -- >&2 || return 1
  mv "$cache/perf.part" "$cache/perf.data"
}

# Out of the page cache.
forget() {
  sync "$1"
  dd if="$1" iflag=nocache count=0 status=none
}

# What writing a file leaves in the page cache may lie in smaller pieces than what reading brings there,
# and cost walks over a mapping (kbuffer's) twice the time; until it is on the disk, everybody's. To be
# done before each round: a machine may take back what a file has of its memory at any time.
read_anew() {
  forget "$1"
  cat "$1" >/dev/null
}

# --- measuring --------------------------------------------------------------------------------------

# Remembers the best of what was measured of a row: seconds, CPU seconds, anonymous KiB (the highest).
declare -A best_seconds best_cpu peak_kib
note() {
  local row=$1 seconds=$2 cpu=$3 kib=$4
  [[ ${best_seconds[$row]:-} ]] || best_seconds[$row]=$seconds best_cpu[$row]=$cpu peak_kib[$row]=$kib
  if awk "BEGIN { exit !($seconds < ${best_seconds[$row]}) }"; then best_seconds[$row]=$seconds; fi
  if awk "BEGIN { exit !($cpu < ${best_cpu[$row]}) }"; then best_cpu[$row]=$cpu; fi
  if ((kib > peak_kib[$row])); then peak_kib[$row]=$kib; fi
}

# measure ROW COMMAND...: one run for its times, and one for its memory.
measure() {
  local row=$1 times kib
  shift
  if ! times=$("$folder/bench_measure" "$@" 2>/dev/null) ||
    ! kib=$("$folder/bench_measure" --memory "$@" 2>/dev/null); then
    say "failed: $*"
    return 1
  fi
  # shellcheck disable=SC2086  # two words
  note "$row" $times "$kib"
}

mean() { awk '{ for (i = 1; i <= NF; i++) sum += $i; printf "%.4f", sum / NF }' <<<"$1"; }
ascending() { tr ' ' '\n' <<<"$1" | grep . | sort -n; }
lowest() { ascending "$1" | head -n 1; }
highest() { ascending "$1" | tail -n 1; }
# Of an odd number.
median() { ascending "$1" | awk '{ at[NR] = $1 } END { print at[(NR + 1) / 2] }'; }
ratio() { awk "BEGIN { printf \"%.1f\", ($1) / ($2) }"; }

# --- the table --------------------------------------------------------------------------------------

print_row() {
  local row=$1 events=$2 reference=$3
  printf '%-34s %8.3f %8.3f %10.2f %8s %8s %8.1f\n' "$row" "${best_seconds[$row]}" "${best_cpu[$row]}" \
    "$(awk "BEGIN { print $events / ${best_seconds[$row]} / 1e6 }")" \
    "$(ratio "$events / ${best_seconds[$row]}" "$reference")" \
    "$(ratio "$events / ${best_cpu[$row]}" "$reference_cpu")" \
    "$(awk "BEGIN { print ${peak_kib[$row]} / 1024 }")"
}

compare() {
  local run row events reference rows verb
  events=$(walks pages "$capture")
  printf '%s: %s events, %s bytes, best of %s runs, %s CPUs, load %s\n\n' "${capture##*/}" "$events" \
    "$(stat -c %s "$capture")" "$runs" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
  for ((run = 0; run < runs; run++)); do
    read_anew "$capture"
    # The slow one once: it takes as long as all others together.
    ((run > 0)) || measure 'trace-cmd report' trace-cmd report -i "$capture"
    ((run > 1)) || measure 'tracecmd_iterate_events' "$folder/bench_walks" tracecmd "$capture"
    measure 'kbuffer walk' "$folder/bench_walks" kbuffer "$capture"
    measure 'skbtrail page walk' "$folder/bench_walks" pages "$capture"
    measure 'skbtrail merge' "$folder/bench_walks" merge "$capture"
    measure 'skbtrail report' "$skbtrail" report -i "$capture"
    for verb in packets netdev-times drops sched cpu syscalls; do
      measure "skbtrail $verb" "$skbtrail" "$verb" -i "$capture"
    done
  done
  reference=$(awk "BEGIN { print $events / ${best_seconds['trace-cmd report']} }")
  reference_cpu=$(awk "BEGIN { print $events / ${best_cpu['trace-cmd report']} }")
  printf '%-34s %8s %8s %10s %8s %8s %8s\n' '' seconds 'CPU s' 'M event/s' ratio 'CPU' 'anon MiB'
  rows=('trace-cmd report' 'tracecmd_iterate_events' 'kbuffer walk' 'skbtrail page walk'
    'skbtrail merge' 'skbtrail report' 'skbtrail packets' 'skbtrail netdev-times' 'skbtrail drops'
    'skbtrail sched' 'skbtrail cpu' 'skbtrail syscalls')
  for row in "${rows[@]}"; do print_row "$row" "$events" "$reference"; done
  compare_perf "$reference"
}

# seconds_of COMMAND...: of some runs, in the mean.
seconds_of() {
  local _ all=''
  for _ in 1 2 3 4 5; do all+="$("$folder/bench_measure" "$@" 2>/dev/null | cut -d' ' -f1) "; done
  mean "$all"
}

# report against the two that it is to be measured by. The best of each may be minutes apart, and of
# another speed of the machine: here both are measured in a round, and told are the rounds in the middle,
# the lowest and the highest.
against() {
  local peer before seconds ratios
  local -a report=("$skbtrail" report -i "$capture")
  printf '\n%-34s %8s %8s %8s\n' 'report against' 'middle x' lowest highest
  for peer in 'trace-cmd report' 'kbuffer walk'; do
    ratios=''
    for _ in 1 2 3; do
      read_anew "$capture"
      before=$(seconds_of "${report[@]}")
      if [[ $peer == 'kbuffer walk' ]]; then
        seconds=$(seconds_of "$folder/bench_walks" kbuffer "$capture")
      else # once: it takes as long as a hundred of the others
        seconds=$("$folder/bench_measure" trace-cmd report -i "$capture" 2>/dev/null | cut -d' ' -f1)
      fi
      ratios+="$(ratio "$seconds" "$(mean "$before $(seconds_of "${report[@]}")")") "
    done
    printf '%-34s %8s %8s %8s\n' "$peer" "$(median "$ratios")" "$(lowest "$ratios")" "$(highest "$ratios")"
  done
}

# perf's script was written for the events of old kernels: its handlers are told to take further fields.
compare_perf() {
  local script=/usr/lib/perf-core/scripts/python/netdev-times.py events
  local row="perf netdev-times (own recording)"
  if [[ ! -e $script ]] || ! command -v perf >/dev/null; then
    printf '%-34s skipped: perf and its netdev-times.py are not installed (linux-perf)\n' "$row"
    return
  fi
  record_perf || {
    printf '%-34s skipped: perf record does not work here, or not without root\n' "$row"
    return
  }
  # shellcheck disable=SC2016
  sed -E ':a;/^def [a-z_]+__[a-z_]+\(/{/\):/!{N;ba};s/\):/, *rest):/}' "$script" >"$scratch/netdev-times.py"
  events=$(perf script -i "$cache/perf.data" -F event 2>/dev/null | wc -l)
  measure "$row" perf script -i "$cache/perf.data" -s "$scratch/netdev-times.py" tx rx || {
    printf '%-34s skipped: perf script has no Python here\n' "$row"
    return
  }
  print_row "$row" "$events" "$1"
}

# --- growth and latency -----------------------------------------------------------------------------

# print_beside ROW EVENTS SECONDS: a row of those whose CPU time is compared with SECONDS.
print_beside() {
  local row=$1 events=$2 base=$3
  printf '%-34s %12s %8.3f %8s %8.1f\n' "$row" "$events" "${best_cpu[$row]}" \
    "$(ratio "${best_cpu[$row]}" "$base")" "$(awk "BEGIN { print ${peak_kib[$row]} / 1024 }")"
}

# Sizes take turns, and in a round each is read until it has had about as many events as the others. What
# is compared are their means of a round, and told is the round in the middle: of the best runs, the short
# ones would be those that the machine's other work spared.
growth() {
  local verb times row run file kib cpu
  local -A runs_of=([1]=10 [3]=3 [10]=1) events
  for times in 1 3 10; do
    file=$scratch/$times.dat
    "$folder/bench_repeat" "$capture" "$file" "$times"
    events[$times]=$(walks pages "$file")
  done
  printf '\n%-34s %12s %8s %8s %8s\n' 'growth' events seconds 'time x' 'anon MiB'
  for verb in report packets netdev-times; do
    local -A means=() ratios=()
    for _ in 1 2 3; do
      local -A spent=()
      for times in 1 3 10; do
        read_anew "$scratch/$times.dat"
        for ((run = 0; run < runs_of[$times]; run++)); do
          cpu=$("$folder/bench_measure" "$skbtrail" "$verb" -i "$scratch/$times.dat" 2>/dev/null | cut -d' ' -f2)
          spent[$times]+="$cpu "
        done
        means[$times]+="$(mean "${spent[$times]}") "
        ratios[$times]+="$(ratio "$(mean "${spent[$times]}")" "$(mean "${spent[1]}")") "
      done
    done
    for times in 1 3 10; do
      row="$verb, ${times}x"
      kib=$("$folder/bench_measure" --memory "$skbtrail" "$verb" -i "$scratch/$times.dat" 2>/dev/null)
      printf '%-34s %12s %8.3f %8s %8.1f\n' "$row" "${events[$times]}" "$(median "${means[$times]}")" \
        "$(median "${ratios[$times]}")" "$(awk "BEGIN { print $kib / 1024 }")"
    done
  done
  printf '(seconds of CPU, in the middle of three rounds: other work on the machine does not count)\n'
}

# The same events as of a machine with more CPUs.
cpus() {
  local slices verb row events base file
  printf '\n%-34s %12s %8s %8s %8s\n' 'CPUs' events seconds 'time x' 'anon MiB'
  for verb in merge report; do
    for slices in 1 8 64; do
      file=$scratch/spread-$slices.dat
      [[ -e $file ]] || "$folder/bench_spread" "$capture" "$file" "$slices"
      read_anew "$file"
      row="$verb, $slices times the CPUs"
      events=$(walks pages "$file")
      for _ in 1 2 3; do
        if [[ $verb == merge ]]; then
          measure "$row" "$folder/bench_walks" merge "$file"
        else
          measure "$row" "$skbtrail" report -i "$file"
        fi
      done
      ((slices > 1)) || base=${best_cpu[$row]}
      print_beside "$row" "$events" "$base"
    done
  done
  rm -f "$scratch"/spread-*.dat
}

# What a capture costs that nobody has looked at for long.
cold() {
  local run row
  for ((run = 0; run < 3; run++)); do
    forget "$capture"
    measure 'cat, from the disk' cat "$capture"
    forget "$capture"
    measure 'report, from the disk' "$skbtrail" report -i "$capture"
  done
  printf '\n%-34s %8s %8s\n' 'not in the page cache' seconds 'time x'
  for row in 'cat, from the disk' 'report, from the disk'; do
    printf '%-34s %8.3f %8s\n' "$row" "${best_seconds[$row]}" \
      "$(ratio "${best_seconds[$row]}" "${best_seconds['cat, from the disk']}")"
  done
}

# best_of COMMAND...: the smallest first figure of some runs.
best_of() {
  local _
  for _ in 1 2 3 4 5; do "$folder/bench_measure" "$@" 2>/dev/null; done | sort -n | head -n 1 | cut -d' ' -f1
}

latency() {
  "$folder/bench_large_head" "$scratch/head.dat"
  printf '\n%-60s %10s\n' 'latency' seconds
  printf '%-60s %10s\n' 'netdev-times to its first line' \
    "$(best_of --first-line "$skbtrail" netdev-times -i "$capture")" \
    'netdev-times to its first line, 10x' \
    "$(best_of --first-line "$skbtrail" netdev-times -i "$scratch/10.dat")" \
    'open: 2,000 formats, 200,000 symbols, whole process' \
    "$(best_of "$folder/bench_walks" open "$scratch/head.dat")" \
    'the same and the name of an address' \
    "$(best_of "$folder/bench_walks" symbols "$scratch/head.dat")" \
    'report of such a capture without events' "$(best_of "$skbtrail" report -i "$scratch/head.dat")"
}

(umask 077 && mkdir -p "$cache")
umask 077
[[ $capture ]] || record_capture
scratch=$(mktemp -d "$cache/run-XXXXXX")
compare
against
cpus
growth
cold
latency
