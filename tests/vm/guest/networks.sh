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

# The same over IPv6: no router is asked for, no address is checked.
connect6() {
  ip netns exec "$1" bash -c "cd /proc/sys/net/ipv6/conf && echo 0 >all/disable_ipv6 &&
    echo 0 >$2/disable_ipv6 && echo 0 >$2/accept_ra && echo 0 >$2/router_solicitations"
  ip -n "$1" link set lo up
  ip -n "$1" link set "$2" addrgenmode none address "$4"
  ip -n "$1" address add "$3/64" dev "$2" nodad
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

# cl --veth-- sv, without IPv4 addresses.
readonly server6=2001:db8::1 client6=2001:db8::2
network_veth6() {
  ip netns add sv
  ip netns add cl
  ip link add vs netns sv type veth peer name vc netns cl
  connect6 sv vs $server6 $server_mac $client6 $client_mac
  connect6 cl vc $client6 $client_mac $server6 $server_mac
}

# cl --n1.5--hub--n0.5-- sv, tagged.
network_vlan() {
  network_nic
  ip -n sv address flush dev n0
  ip -n cl address flush dev n1
  ip -n sv link add link n0 name n0.5 type vlan id 5
  ip -n cl link add link n1 name n1.5 type vlan id 5
  connect sv n0.5 $server $server_mac $client $client_mac
  connect cl n1.5 $client $client_mac $server $server_mac
}

# cl --vxlan over n1--hub--n0-- sv: an overlay network.
network_vxlan() {
  network_nic
  ip -n sv link add vs type vxlan id 7 dev n0 local $server remote $client dstport 4789
  ip -n cl link add vc type vxlan id 7 dev n1 local $client remote $server dstport 4789
  connect sv vs $overlay_server 52:54:00:00:02:01 $overlay_client 52:54:00:00:02:02
  connect cl vc $overlay_client 52:54:00:00:02:02 $overlay_server 52:54:00:00:02:01
}
readonly overlay_server=198.51.100.1 overlay_client=198.51.100.2

# A container: cl --veth-- bridge, masquerade, n1 --hub--n0-- sv.
network_container() {
  local namespace
  for namespace in cl ro sv; do
    ip netns add "$namespace"
    quiet "$namespace"
  done
  ip link set n0 netns sv
  ip link set n1 netns ro
  connect sv n0 $server $server_mac $client $client_mac
  connect ro n1 $client $client_mac $server $server_mac
  ip link add pc netns cl type veth peer name ph netns ro
  ip -n ro link add br0 type bridge
  ip -n ro link set ph master br0 up
  connect ro br0 198.51.100.1 52:54:00:00:01:02 198.51.100.2 52:54:00:00:01:01
  connect cl pc 198.51.100.2 52:54:00:00:01:01 198.51.100.1 52:54:00:00:01:02
  ip -n cl route add default via 198.51.100.1
  ip netns exec ro bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  ip netns exec ro nft -f - <<'NFT'
table ip nat {
  chain postrouting {
    type nat hook postrouting priority 100;
    oifname "n1" masquerade
  }
}
NFT
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

# requests NUMBER FILE CONNECTIONS [THREADS [NAMESPACE [ADDRESS]]]: as many per thread, not as many as fit into a
# second: captures are alike.
requests() {
  ip netns exec "${5:-cl}" \
    wrk -s /vm/requests.lua -d 30s -t "${4:-1}" -c "$3" "http://${6:-$server}:80/$2" -- "$1"
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
    listen [::]:80 reuseport;
    root /tmp/www;
  }
}
NGINX
  in_server nginx -e /tmp/nginx.log -c /tmp/nginx.conf &
  wait_for 80
}
