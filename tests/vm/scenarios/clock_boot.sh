# shellcheck shell=bash
# The clock boot; every other scenario uses mono.
once=6.12
network=veth
beside=0
options=(--clock boot)
traffic() {
  in_client bash -c 'for i in {1..40}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
check() {
  nothing_lost
  equal "$(report .capture.clock)" boot 'the clock'
  events_agree
  outcomes_add_up
  forwards_agree
  devices_agree vs vc
  # Beside what /proc said at both ends, which only means something when both are on one clock.
  equal "$(tasks_that_differ)" '' 'tasks whose switches differ'
}
tasks_that_differ() {
  local pid more
  "$skbtrail" sched --format json "$results/skbtrail.dat" |
    jq -r '.tasks[] | select(.proc != null and (.proc.agrees | not)) | "\(.pid) \(
      .proc | .voluntary + .involuntary - .counted_voluntary - .counted_involuntary)"' |
    while read -r pid more; do
      case $more in
        1) was_switched_from "$pid" stop ;;
        -1) was_switched_from "$pid" start ;;
        *) false ;;
      esac || echo "$pid"
    done
}
# was_switched_from PID start|stop: its CPU stood between counting the switch and writing the event
# when /proc was read, as one of a guest may for milliseconds (__schedule(), kernel/sched/core.c,
# 6.12: ++*switch_count, then trace_sched_switch(), interrupts off). Then the first event of a CPU
# behind that reading is this switch.
was_switched_from() {
  local read
  read=$(grep -aoE "^$2 [0-9]+ [0-9]+ $1 " "$results/skbtrail.dat" | cut -d ' ' -f 3)
  [[ $read ]] && trace-cmd report -N -t -i "$results/skbtrail.dat" 2>/dev/null | awk -v read="$read" -v pid="$1" '
    !match($0, /\[[0-9]+\] +[0-9]+\.[0-9]+: /) { next }
    {
      split(substr($0, RSTART, RLENGTH), word, /[^0-9.]+/)  # nothing, CPU, time
      if (seen[word[2]] || word[3] <= read / 1e9) next
      seen[word[2]] = 1
      if ($0 ~ "sched_switch: .*prev_pid=" pid " ") found = 1
    }
    END { exit !found }'
}
