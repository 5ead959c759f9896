#!/bin/bash
# usage: fixtures.sh --list KERNEL [SCENARIO...]  which of them become fixtures of that kernel
#        fixtures.sh SKBTRAIL FOLDER [SCENARIO...]
#        fixtures.sh --live-formats               format texts of the running kernel, as root
# Turns results of tests/vm/run.sh, in FOLDER/KERNEL/SCENARIO, into fixtures: the capture as
# tests/data/KERNEL-SCENARIO.dat and what is known about it from elsewhere (truth.sh) as .json
# beside it. FOLDER is only read. Without SCENARIO all of them, and what is no fixture any more goes.
# Exit status 1: one was refused, because its checks fail or it is too large; the others are written.
# What was looked at stays in build/fixtures.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here
readonly data=${here%/vm}/data work=${here%/tests/vm}/build/fixtures all_kernels=(6.1 6.12)
readonly largest=$((1 << 20)) all_together=$((15 << 20))
source "$here/check.sh"

# NAME CONTAINER KERNEL...: NAME is a scenario, or SCENARIO-VARIANT. `as_is` is the file as it was
# recorded; for `zstd` and `v6` trace-cmd converts it, and keeps our options.
fixtures() {
  cat <<'LIST'
busy_nic             zstd   6.1 6.12
clock_local          as_is  6.12
container_nic        zstd   6.12
drop_closed_port     zstd   6.1 6.12
drop_nft             as_is  6.12
drop_queue_full      zstd   6.1 6.12
forward              zstd   6.1 6.12
fragments_nic        zstd   6.12
full_veth            zstd   6.1
graph                zstd   6.1 6.12
ipsec_nic            zstd   6.12
ipsec_tunnel_nic     zstd   6.12
ktls_veth            zstd   6.1 6.12
mptcp_veth           zstd   6.12
lost_on_purpose      zstd   6.12
multicast_veth       zstd   6.12
nginx_1m_nic         zstd   6.12
nginx_1m_veth        zstd   6.12
nginx_contended      zstd   6.12
nginx_small_nic      zstd   6.1 6.12
nginx_small_veth     as_is  6.12
nginx_small_veth     zstd   6.1
one_arm_nic          zstd   6.1
pingpong_lo          zstd   6.1 6.12
pingpong_nic         zstd   6.12
pingpong_veth        zstd   6.1 6.12
probes_nic           zstd   6.1
raw_calls            zstd   6.12
rps_nic              zstd   6.12
stacks               as_is  6.12
subbuf_64k           zstd   6.12
tcp_gro_nic          zstd   6.12
tcp_gro_veth         zstd   6.12
threaded_nic         zstd   6.12
tracecmd_files       as_is  6.12
tracecmd_files-v6    v6     6.12
tracecmd_files-zstd  zstd   6.12
two_instances        as_is  6.12
udp_gso_veth         zstd   6.12
udp_nic              zstd   6.1 6.12
version6             as_is  6.12
vxlan_nic            zstd   6.1
wireguard_nic        zstd   6.12
LIST
}

say() { printf 'fixtures: %s\n' "$*" >&2; }

# listed KERNEL [SCENARIO...]: "NAME CONTAINER" of each; without SCENARIO of all.
listed() {
  local kernel=$1 name container kernels
  shift
  while read -r name container kernels; do
    [[ " $kernels " == *" $kernel "* ]] || continue
    if (($# == 0)) || [[ " $* " == *" ${name%-*} "* ]]; then echo "$name $container"; fi
  done < <(fixtures)
}

# In a subshell: every scenario defines the same functions. What is printed is wrong.
checks() (
  source "$here/scenarios/$(basename "$results").sh"
  prepare_check
  check || wrong "a check ended with status $?"
)

# convert FILE CONTAINER: the same capture, when skbtrail says the same of both.
convert() {
  local from=$1 to=$1.converted options facts
  case $2 in
    as_is) return 0 ;;
    zstd) options=(--compression zstd) ;;
    v6) options=(--file-version 6) ;;
  esac
  facts='del(.capture.file, .capture.file_bytes, .capture.compression, .capture.file_version)'
  trace-cmd convert -i "$from" -o "$to" "${options[@]}" &>"$to.log" || {
    tail -n 3 "$to.log"
    return 1
  }
  diff <("$skbtrail" report --format json "$from" | jq "$facts") \
    <("$skbtrail" report --format json "$to" | jq "$facts") || return 1
  mv "$to" "$from"
}

refuse() {
  say "$name refused: $*"
  refused=$((refused + 1))
}

# take KERNEL NAME CONTAINER: from $folder, through a copy.
take() {
  local name=$1-$2 from=$folder/$1/${2%-*} capture wrongs size
  results=$work/$1/${2%-*}
  if [[ $(cat "$from.status" 2>/dev/null) != 0 ]]; then
    refuse "no results of a guest that finished it in $from"
    return
  fi
  rm -rf "$results"
  mkdir -p "$work/$1"
  cp -r "$from" "$results"
  capture=$results/skbtrail.dat
  [[ -e $capture ]] || capture=$results/tracecmd.dat
  if ! wrongs=$(checks 2>&1) || [[ $wrongs ]]; then
    refuse $'its checks fail\n'"$wrongs"
    return
  fi
  "$here/truth.sh" "$results" >"$results/truth.json"
  if ! wrongs=$(convert "$capture" "$3"); then
    refuse "converting to $3 changes it"$'\n'"$wrongs"
    return
  fi
  size=$(stat -c %s "$capture")
  if ((size > largest)); then
    refuse "$((size / 1024)) KiB"
    return
  fi
  install -m 644 "$capture" "$data/$name.dat"
  install -m 644 "$results/truth.json" "$data/$name.json"
}

# What the list does not name is no fixture.
remove_others() {
  local file kernel names=' '
  for kernel in "${all_kernels[@]}"; do
    while read -r file _; do names+="$kernel-$file "; done < <(listed "$kernel")
  done
  for file in "$data"/*.dat "$data"/*.json; do
    [[ ! -e $file || $names == *" $(basename "${file%.*}") "* ]] || rm "$file"
  done
}

warn_about_total() {
  local total
  total=$(cat "$data"/*.dat | wc -c)
  ((total <= all_together)) ||
    say "all captures together: $((total >> 20)) MiB, more than $((all_together >> 20)) MiB"
}

# Of the events of profile net and of those with a struct. Captures have those of their kernel.
live_formats() {
  local name series from=/sys/kernel/tracing/events source=${here%/tests/vm}
  series=$(uname -r | cut -d . -f 1-2)
  {
    sed -nE 's/^event +([^ ]+).*/\1/p' "$source/filters/net.profile"
    sed -nE 's/.*EventName name\{"(.*)", "(.*)"\}.*/\1:\2/p' "$source"/src/event/*.h
  } | tr : / | sort -u | while read -r name; do
    [[ ! -e $from/$name/format ]] || install -D -m 644 "$from/$name/format" "$data/formats/$series/$name.format"
  done
}

main() {
  local kernel name container
  if [[ $1 == --list ]]; then
    listed "${@:2}" | sed 's/[- ].*//' | sort -u
    return
  fi
  if [[ $1 == --live-formats ]]; then
    live_formats
    return
  fi
  skbtrail=$(realpath "$1") folder=$(realpath "$2") refused=0
  readonly skbtrail folder
  shift 2
  rm -rf "$work"
  mkdir -p "$work"
  for kernel in "${all_kernels[@]}"; do
    while read -r name container; do
      take "$kernel" "$name" "$container"
    done < <(listed "$kernel" "$@")
  done
  if (($# == 0)); then remove_others; fi
  warn_about_total
  ((refused == 0))
}

main "$@"
