name    drops
about   Packets that did not arrive: drops with reason and place, resets, retransmits
event   skb:kfree_skb
event   net:net_dev_xmit            rc != 0
event   net:net_dev_xmit_timeout
event   qdisc:qdisc_drop
event   sock:sock_rcvqueue_full
event   sock:sock_exceed_buf_limit
event   udp:udp_fail_queue_rcv_skb
event   icmp:icmp_send
event   tcp:tcp_retransmit_skb
event   tcp:tcp_retransmit_synack
event   tcp:tcp_send_reset
event   tcp:tcp_receive_reset
event   tcp:tcp_bad_csum
