# shellcheck shell=bash
# A normal user is told what is missing, and what to do about it works. A group alone may read, but
# not write: files of a new instance have mode 640 and the owner of `instances`.
once=6.12
readonly as_user=(setpriv --reuid 1000 --regid 1000)

# try CASE OPTION_OF_SETPRIV...: records 20 drops as a normal user.
try() {
  local status=0
  "${as_user[@]}" "${@:2}" skbtrail record --profile drops -o "/tmp/user/$1.dat" -- \
    bash -c 'for i in {1..20}; do echo "$i" >/dev/udp/127.0.0.1/9; done 2>/dev/null; true' \
    >"/out/$name/$1.err" 2>&1 || status=$?
  echo "$status" >"/out/$name/$1.status"
}

run() {
  mkdir /tmp/user
  chown 1000 /tmp/user
  try alone --clear-groups
  mount -o remount,gid=2000,mode=750 /sys/kernel/tracing
  try group --groups 2000
  chown 1000 /sys/kernel/tracing/instances
  try owner --groups 2000
  cp /tmp/user/owner.dat "/out/$name/skbtrail.dat"
  cp "/out/$name/owner.err" "/out/$name/skbtrail.err"
  ls /sys/kernel/tracing/instances >"/out/$name/left_over"
  chown 0 /sys/kernel/tracing/instances
  mount -o remount,gid=0,mode=700 /sys/kernel/tracing
}

check() {
  local case
  for case in alone group; do
    equal "$(cat "$results/$case.status")" 3 "exit status of a normal user, $case"
    grep -q 'cannot use /sys/kernel/tracing/instances: Permission denied' "$results/$case.err" ||
      wrong "the message of $case does not name the folder"
    grep -q 'sudo chown .* /sys/kernel/tracing/instances' "$results/$case.err" ||
      wrong "the message of $case does not say what helps"
  done
  equal "$(cat "$results/owner.status")" 0 'exit status of the owner of instances'
  equal "$(cat "$results/left_over")" '' 'instances left over'
  nothing_lost
  # Loopback datagrams to a closed port: one drop each, and one for the answer nobody waits for.
  at_least 20 "$(event_count skb:kfree_skb)" 'drops'
}
