# shellcheck shell=bash
# The networks of the scenarios, and servers in them. Neighbours are permanent, and devices come
# without IPv6 (run.sh): no ARP in captures, and no packets that nobody sent.

# namespaces NAME...: new ones.
namespaces() { printf 'netns add %s\n' "$@" | ip -batch -; }

# at NAMESPACE: does what standard input tells ip to do. In one process: to start one takes an emulated
# guest 60 ms.
at() { ip -n "$1" -batch -; }

# connect NAMESPACE DEVICE ADDRESS MAC PEER_ADDRESS PEER_MAC
connect() {
  at "$1" <<IP
link set lo up
link set $2 address $4
address add $3/24 dev $2
link set $2 up
neighbour replace $5 lladdr $6 dev $2 nud permanent
IP
}

# The same over IPv6: no router is asked for, no address is checked.
connect6() {
  ip netns exec "$1" bash -c "cd /proc/sys/net/ipv6/conf && echo 0 >all/disable_ipv6 &&
    echo 0 >$2/disable_ipv6 && echo 0 >$2/accept_ra && echo 0 >$2/router_solicitations"
  at "$1" <<IP
link set lo up
link set $2 addrgenmode none address $4
address add $3/64 dev $2 nodad
link set $2 up
neighbour replace $5 lladdr $6 dev $2 nud permanent
IP
}

readonly server=192.0.2.1 client=192.0.2.2
readonly server_mac=52:54:00:00:00:01 client_mac=52:54:00:00:00:02

network_none() { :; }

# cl --veth-- sv
network_veth() {
  namespaces sv cl
  ip link add vs netns sv type veth peer name vc netns cl
  connect sv vs $server $server_mac $client $client_mac
  connect cl vc $client $client_mac $server $server_mac
}

# The same, and MPTCP has a second path, from another address of the client.
readonly client_2=192.0.2.3
network_mptcp() {
  network_veth
  ip -n cl address add $client_2/24 dev vc
  ip -n sv neighbour replace $client_2 lladdr $client_mac dev vs nud permanent
  at sv <<<'mptcp limits set subflows 2 add_addr_accepted 2'
  at cl <<IP
mptcp limits set subflows 2 add_addr_accepted 2
mptcp endpoint add $client_2 dev vc subflow
IP
}

# cl --n1--hub--n0-- sv
network_nic() {
  namespaces sv cl
  ip link set n0 netns sv
  ip link set n1 netns cl
  connect sv n0 $server $server_mac $client $client_mac
  connect cl n1 $client $client_mac $server $server_mac
}

# Everything in one namespace, on its lo.
network_lo() {
  namespaces sv
  at sv <<IP
link set lo up
address add $server/32 dev lo
IP
}

# cl --veth-- ro --veth-- sv
network_forward() {
  namespaces cl ro sv
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
  namespaces sv cl
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
  namespaces cl ro sv
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

# cl, sv --macvlans over n1--hub--n0-- ro, a router with one arm.
network_one_arm() {
  namespaces hub cl sv ro
  ip link set n0 netns ro
  ip link set n1 netns hub
  at hub <<'IP'
link set n1 up
link add link n1 name vc type macvlan mode private
link add link n1 name vs type macvlan mode private
link set vc netns cl
link set vs netns sv
IP
  connect cl vc $client 52:54:00:00:02:02 192.0.2.3 $server_mac
  connect sv vs $server 52:54:00:00:02:01 192.0.2.3 $server_mac
  connect ro n0 192.0.2.3 $server_mac $client 52:54:00:00:02:02
  ip -n ro neighbour replace $server lladdr 52:54:00:00:02:01 dev n0 nud permanent
  ip -n cl route add $server/32 via 192.0.2.3
  ip -n sv route add $client/32 via 192.0.2.3
  ip netns exec ro bash -c 'cd /proc/sys/net/ipv4 && echo 1 >ip_forward &&
    echo 0 >conf/all/send_redirects && echo 0 >conf/n0/send_redirects'
}

# cl --bond over n1--hub--n0 under a bond-- sv: what a server with two cables has.
network_bond() {
  network_nic
  bond sv bs n0 $server $server_mac $client $client_mac
  bond cl bc n1 $client $client_mac $server $server_mac
}
# bond NAMESPACE DEVICE NIC ADDRESS MAC PEER_ADDRESS PEER_MAC
bond() {
  at "$1" <<IP
address flush dev $3
link set $3 down
link add $2 type bond mode active-backup
link set $3 master $2
IP
  connect "$1" "$2" "${@:4}"
}

# cl --ipvlan over n1--hub--n0 under an ipvlan-- sv: the NIC's address, another network.
network_ipvlan() {
  network_nic
  ipvlan sv is n0 $overlay_server $overlay_client $client_mac
  ipvlan cl ic n1 $overlay_client $overlay_server $server_mac
}
# ipvlan NAMESPACE DEVICE NIC ADDRESS PEER_ADDRESS PEER_MAC
ipvlan() {
  at "$1" <<IP
link add link $3 name $2 type ipvlan mode l2
address add $4/24 dev $2
link set $2 up
neighbour replace $5 lladdr $6 dev $2 nud permanent
IP
}

# A VPN: cl --WireGuard over n1--hub--n0-- sv.
network_wireguard() {
  network_nic
  wg genkey >/tmp/sv.key
  wg genkey >/tmp/cl.key
  ip -n sv link add ws type wireguard
  ip -n cl link add wc type wireguard
  in_server wg set ws private-key /tmp/sv.key listen-port 51820 peer "$(wg pubkey </tmp/cl.key)" \
    allowed-ips 0.0.0.0/0 endpoint $client:51820
  in_client wg set wc private-key /tmp/cl.key listen-port 51820 peer "$(wg pubkey </tmp/sv.key)" \
    allowed-ips 0.0.0.0/0 endpoint $server:51820
  ip -n sv address add $overlay_server/24 dev ws
  ip -n cl address add $overlay_client/24 dev wc
  ip -n sv link set ws up
  ip -n cl link set wc up
}

# IPsec between the two NICs: ESP, transport mode.
network_ipsec() {
  network_nic
  esp transport sv $server $client
  esp transport cl $client $server
}
network_ipsec_tunnel() {
  network_nic
  esp tunnel sv $server $client
  esp tunnel cl $client $server
}
# esp MODE NAMESPACE ADDRESS PEER_ADDRESS
esp() {
  local keys="mode $1 auth hmac(sha256) \
    0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef enc cipher_null ''"
  at "$2" <<IP
xfrm state add src $server dst $client proto esp spi 0x100 $keys
xfrm state add src $client dst $server proto esp spi 0x200 $keys
xfrm policy add src $3 dst $4 dir out tmpl src $3 dst $4 proto esp mode $1
xfrm policy add src $4 dst $3 dir in tmpl src $4 dst $3 proto esp mode $1
IP
}

# A VPN of a program: cl --tun, socat-- n1--hub--n0 --socat, tun-- sv.
network_tun() {
  network_nic
  in_server socat UDP:$client:4000,bind=$server:4000 TUN:$overlay_server/24,tun-name=us,iff-no-pi,up &
  in_client socat UDP:$server:4000,bind=$client:4000 TUN:$overlay_client/24,tun-name=uc,iff-no-pi,up &
  wait_for_link sv us
  wait_for_link cl uc
}
# wait_for_link NAMESPACE DEVICE
wait_for_link() {
  local i
  for i in {1..100}; do
    if ip -n "$1" address show dev "$2" 2>/dev/null | grep -q 'inet '; then return 0; fi
    doze 0.1
  done
  echo "$2 does not come up" >&2
  return 1
}

# cl --veth-- sv, whose ingress goes through an ifb, to be shaped.
network_ifb() {
  network_veth
  ip -n sv link add ifb0 type ifb
  ip -n sv link set ifb0 up
  tc -n sv qdisc add dev ifb0 root tbf rate 100mbit burst 64kb latency 50ms
  tc -n sv qdisc add dev vs ingress
  tc -n sv filter add dev vs ingress matchall action mirred egress redirect dev ifb0
}

# cl --veth-- sv, whose ingress and egress are copied to a third device.
network_mirror() {
  network_veth
  ip -n sv link add mir type dummy
  ip -n sv link set mir up
  tc -n sv qdisc add dev vs clsact
  tc -n sv filter add dev vs ingress matchall action mirred egress mirror dev mir
  tc -n sv filter add dev vs egress matchall action mirred egress mirror dev mir
}

declare -A holders=()
# A sleeping process in each namespace: its /proc/PID/net can be read without entering it.
hold_namespaces() {
  local namespace
  for namespace in $(namespace_names); do
    ip netns exec "$namespace" sleep 1000 &
    holders[$namespace]=$!
    echo "$namespace $!" >>/run/holders
  done
}

namespace_names() { [[ ! -d /run/netns ]] || (cd /run/netns && echo *); }
# processes_of NAMESPACE
processes_of() {
  local process
  for process in /proc/[0-9]*; do
    [[ ! $process/ns/net -ef /run/netns/$1 ]] || echo "${process#/proc/}"
  done
}

in_server() { ip netns exec sv "$@"; }
in_client() { ip netns exec cl "$@"; }

# Sleeps, without a process.
doze() { read -rt "$1" _ <>/run/never || true; }

# wait_for PORT: until somebody listens on it in the server's namespace: TCP_LISTEN, or a socket of UDP,
# which is in TCP_CLOSE until it is connected (include/net/tcp_states.h).
wait_for() {
  local i pattern
  printf -v pattern ':%04X 0+:0000 0[A7] ' "$1"
  for i in {1..200}; do
    if [[ $(cat "/proc/${holders[sv]}/net/"{tcp,udp,tcp6,udp6} 2>/dev/null) =~ $pattern ]]; then return 0; fi
    doze 0.05
  done
  echo "nobody listens on port $1" >&2
  return 1
}

# without NAMESPACE DEVICE OFFLOAD...: switched off, for this scenario.
without() {
  local offload
  for offload in "${@:3}"; do
    ip netns exec "$1" ethtool -K "$2" "$offload" off
    echo "$2 $offload" >>/run/switched_off
  done
}

# tap NAMESPACE DEVICE [TCPDUMP_ARGUMENT...]: the headers of what passes there go to DEVICE.pcap of the
# results, each packet at once. Whole packets would be few to a ring, and some would be lost. Returns when
# they are being read.
tap() {
  local i
  ip netns exec "$1" tcpdump -Z root -U --immediate-mode -s 128 -n -i "$2" -w "/out/$name/$2.pcap" "${@:3}" \
    2>"/tmp/$2.err" &
  for i in {1..100}; do
    if grep -q 'listening on' "/tmp/$2.err"; then return 0; fi
    doze 0.1
  done
  cat "/tmp/$2.err" >&2
  return 1
}

# until_closed PORT: the server has no connection there, whoever listens. What was lost last is sent
# again, and a reader that is behind closes its end, later than settle() waits for.
until_closed() {
  local i pattern
  printf -v pattern ':%04X [0-9A-F:]+ 0[^A]' "$1"
  for i in {1..200}; do
    if [[ ! $(in_server cat /proc/net/tcp) =~ $pattern ]]; then return 0; fi
    doze 0.05
  done
  echo "a connection to port $1 does not end" >&2
  return 1
}

# A stream of socat that reads less at once than comes; the first segment with data opens the connection.
start_slow_reader() {
  in_server socat -u -b 900 TCP-LISTEN:5202,defer-accept=5 OPEN:/tmp/received,creat &
  wait_for 5202
}
# stream BYTES
stream() {
  head -c "$1" /dev/zero | in_client socat -u -b 1400 - "TCP:$server:5202"
  until_closed 5202
}

# requests NUMBER FILE CONNECTIONS [THREADS [NAMESPACE [ADDRESS]]]: as many per thread, not as many as fit into a
# second: captures are alike.
requests() {
  ip netns exec "${5:-cl}" \
    wrk -s /vm/requests.lua -d 30s -t "${4:-1}" -c "$3" "http://${6:-$server}:80/$2" -- "$1"
}

# start_nginx [DIRECTIVE...]: two workers; files small, 1m, 8m. The directives are the server's.
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
    $*
  }
}
NGINX
  in_server nginx -e /tmp/nginx.log -c /tmp/nginx.conf &
  wait_for 80
}
