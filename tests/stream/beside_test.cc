// Batches that two threads share: each goes to the dispatcher once, in order, whoever does it.
#include "stream/beside.h"

#include <gmock/gmock.h>

#include <array>
#include <future>
#include <utility>

#include "event/irq.h"
#include "event/net.h"
#include "stream/merge.h"
#include "stream/trace.h"
#include "support/files.h"

namespace skbtrail::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Stamps = std::vector<Nanoseconds>;

struct StampTaker {
  Stamps times;
  void on(const EventHeader& header, const NetDevQueue&) { times.push_back(header.time); }
  void on(const EventHeader& header, const SoftirqEntry&) { times.push_back(header.time); }
};

// What is left of each batch: a place may be used again when it was done with, and not before.
struct Left final : Behind {
  std::vector<std::size_t> begun, finished;
  std::array<bool, kMostPlaces> used{};
  bool ended = false;

  void begin(std::size_t place) override {
    EXPECT_FALSE(std::exchange(used[place], true)) << place;
    begun.push_back(place);
  }
  void end() override { ended = true; }
  void finish(std::size_t place) override {
    EXPECT_TRUE(std::exchange(used[place], false)) << place;
    finished.push_back(place);
  }
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
  bool fill() { return fill(beside); }
  bool fill(Beside& its) {
    its.make_room();
    EventBatch* batch = queue.next_empty();
    its.has_room();
    const bool more = merge.fill(*batch);
    queue.filled();
    its.filled();
    return more;
  }
  void pass() {
    beside.begins();
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
  Left left;
  Beside beside{queue, dispatchers, &left};
};

TEST_F(BesideTest, it_is_the_other_threads_while_that_has_little_to_do) {
  for (std::size_t i = 0; i < 3; ++i) {
    fill();
    EXPECT_EQ(tracker.times, expected(i));
    pass();
    EXPECT_EQ(tracker.times, expected(i + 1));
    EXPECT_EQ(left.finished.size(), i + 1);
  }
  EXPECT_THAT(left.finished, ElementsAre(0, 1, 2));
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
  Beside nothing_left{queue, dispatchers, nullptr};
  for (std::size_t i = 0; i < kBatches; ++i) {
    fill(nothing_left);
    queue.emptied();
  }
  EXPECT_TRUE(tracker.times.empty());
  fill(nothing_left);
  EXPECT_EQ(tracker.times, expected(1));
}

TEST_F(BesideTest, what_was_left_of_a_batch_is_done_before_its_place_is_used_again) {
  for (std::size_t i = 0; i < kMany; ++i) fill();
  for (std::size_t i = 0; i < 6; ++i) pass();
  for (std::size_t i = kMany; i < kBatches; ++i) fill();
  EXPECT_THAT(left.begun, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(left.finished, IsEmpty());
  fill();
  EXPECT_THAT(left.finished, ElementsAre(0));
  fill();
  EXPECT_THAT(left.finished, ElementsAre(0, 1));
}

TEST_F(BesideTest, at_the_end_nothing_is_left) {
  for (std::size_t i = 0; i < kMany; ++i) fill();
  for (std::size_t i = 0; i < 3; ++i) pass();
  EXPECT_THAT(left.finished, IsEmpty());
  EXPECT_FALSE(left.ended);
  beside.finish();
  EXPECT_EQ(tracker.times, expected(kMany));
  EXPECT_THAT(left.finished, ElementsAre(0, 1, 2));
  EXPECT_TRUE(left.ended);
}

TEST_F(BesideTest, two_threads_at_once) {
  std::size_t batches = 0;
  auto reading = std::async(std::launch::async, [&] {
    for (bool more = true; more; ++batches) {
      more = fill();
    }
    queue.end();
  });
  while (queue.next_filled() != nullptr) pass();
  reading.get();
  beside.finish();
  EXPECT_EQ(tracker.times, expected(batches));
  EXPECT_EQ(left.begun.size(), batches);
  EXPECT_EQ(left.finished, left.begun);
}

}  // namespace
}  // namespace skbtrail::stream
