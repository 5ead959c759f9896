#include "record/limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace skbtrail::record {
namespace {

TEST(Buffers, are_the_default_where_there_is_memory) {
  EXPECT_EQ(sane_buffer_kb("MemTotal: 1 kB\nMemAvailable:   16777216 kB\n", 8), kDefaultBufferKb);
}

TEST(Buffers, take_a_quarter_of_free_memory_at_most) {
  EXPECT_EQ(sane_buffer_kb("MemAvailable:   262144 kB\n", 8), 8192U);
  EXPECT_EQ(sane_buffer_kb("MemAvailable:   100 kB\n", 8), 1024U);
}

TEST(Buffers, are_the_default_when_nothing_is_known) {
  EXPECT_EQ(sane_buffer_kb("", 8), kDefaultBufferKb);
}

TEST(Threads, all_of_a_process_each_once) {
  std::mutex mutex;
  std::condition_variable changed;
  Pid other = 0;
  bool done = false;
  std::thread thread([&] {
    std::unique_lock lock(mutex);
    other = ::gettid();
    changed.notify_all();
    changed.wait(lock, [&] { return done; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return other != 0; });
  }
  const std::vector<Pid> pids{::getpid(), other};
  const Result<std::vector<Pid>> threads = threads_of(pids);
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
  thread.join();
  ASSERT_TRUE(threads.has_value());
  // A sanitizer may have a thread of its own besides.
  EXPECT_EQ(std::count(threads->begin(), threads->end(), ::getpid()), 1);
  EXPECT_EQ(std::count(threads->begin(), threads->end(), other), 1);
}

TEST(Threads, of_no_process_is_an_error_that_names_it) {
  constexpr Pid kNobody = 999'999'999;  // above PID_MAX_LIMIT
  const std::vector<Pid> pids{kNobody};
  const Result<std::vector<Pid>> threads = threads_of(pids);
  ASSERT_FALSE(threads.has_value());
  EXPECT_EQ(threads.error().kind, ErrorKind::usage);
  EXPECT_NE(threads.error().message.find("999999999"), std::string::npos);
}

}  // namespace
}  // namespace skbtrail::record
