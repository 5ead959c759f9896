# shellcheck shell=bash
# Sub-buffers of 64 KiB: a read returns one, and the file says so.
network=veth
beside=0
options=(--sub-buffer-size 64)
prepare() {
  [[ -e /sys/kernel/tracing/buffer_subbuf_size_kb ]] ||
    lacks 'no buffer_subbuf_size_kb, which came with Linux 6.8'
  start_nginx
}
traffic() { requests 30 small 2; }
check() {
  nothing_lost
  outcomes_add_up
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  switches_agree nginx
}
