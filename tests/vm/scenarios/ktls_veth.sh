# shellcheck shell=bash
# nginx behind TLS that the kernel does (kTLS), over veth: it sends files, and reads requests.
network=veth
prepare() {
  OPENSSL_CONF=/dev/null openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=server -keyout /tmp/key.pem -out /tmp/certificate.pem 2>/dev/null
  # OpenSSL 3.0 leaves what it receives to the kernel with TLS 1.2 only.
  start_nginx 'listen 443 ssl reuseport; ssl_certificate /tmp/certificate.pem;' \
    'ssl_certificate_key /tmp/key.pem; ssl_protocols TLSv1.2;' \
    'ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256; ssl_conf_command Options KTLS;'
  wait_for 443
}
traffic() {
  in_client wrk -s /vm/requests.lua -d 30s -t 2 -c 4 "https://$server:443/small" -- 30
  ip netns exec sv cat /proc/net/tls_stat
}
check() {
  nothing_lost
  agrees_with_tracecmd
  outcomes_add_up
  few_unknown
  forwards_agree
  softirqs_agree
  devices_agree vs vc
  at_least 4 "$(awk '$1 == "TlsRxSw" { print $2 }' "$results/traffic.out")" 'connections that the kernel decrypts'
  # A request is a record in a segment of its own, of 44 and 73 bytes, and read by one call.
  requests_that_returned >"$results/returned"
  requests_that_were_read >"$results/read"
  at_least 30 "$(wc -l <"$results/returned")" 'calls that read a request'
  equal "$(comm -3 "$results/returned" "$results/read")" '' 'when the calls that read them returned'
}
requests_that_returned() {
  trace-cmd report -t -F sys_exit_recvmsg "$results/skbtrail.dat" 2>/dev/null |
    sed -nE 's/^ *nginx-.* ([0-9]+)\.([0-9]{9}): sys_exit_recvmsg: +0x2c$/\1\2/p' | sort
}
requests_that_were_read() {
  "$skbtrail" packets -d vs --outcome delivered --task nginx --format json "$results/skbtrail.dat" |
    jq -r 'select(.legs[-1].len == 125) | .stages.return // empty' | sort
}
