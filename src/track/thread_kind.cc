#include "track/thread_kind.h"

#include <array>

namespace skbtrail::track {
namespace {

struct Row {
  std::string_view prefix;  // of comm
  ThreadKind kind;
};

// A capture does not say who is a child of kthreadd. Names: 5.4 to 6.18.
constexpr std::array kRows{
    Row{"ksoftirqd/", ThreadKind::ksoftirqd},  // softirq_threads, kernel/softirq.c
    Row{"ktimers/", ThreadKind::ksoftirqd},    // timer_thread, kernel/softirq.c (6.12, forced irqs)
    Row{"napi/", ThreadKind::napi},            // napi_kthread_create(), net/core/dev.c
    Row{"backlog_napi/", ThreadKind::napi},    // backlog_threads, net/core/dev.c (6.10)
    Row{"kworker/", ThreadKind::kernel},       // create_worker(), kernel/workqueue.c
    Row{"irq/", ThreadKind::kernel},           // setup_irq_thread(), kernel/irq/manage.c
    Row{"migration/", ThreadKind::kernel},     // cpu_stop_threads, kernel/stop_machine.c
    Row{"cpuhp/", ThreadKind::kernel},         // cpuhp_threads, kernel/cpu.c
    Row{"idle_inject/", ThreadKind::kernel},   // drivers/powercap/idle_inject.c
    Row{"rcu_", ThreadKind::kernel},           // kernel/rcu
    Row{"rcub/", ThreadKind::kernel},
    Row{"rcuc/", ThreadKind::kernel},
    Row{"rcuog/", ThreadKind::kernel},
    Row{"rcuo", ThreadKind::kernel},
    Row{"kthreadd", ThreadKind::kernel},
    Row{"kswapd", ThreadKind::kernel},
    Row{"kcompactd", ThreadKind::kernel},
    Row{"khugepaged", ThreadKind::kernel},
    Row{"khungtaskd", ThreadKind::kernel},
    Row{"ksmd", ThreadKind::kernel},
    Row{"kauditd", ThreadKind::kernel},
    Row{"kdevtmpfs", ThreadKind::kernel},
    Row{"oom_reaper", ThreadKind::kernel},
    Row{"watchdogd", ThreadKind::kernel},
    Row{"pool_workqueue_", ThreadKind::kernel},
    Row{"jbd2/", ThreadKind::kernel},  // a thread per ext4 journal
    Row{"xfsaild/", ThreadKind::kernel},
    Row{"scsi_eh_", ThreadKind::kernel},
    Row{"hwrng", ThreadKind::kernel},
};

}  // namespace

ThreadKind thread_kind(std::string_view comm) {
  // Most names are those of programs: few begin with a letter of the table's.
  for (const Row& row : kRows) {
    if (comm.starts_with(row.prefix)) return row.kind;
  }
  return ThreadKind::user;
}

}  // namespace skbtrail::track
