// Threads that work for another one.
#pragma once

#include <sched.h>

#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace skbtrail {

// Does `work` on a thread of its own; none where that cannot be had or would not help. When it is
// woken it takes no CPU away from a task that runs, the one it works for above all (SCHED_BATCH,
// sched(7)); its share of a busy machine stays the same. With three threads on two CPUs that is a
// fifth of the time.
template <class Work>
std::optional<std::future<std::invoke_result_t<Work>>> start_helper(Work work) {
  if (std::thread::hardware_concurrency() < 2) return std::nullopt;
  try {
    return std::async(std::launch::async, [work = std::move(work)]() mutable {
      const sched_param none{};
      sched_setscheduler(0, SCHED_BATCH, &none);
      return work();
    });
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace skbtrail
