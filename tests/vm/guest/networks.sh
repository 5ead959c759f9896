# shellcheck shell=bash
# The networks of the scenarios, and servers in them. Neighbours are permanent: no ARP in captures.

quiet() {
  ip netns exec "$1" bash -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
  ip -n "$1" link set lo up
}

# connect NAMESPACE DEVICE ADDRESS MAC PEER_ADDRESS PEER_MAC
connect() {
  ip -n "$1" link set "$2" address "$4"
  ip -n "$1" address add "$3/24" dev "$2"
  ip -n "$1" link set "$2" up
  ip -n "$1" neighbour replace "$5" lladdr "$6" dev "$2" nud permanent
}

readonly server=192.0.2.1 client=192.0.2.2
readonly server_mac=52:54:00:00:00:01 client_mac=52:54:00:00:00:02

network_none() { :; }

# cl --veth-- sv
network_veth() {
  ip netns add sv
  ip netns add cl
  quiet sv
  quiet cl
  ip link add vs netns sv type veth peer name vc netns cl
  connect sv vs $server $server_mac $client $client_mac
  connect cl vc $client $client_mac $server $server_mac
}

# cl --n1--hub--n0-- sv
network_nic() {
  ip netns add sv
  ip netns add cl
  quiet sv
  quiet cl
  ip link set n0 netns sv
  ip link set n1 netns cl
  connect sv n0 $server $server_mac $client $client_mac
  connect cl n1 $client $client_mac $server $server_mac
}

# Everything in one namespace, on its lo.
network_lo() {
  ip netns add sv
  quiet sv
  ip -n sv address add $server/32 dev lo
}

# cl --veth-- ro --veth-- sv
network_forward() {
  local namespace
  for namespace in cl ro sv; do
    ip netns add "$namespace"
    quiet "$namespace"
  done
  ip link add fc netns cl type veth peer name rc netns ro
  ip link add fs netns sv type veth peer name rs netns ro
  connect cl fc 198.51.100.2 $client_mac 198.51.100.1 52:54:00:00:01:02
  connect ro rc 198.51.100.1 52:54:00:00:01:02 198.51.100.2 $client_mac
  connect sv fs $server $server_mac $client 52:54:00:00:01:01
  connect ro rs $client 52:54:00:00:01:01 $server $server_mac
  ip netns exec ro bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  ip -n cl route add default via 198.51.100.1
  ip -n sv route add default via $client
}

# A sleeping process in each namespace: its /proc/PID/net can be read without entering it.
hold_namespaces() {
  local namespace
  for namespace in $(ip netns list | cut -d ' ' -f 1); do
    ip netns exec "$namespace" sleep 1000 &
    echo "$namespace $!" >>/run/holders
  done
}

in_server() { ip netns exec sv "$@"; }
in_client() { ip netns exec cl "$@"; }

# wait_for PORT: until the server's namespace listens on it.
wait_for() {
  local i
  for i in {1..100}; do
    if [[ $(in_server ss -Hlntu "sport = :$1") ]]; then return 0; fi
    sleep 0.1
  done
  echo "nobody listens on port $1" >&2
  return 1
}

# requests NUMBER FILE CONNECTIONS [THREADS [NAMESPACE]]: as many per thread, not as many as fit into a
# second: captures are alike.
requests() {
  ip netns exec "${5:-cl}" wrk -s /vm/requests.lua -d 30s -t "${4:-1}" -c "$3" "http://$server:80/$2" -- "$1"
}

# Two workers; files small, 1m, 8m.
start_nginx() {
  mkdir -p /tmp/www
  head -c 600 /dev/zero | tr '\0' x >/tmp/www/small
  truncate -s 1M /tmp/www/1m
  truncate -s 8M /tmp/www/8m
  cat >/tmp/nginx.conf <<NGINX
user root;
worker_processes 2;
daemon off;
pid /tmp/nginx.pid;
error_log /tmp/nginx.log;
events { worker_connections 64; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  server {
    listen 80 reuseport;
    root /tmp/www;
  }
}
NGINX
  in_server nginx -e /tmp/nginx.log -c /tmp/nginx.conf &
  wait_for 80
}
