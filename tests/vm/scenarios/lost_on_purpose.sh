# shellcheck shell=bash
# The smallest buffer under nginx: what is lost is said, and nobody comes to other numbers.
once=6.12
network=veth
beside=0
options=(--buffer-size 64)
prepare() { start_nginx; }

overrun() { awk '/^overrun:/ { sum += $2 } END { print sum + 0 }' /sys/kernel/tracing/instances/skbtrail*/per_cpu/cpu*/stats; }

# A fast recorder loses nothing by itself, so in the middle it is held until the kernel has
# overwritten pages. It is our parent.
traffic() {
  local i
  requests 100 small 8 2
  kill -STOP "$PPID"
  for i in {1..20}; do
    requests 100 small 8 2
    if (($(overrun) > 0)); then break; fi
  done
  kill -CONT "$PPID"
  requests 100 small 8 2
}

check() {
  at_least 1 "$(report .capture.lost_events)" 'lost events'
  at_least 1 "$(report .capture.gaps)" 'gaps'
  events_agree
  outcomes_add_up
  forwards_agree
}
