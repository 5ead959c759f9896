name    full
about   Everything of the network stack, and all system calls: large captures, short runs
include net
event   net:*
event   napi:*
event   skb:*
event   sock:*
event   tcp:*
event   udp:*
event   icmp:*
event   qdisc:*
event   neigh:*
event   fib:*
event   xdp:*
event   irq:*
event   sched:sched_migrate_task
event   raw_syscalls:sys_enter
event   raw_syscalls:sys_exit
