name    sched
about   Tasks: who ran, waited, was woken, by whom; no packets
event   sched:sched_switch
event   sched:sched_waking
event   sched:sched_wakeup
event   sched:sched_wakeup_new
event   sched:sched_process_fork
event   sched:sched_process_exec
event   sched:sched_process_exit
event   irq:irq_handler_entry
event   irq:irq_handler_exit
event   irq:softirq_entry
event   irq:softirq_exit
