# shellcheck shell=bash
# The older file format.
once=6.12
network=veth
options=(--file-version 6)
traffic() {
  in_client bash -c 'for i in {1..40}; do echo "$i" >"/dev/udp/$0/9"; done' "$server" || true
}
check() {
  nothing_lost
  equal "$(report .capture.file_version)" 6 'the file version'
  agrees_with_tracecmd
  outcomes_add_up
  forwards_agree
  devices_agree vs vc
}
