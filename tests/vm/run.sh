#!/bin/bash
# usage: run.sh SKBTRAIL [-k 6.1|6.12] [-c] [-o] [SCENARIO...]
# Boots guests, runs scenarios in them, checks the results outside: one line for each, and
# `N passed, N failed` at the end, with what was skipped and what needed another boot. Without -k on
# both kernels; without SCENARIO all of scenarios/.
# With -c nothing is booted: the results of the last run are checked again. With -o a scenario that
# sets `once`, as what it checks hangs on no kernel, is run on the kernel named there only.
# Results stay in build/vm/KERNEL/SCENARIO. Exit status 77: no qemu or no kernel, and the reason.
set -euo pipefail
export LC_ALL=C # sed, on lines of ten thousand events, takes half as long as with UTF-8
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here
readonly output=${here%/tests/vm}/build/vm
# A guest that dies loses what it has not done yet, and each boot takes a dozen seconds.
readonly per_boot=30
# No scenario begun for so long: it hangs. One is killed after 60 seconds. What else a guest says is no
# sign of life: one whose CPUs stall says so for ever.
readonly silent_seconds=120
source "$here/check.sh"
source "$here/stream.sh"

passed=0 failures=0 skips=() without=() more_boots=() guest=''

say() { printf 'vm: %s\n' "$*" >&2; }

stop_guest() {
  [[ $guest ]] || return 0
  kill -KILL "$guest" 2>/dev/null || true
  wait "$guest" 2>/dev/null || true
  guest=''
}

# Symbols at the same addresses in every capture; a guest that is broken ends at once; switching
# events waits for RCU a hundred times, 30 ms each unless expedited; new devices, in every namespace,
# have no IPv6 (addrconf_init_net(), net/ipv6/addrconf.c).
readonly command_line='console=ttyS0 quiet panic=-1 oops=panic rdinit=/init mitigations=off nokaslr
  rcupdate.rcu_expedited=1 ipv6.disable_ipv6=1'

# start_guest KERNEL_FOLDER FILES: FILES holds initramfs and takes console.log and out.img. Its CPUs take
# turns: where they run at the same time, QEMU 7.2 now and then translates code anew between telling that
# it changes and changing it, and a breakpoint that the kernel has taken back kills the guest (int3).
start_guest() {
  local kernel=$1 files=$2
  truncate -s 1G "$files/out.img"
  qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp 2 -m 3072 \
    -nodefaults -no-reboot -display none -serial "file:$files/console.log" \
    -kernel "$kernel/vmlinuz" -initrd "$files/initramfs" \
    -append "$command_line" \
    -drive "file=$files/out.img,format=raw,if=none,id=o" -device virtio-blk-pci,drive=o \
    -netdev hubport,id=n0,hubid=0 -device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01 \
    -netdev hubport,id=n1,hubid=0 -device virtio-net-pci,netdev=n1,mac=52:54:00:00:00:02 \
    2>"$files/qemu.err" &
  guest=$!
}

# wait_for_guest FILES: until it powers off, or is silent for too long.
wait_for_guest() {
  local said=-1 now deadline=0
  while kill -0 "$guest" 2>/dev/null; do
    now=$(grep -c 'vm: ' "$1/console.log" 2>/dev/null) || now=${now:-0}
    if ((now != said)); then
      said=$now
      deadline=$((SECONDS + silent_seconds))
    fi
    ((SECONDS < deadline)) || break
    sleep 0.3
  done
  stop_guest
}

# boot KERNEL_FOLDER TO SCENARIO...: their results are unpacked into TO.
boot() {
  local kernel=$1 to=$2 files scenario
  shift 2
  files=$(mktemp -d "$output/boot.XXXXXX")
  "$here/image.sh" "$skbtrail" "$kernel" "$files/initramfs" "$@"
  for scenario in "$@"; do rm -rf "${to:?}/$scenario"{,.log,.status,.seconds}; done
  start_guest "$kernel" "$files"
  wait_for_guest "$files"
  cp "$files/console.log" "$to" || true
  tar -x --ignore-zeros -f "$files/out.img" -C "$to" 2>/dev/null || true
  if ! grep -q 'vm: done' "$to/console.log"; then
    if grep -q 'vm: up' "$to/console.log"; then
      say "the guest did not finish; the end of its console:"
    else
      say "the guest did not come up; the end of its console:"
    fi
    tail -n 25 "$files/qemu.err" "$to/console.log" >&2
  fi
  rm -rf "$files"
}

verdict() {
  local word=$1
  case $word in
    ok) passed=$((passed + 1)) ;;
    skip) skips+=("$series $scenario: $2") ;;
    *) failures=$((failures + 1)) ;;
  esac
  printf '%-6s %-5s %-21s %3s s  %s\n' "$word" "$series" "$scenario" \
    "$(cat "$results.seconds" 2>/dev/null || echo '?')" "$2"
}

# In a subshell: every scenario defines the same functions. What is printed is wrong.
checks() (
  source "$here/scenarios/$1.sh"
  prepare_check
  check || wrong "a check ended with status $?"
)
# The same; a check that says something on standard error went wrong itself.
all_checks() { { checks "$1" 2>&1 >&3 | sed 's/^/    on standard error: /'; } 3>&1; }

# check_results TO SCENARIO
check_results() {
  local scenario=$2 status wrongs
  results=$1/$scenario
  if ! status=$(cat "$results.status" 2>/dev/null); then
    verdict FAILED 'the guest died before it was done'
  elif [[ $status == 77 ]]; then
    verdict skip "$(tail -n 1 "$results.log")"
  elif [[ $status != 0 ]]; then
    verdict FAILED "status $status in the guest"
    tail -n 15 "$results.log" "$results"/{traffic.out,skbtrail.err,tracecmd.log} 2>/dev/null |
      sed 's/^/    /' || true
  elif wrongs=$(all_checks "$scenario") && [[ ! $wrongs ]]; then
    verdict ok "$(summary)"
  else
    verdict FAILED "see $results"
    echo "$wrongs"
  fi
}

summary() {
  [[ ! -e $results/report.json ]] ||
    report '"\(.capture.events) events, \(.packets.rx.births) packets received, \(.packets.tx.births) sent"'
}

# Results of a scenario are there once it has ended, whatever the guest did after it. Status 137 is
# that of a scenario that was killed: its guest may be half dead.
missing() {
  local scenario
  for scenario in "${@:2}"; do
    [[ $(cat "$1/$scenario.status" 2>/dev/null || echo 137) != 137 ]] || echo "$scenario"
  done
}

# A guest that died, whenever it did, deserves another boot, and a third. One that only hangs has no oops.
died() { grep -qE 'vm: up|Oops|Kernel panic|BUG:' "$1/console.log"; }

# boot_and_check KERNEL_FOLDER TO SCENARIO...
boot_and_check() {
  local kernel=$1 to=$2 again again_at scenario
  shift 2
  boot "$kernel" "$to" "$@"
  for again_at in second third; do
    mapfile -t again < <(missing "$to" "$@")
    if ((${#again[@]} == 0)) || ! died "$to"; then break; fi
    say "a guest with $series died; booting again for: ${again[*]}"
    more_boots+=("$again_at boot: $series: ${again[*]}")
    cp "$to/console.log" "$to/console.died.log"
    # The one it died in comes last: it may be at fault.
    boot "$kernel" "$to" "${again[@]:1}" "${again[0]}"
  done
  for scenario in "$@"; do check_results "$to" "$scenario"; done
}

# In a subshell: every scenario defines the same names.
wanted() (
  once=''
  source "$here/scenarios/$1.sh"
  ((!each_once)) || [[ ! $once || $once == "$series" ]]
)

run_kernel() {
  local kernel to=$output/$series status=0 i name here_too=()
  kernel=$("$here/kernels.sh" "$series") || status=$?
  if ((status == 77)); then
    without+=("$series")
    return 0
  fi
  ((status == 0)) || exit "$status"
  mkdir -p "$to"
  for name in "${scenarios[@]}"; do
    ! wanted "$name" || here_too+=("$name")
  done
  for ((i = 0; i < ${#here_too[@]}; i += per_boot)); do
    boot_and_check "$kernel" "$to" "${here_too[@]:i:per_boot}"
  done
}

main() {
  local all=(6.1 6.12) scenario check_only=0 started
  each_once=0
  skbtrail=$(realpath "$1")
  shift
  if [[ ${1:-} == -k ]]; then
    all=("$2")
    shift 2
  fi
  if [[ ${1:-} == -c ]]; then
    check_only=1
    shift
  fi
  if [[ ${1:-} == -o ]]; then
    each_once=1
    shift
  fi
  command -v qemu-system-x86_64 >/dev/null || {
    say "no qemu-system-x86_64"
    exit 77
  }
  scenarios=("$@")
  if (($# == 0)); then
    mapfile -t scenarios < <(find "$here/scenarios" -name '*.sh' -printf '%f\n' | sed 's/\.sh$//' | sort)
  fi
  for scenario in "${scenarios[@]}"; do
    [[ -e $here/scenarios/$scenario.sh ]] || {
      say "there is no scenario '$scenario'; there are: $(cd "$here/scenarios" && echo *.sh | sed 's/\.sh//g')"
      exit 2
    }
  done
  mkdir -p "$output"
  trap stop_guest EXIT
  for series in "${all[@]}"; do
    started=$SECONDS
    if ((check_only)); then
      for scenario in "${scenarios[@]}"; do check_results "$output/$series" "$scenario"; done
    else
      run_kernel
      say "kernel $series: $((SECONDS - started)) s"
    fi
  done
  ((${#without[@]} < ${#all[@]})) || exit 77
  if ((${#skips[@]} > 0)); then printf 'skipped: %s\n' "${skips[@]}"; fi
  if ((${#more_boots[@]} > 0)); then printf '%s\n' "${more_boots[@]}"; fi
  echo "$passed passed, $failures failed, ${#skips[@]} skipped${without[*]:+, no kernel ${without[*]}}"
  ((failures == 0))
}

main "$@"
