#include "track/thread_kind.h"

#include <array>
#include <charconv>

namespace skbtrail::track {
namespace {

struct Kind {
  std::string_view prefix;  // of comm
  ThreadKind kind;
};

// A capture does not say who is a child of kthreadd. Names: 5.4 to 6.18.
constexpr std::array kRows{
    Kind{"ksoftirqd/", ThreadKind::ksoftirqd},  // softirq_threads, kernel/softirq.c
    Kind{"ktimers/", ThreadKind::ksoftirqd},   // timer_thread, kernel/softirq.c (6.12, forced irqs)
    Kind{"napi/", ThreadKind::napi},           // napi_kthread_create(), net/core/dev.c
    Kind{"backlog_napi/", ThreadKind::napi},   // backlog_threads, net/core/dev.c (6.10)
    Kind{"kworker/", ThreadKind::kernel},      // create_worker(), kernel/workqueue.c
    Kind{"irq/", ThreadKind::kernel},          // setup_irq_thread(), kernel/irq/manage.c
    Kind{"migration/", ThreadKind::kernel},    // cpu_stop_threads, kernel/stop_machine.c
    Kind{"cpuhp/", ThreadKind::kernel},        // cpuhp_threads, kernel/cpu.c
    Kind{"idle_inject/", ThreadKind::kernel},  // drivers/powercap/idle_inject.c
    Kind{"rcu_", ThreadKind::kernel},          // kernel/rcu
    Kind{"rcub/", ThreadKind::kernel},
    Kind{"rcuc/", ThreadKind::kernel},
    Kind{"rcuog/", ThreadKind::kernel},
    Kind{"rcuo", ThreadKind::kernel},
    Kind{"kthreadd", ThreadKind::kernel},
    Kind{"kswapd", ThreadKind::kernel},
    Kind{"kcompactd", ThreadKind::kernel},
    Kind{"khugepaged", ThreadKind::kernel},
    Kind{"khungtaskd", ThreadKind::kernel},
    Kind{"ksmd", ThreadKind::kernel},
    Kind{"kauditd", ThreadKind::kernel},
    Kind{"kdevtmpfs", ThreadKind::kernel},
    Kind{"oom_reaper", ThreadKind::kernel},
    Kind{"watchdogd", ThreadKind::kernel},
    Kind{"pool_workqueue_", ThreadKind::kernel},
    Kind{"jbd2/", ThreadKind::kernel},  // a thread per ext4 journal
    Kind{"xfsaild/", ThreadKind::kernel},
    Kind{"scsi_eh_", ThreadKind::kernel},
    Kind{"hwrng", ThreadKind::kernel},
};

// Threads of one CPU have its number in their names (smpboot_register_percpu_thread(),
// kernel/smpboot.c; create_worker(), kernel/workqueue.c, where those of no CPU are kworker/u), and
// nobody else may move them (PF_NO_SETAFFINITY).
constexpr std::array<std::string_view, 7> kBound{"ksoftirqd/", "ktimers/", "migration/",   "cpuhp/",
                                                 "kworker/",   "rcuc/",    "backlog_napi/"};

}  // namespace

std::int32_t bound_to(std::string_view comm) {
  for (const std::string_view prefix : kBound) {
    if (!comm.starts_with(prefix)) continue;
    const char* const end = comm.data() + comm.size();
    std::int32_t cpu = kBoundToNone;
    const auto [rest, error] = std::from_chars(comm.data() + prefix.size(), end, cpu);
    const bool whole = error == std::errc{} && cpu >= 0 && (rest == end || *rest == ':');
    return whole ? cpu : kBoundToNone;
  }
  return kBoundToNone;
}

ThreadKind thread_kind(std::string_view comm) {
  // Most names are those of programs: few begin with a letter of the table's.
  for (const Kind& row : kRows) {
    if (comm.starts_with(row.prefix)) return row.kind;
  }
  return ThreadKind::user;
}

}  // namespace skbtrail::track
