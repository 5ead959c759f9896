#!/bin/bash
# usage: peers.sh SKBTRAIL [CAPTURE]
# Events per second of skbtrail's reports and of `trace-cmd report` on one capture, in one table: best of
# three runs each, output to /dev/null, file in the page cache. Without CAPTURE a few seconds of veth
# traffic are recorded (root) and kept in ${XDG_CACHE_HOME:-~/.cache}/skbtrail-bench for the next time.
set -euo pipefail

readonly runs=3
skbtrail=$(realpath "$1")
capture=${2:-}

say() { printf 'peers: %s\n' "$*" >&2; }

record_capture() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/skbtrail-bench
  capture=$cache/veth.dat
  [[ ! -e $capture ]] || return 0
  ((EUID == 0)) || {
    say "no capture given, none in $cache, and recording one needs root"
    exit 1
  }
  mkdir -p "$cache"
  "$(dirname "$0")/../live/demo.sh" --record "$skbtrail" "$capture.part"
  mv "$capture.part" "$capture"
}

# The number that `trace-cmd report` counts, so that both sides are measured against the same work.
count_events() { trace-cmd report -i "$1" 2>/dev/null | grep -c ': '; }

# best COMMAND...: seconds of the fastest run.
best() {
  local i seconds best='' TIMEFORMAT=%R
  for ((i = 0; i < runs; i++)); do
    seconds=$({ time "$@" >/dev/null 2>&3; } 2>&1 3>/dev/null) || {
      say "failed: $*"
      return 1
    }
    if [[ ! $best ]] || awk "BEGIN { exit !($seconds < $best) }"; then best=$seconds; fi
  done
  echo "$best"
}

measure() {
  local name=$1 seconds
  shift
  seconds=$(best "$@")
  [[ ${reference:-} ]] || reference=$seconds
  awk -v name="$name" -v seconds="$seconds" -v events="$events" -v reference="$reference" 'BEGIN {
    if (seconds == 0) seconds = 0.001
    printf "%-26s %9.3f %12.0f %9.1f\n", name, seconds, events / seconds, reference / seconds
  }'
}

[[ $capture ]] || record_capture
cat "$capture" >/dev/null
events=$(count_events "$capture")
printf '%s: %s events, %s bytes\n\n' "${capture##*/}" "$events" "$(stat -c %s "$capture")"
printf '%-26s %9s %12s %9s\n' '' seconds events/s ratio
measure "trace-cmd report" trace-cmd report -i "$capture"
measure "skbtrail report" "$skbtrail" report -i "$capture"
measure "skbtrail netdev-times" "$skbtrail" netdev-times -i "$capture"
