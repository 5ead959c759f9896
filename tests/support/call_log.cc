#include "support/call_log.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/error.h"

namespace skbtrail::test {

Nanoseconds CallLog::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000 +
         static_cast<Nanoseconds>(time.tv_nsec);
}

std::int64_t CallLog::voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

void CallLog::add(const char* name, bool takes, Nanoseconds before, Nanoseconds after,
                  std::int64_t ret, bool slept) {
  if (ret < 0) throw std::runtime_error(std::string(name) + ": " + errno_text(errno));
  calls.push_back({name, takes, gettid(), before, after, ret, slept, {}});
}

void stay_on(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu % static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void nap(std::uint64_t microseconds) {
  const timespec pause{0, static_cast<long>(microseconds * 1000)};
  nanosleep(&pause, nullptr);
}

}  // namespace skbtrail::test
