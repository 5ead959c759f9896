// Batches that two threads share: each goes to the dispatcher once, in order, whoever does it.
#include "stream/beside.h"

#include <gmock/gmock.h>

#include <future>

#include "event/irq.h"
#include "event/net.h"
#include "stream/merge.h"
#include "stream/trace.h"
#include "support/files.h"

namespace skbtrail::stream {
namespace {

using Stamps = std::vector<Nanoseconds>;

struct StampTaker {
  Stamps times;
  void on(const EventHeader& header, const NetDevQueue&) { times.push_back(header.time); }
  void on(const EventHeader& header, const SoftirqEntry&) { times.push_back(header.time); }
};

class BesideTest : public ::testing::Test {
 protected:
  // So many lie there at most, and so many when the thread that reads takes over.
  static constexpr std::size_t kBatches = 16;
  static constexpr std::size_t kMany = 12;

  BesideTest() {
    dispatcher.subscribe<NetDevQueue>(tracker);
    dispatcher.subscribe<SoftirqEntry>(tracker);
  }

  // As the thread that reads does it. False when that was the last.
  bool fill() {
    beside.make_room();
    EventBatch* batch = queue.next_empty();
    const bool more = merge.fill(*batch);
    queue.filled();
    beside.filled();
    return more;
  }
  void pass() {
    beside.passed();
    queue.emptied();
  }
  // What the tracker must have seen of the first batches.
  Stamps expected(std::size_t batches) {
    StampTaker seen;
    Dispatcher plain(trace.catalog());
    plain.subscribe<NetDevQueue>(seen);
    plain.subscribe<SoftirqEntry>(seen);
    Merge again = trace.events();
    EventBatch batch(trace.events_last());
    bool more = true;
    for (std::size_t i = 0; i < batches && more; ++i) {
      batch.clear();
      more = again.fill(batch);
      batch.pass_to(plain);
    }
    return seen.times;
  }

  Trace trace = *Trace::open(test::data_file("6.12-nginx_small_veth.dat"));
  Merge merge = trace.events();
  StampTaker tracker;
  Dispatcher dispatcher{trace.catalog()};
  Dispatcher* const dispatchers[1] = {&dispatcher};
  BatchQueue<EventBatch> queue{kBatches, trace.events_last()};
  Beside beside{queue, dispatchers};
};

TEST_F(BesideTest, it_is_the_other_threads_while_that_has_little_to_do) {
  for (std::size_t i = 0; i < 3; ++i) {
    fill();
    EXPECT_EQ(tracker.times, expected(i));
    pass();
    EXPECT_EQ(tracker.times, expected(i + 1));
  }
  EXPECT_FALSE(beside.do_one());
  EXPECT_FALSE(tracker.times.empty());
}

TEST_F(BesideTest, who_reads_takes_it_over_when_the_other_thread_falls_behind) {
  for (std::size_t i = 0; i + 1 < kMany; ++i) fill();
  EXPECT_TRUE(tracker.times.empty());
  fill();
  EXPECT_EQ(tracker.times, expected(kMany));
  fill();
  EXPECT_EQ(tracker.times, expected(kMany + 1));
  pass();  // of those that are done with already
  EXPECT_EQ(tracker.times, expected(kMany + 1));
}

TEST_F(BesideTest, the_other_thread_gets_it_back_when_it_has_little_to_do) {
  for (std::size_t i = 0; i < kMany; ++i) fill();
  for (std::size_t i = 0; i < kMany; ++i) pass();
  const Stamps before = tracker.times;
  fill();
  EXPECT_EQ(tracker.times, before);
  pass();
  EXPECT_EQ(tracker.times, expected(kMany + 1));
}

// The first dispatcher has had them all, and its thread came to nothing else.
TEST_F(BesideTest, a_batch_is_given_out_again_only_when_it_is_done_with) {
  for (std::size_t i = 0; i < kBatches; ++i) {
    fill();
    queue.emptied();
  }
  EXPECT_TRUE(tracker.times.empty());
  fill();
  EXPECT_EQ(tracker.times, expected(1));
}

TEST_F(BesideTest, two_threads_at_once) {
  std::size_t batches = 0;
  auto reading = std::async(std::launch::async, [&] {
    for (bool more = true; more; ++batches) {
      beside.make_room();
      EventBatch* batch = queue.next_empty();
      more = merge.fill(*batch);
      queue.filled();
      beside.filled();
    }
    queue.end();
  });
  while (queue.next_filled() != nullptr) pass();
  reading.get();
  while (beside.do_one()) {
  }
  EXPECT_EQ(tracker.times, expected(batches));
}

}  // namespace
}  // namespace skbtrail::stream
