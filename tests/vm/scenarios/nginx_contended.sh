# shellcheck shell=bash
# Both workers share CPU 0 with a process that never sleeps: they are preempted.
network=veth
beside=0
prepare() {
  start_nginx
  for process in $(processes_of sv); do taskset -p -c 0 "$process" >/dev/null; done
}
# The workers sleep again before their counters are read: the hog ends first.
traffic() {
  local hog
  in_server taskset -c 0 bash -c 'while :; do :; done' &
  hog=$!
  requests 3 8m 4
  kill "$hog"
  wait "$hog" || true
}
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
  at_least 3 "$(switch_deltas nginx | awk '{ sum += $4 } END { print sum + 0 }')" \
    'involuntary switches of the workers'
}
