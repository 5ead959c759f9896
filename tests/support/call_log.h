// What a thread of a test did itself: each of its calls on a socket, with the times before and
// after it. The times are of CLOCK_MONOTONIC, the clock of our captures: they compare directly.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::test {

struct LoggedCall {
  std::string call;    // as the kernel names it: recv() is recvfrom
  bool takes = false;  // reads bytes for good: not a send, a wait, a MSG_PEEK
  pid_t tid = 0;
  Nanoseconds before = 0;
  Nanoseconds after = 0;
  std::int64_t ret = 0;
  // The thread left its CPU to wait in the call, by getrusage().
  bool slept = false;
  std::vector<std::uint32_t> datagrams;  // their numbers, where it received datagrams

  bool contains(Nanoseconds time) const { return before <= time && time <= after; }
};

// Of one thread.
class CallLog {
 public:
  // Runs `call` and logs it; returns what it returned. Throws when it failed.
  template <class Call>
  std::int64_t operator()(const char* name, bool takes, Call call) {
    const std::int64_t switches = voluntary_switches();
    const Nanoseconds before = now();
    const std::int64_t ret = call();
    const Nanoseconds after = now();
    add(name, takes, before, after, ret, voluntary_switches() > switches);
    return ret;
  }
  template <class Call>
  std::int64_t take(const char* name, Call call) {
    return (*this)(name, true, call);
  }
  template <class Call>
  std::int64_t other(const char* name, Call call) {
    return (*this)(name, false, call);
  }

  std::vector<LoggedCall> calls;

 private:
  static Nanoseconds now();
  static std::int64_t voluntary_switches();
  void add(const char* name, bool takes, Nanoseconds before, Nanoseconds after, std::int64_t ret,
           bool slept);
};

// In no call that the profile records.
void nap(std::uint64_t microseconds);
// The calling thread, on the CPU of that number; where there are fewer they are counted again.
void stay_on(unsigned cpu);

// work(log) in a thread of its own.
template <class Work>
std::future<CallLog> thread(Work work) {
  return std::async(std::launch::async, [work] {
    CallLog log;
    work(log);
    return log;
  });
}

}  // namespace skbtrail::test
