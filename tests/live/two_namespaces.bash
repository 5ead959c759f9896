# shellcheck shell=bash
# Two network namespaces joined by a veth pair, nginx with two workers and iperf3 in one of them; for
# scripts that make traffic. Who sources it has set `purpose`, a word that names the namespaces and the
# devices, and says with say() and refuse() what is wrong. After set_up() everything is gone when the
# script ends, however it ends.
# shellcheck disable=SC2154  # purpose
readonly server=skbtrail-$purpose-sv-$$ client=skbtrail-$purpose-cl-$$
readonly address=192.0.2.1 # TEST-NET-1: routed nowhere
readonly web_port=80 udp_port=5201
folder='' # all files of the script

# Processes of these namespaces are ours: nobody else knows the names.
stop_processes() {
  local namespace pid
  for namespace in "$server" "$client"; do
    for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill -s "$1" "$pid" 2>/dev/null || true; done
  done
}

processes_left() { [[ $(ip netns pids "$server" 2>/dev/null; ip netns pids "$client" 2>/dev/null) ]]; }
none_left() { ! processes_left; }

# wait_until SECONDS COMMAND...: polls until COMMAND succeeds.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

clean_up() {
  trap '' INT TERM HUP
  stop_processes TERM
  wait_until 3 none_left || stop_processes KILL
  ip netns del "$server" 2>/dev/null || true
  ip netns del "$client" 2>/dev/null || true
  [[ ! $folder ]] || rm -rf "$folder"
}

# Without IPv6 there are no packets but our own.
quiet() {
  ip netns exec "$1" sh -c 'cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0
    echo 1 >all/disable_ipv6; echo 1 >default/disable_ipv6'
}

make_network() {
  local message
  message=$(ip netns add "$server" 2>&1 && ip netns add "$client" 2>&1) ||
    refuse "no network namespace can be made: $message"
  message=$(ip netns exec "$client" true 2>&1) ||
    refuse "no process can enter a network namespace: $message"
  message=$(ip link add "$purpose-client" netns "$client" type veth \
    peer name "$purpose-server" netns "$server" 2>&1) || refuse "no veth pair can be made: $message"
  quiet "$server"
  quiet "$client"
  ip -n "$server" address add "$address/24" dev "$purpose-server"
  ip -n "$client" address add 192.0.2.2/24 dev "$purpose-client"
  ip -n "$server" link set "$purpose-server" up
  ip -n "$client" link set "$purpose-client" up
}

start_servers() {
  cat >"$folder/nginx.conf" <<NGINX
worker_processes 2;
daemon off;
pid $folder/nginx.pid;
error_log $folder/nginx.log;
events { worker_connections 64; }
http {
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path $folder/body;
  proxy_temp_path $folder/proxy;
  fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi;
  scgi_temp_path $folder/scgi;
  server {
    listen $address:$web_port reuseport;
    default_type text/plain;
    location / { return 200 "hello from the other side of the veth pair\n"; }
  }
}
NGINX
  ip netns exec "$server" nginx -e "$folder/nginx.log" -c "$folder/nginx.conf" &
  ip netns exec "$server" iperf3 --server --one-off --port $udp_port >"$folder/iperf3.log" 2>&1 &
  wait_until 5 answers $web_port || {
    say "nginx does not answer: $(cat "$folder/nginx.log")"
    exit 1
  }
  wait_until 5 listens $udp_port || {
    say "iperf3 does not listen: $(cat "$folder/iperf3.log")"
    exit 1
  }
}
answers() { ip netns exec "$client" bash -c "exec 3<>/dev/tcp/$address/$1" 2>/dev/null; }
# iperf3 --one-off would take a connection for its one client.
listens() { [[ $(ip netns exec "$server" ss --no-header --listening --tcp "sport = :$1") ]]; }

set_up() {
  folder=$(mktemp -d)
  # A signal ends the script; the EXIT trap then cleans up.
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  make_network
  start_servers
}
