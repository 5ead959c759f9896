#!/bin/bash
# The first process of a guest: mounts, modules, the scenarios of /vm/list, results to /dev/vda.
export PATH=/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
ln -s /proc/self/fd /dev/fd
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t tmpfs -o size=70% tmpfs /out
mount -t tracefs nodev /sys/kernel/tracing
for module in /vm/modules/*; do insmod "$module"; done
# The kernel may name the two NICs in either order; scenarios know them as n0 and n1.
for n in 0 1; do
  for nic in /sys/class/net/*; do
    [[ -d $nic ]] || continue
    if [[ $(<"$nic/address") == "52:54:00:00:00:0$((n + 1))" ]]; then
      ip link set "${nic##*/}" name "n$n"
    fi
  done
done
ip link set lo up
# A capture holds /proc/kallsyms, 8 MB of it: from here on, what places of packets are named after.
symbols='_text|_stext|_etext|(__)?(tcp|udp|ip|icmp|skb|net|netif|napi|dev|sock|sk|inet|nf|veth|virtnet|tbf|neigh|netlink|genl|unix|rtnl|rtnetlink|qdisc|pfifo|dst|rt|fib|arp|packet)[46]?_'
grep -E " [tT] ($symbols|(__|sk_skb_reason_|k?v?)?k?free_skb|consume_skb|xmit_|start_xmit|eth_|schedule)" \
  /proc/kallsyms | grep -vE '__pfx_|\.cold|bpf|__x64|_kfunc' >/vm/kallsyms
mount --bind /vm/kallsyms /proc/kallsyms
uname -r >/out/kernel

# The results, as tar archives behind one another. A scenario is done when its status is there, which is
# written once all else of it is: a guest that dies keeps what it has done.
exec 3>/dev/vda
save() {
  tar -c -C /out "$@" >&3
  sync
}

echo "vm: up" >/dev/console
save kernel
while read -r scenario; do
  echo "vm: $scenario" >/dev/console
  read -r from _ </proc/uptime
  timeout -s KILL 60 bash /vm/scenario.sh "$scenario" >"/out/$scenario.log" 2>&1
  echo $? >"/out/$scenario.status"
  bash /vm/scenario.sh --clean-up
  read -r to _ </proc/uptime
  echo $((${to%.*} - ${from%.*})) >"/out/$scenario.seconds"
  save "$scenario" "$scenario.log" "$scenario.seconds"
  save "$scenario.status"
  rm -rf "/out/$scenario"*
done </vm/list
echo "vm: done" >/dev/console
echo o >/proc/sysrq-trigger
sleep 60
