name    net-min
about   The least that netdev-times needs: interrupts, NAPI, packets in and out
event   irq:irq_handler_entry
event   irq:irq_handler_exit
# 2 is NET_TX, 3 is NET_RX (include/linux/interrupt.h); the other vectors are not about packets
event   irq:softirq_raise   vec == 2 || vec == 3
event   irq:softirq_entry   vec == 2 || vec == 3
event   irq:softirq_exit    vec == 2 || vec == 3
event   napi:napi_poll
event   net:netif_rx
event   net:netif_receive_skb
event   net:net_dev_queue
event   net:net_dev_start_xmit
event   net:net_dev_xmit
event   skb:kfree_skb
event   skb:consume_skb
event   skb:skb_copy_datagram_iovec
