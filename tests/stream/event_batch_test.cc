// One thread puts, another takes: everything arrives once, in order, whatever happens between them.
#include "stream/event_batch.h"

#include <gmock/gmock.h>

#include <future>
#include <optional>

#include "base/batch_queue.h"

namespace skbtrail::stream {
namespace {

using EventQueue = BatchQueue<EventBatch>;

constexpr std::size_t kMany = 100'000;  // many times what the queue can hold

struct Taken {
  std::vector<Nanoseconds> times;
  std::vector<std::uint8_t> first_bytes, last_bytes;
  std::vector<std::pair<std::size_t, LossWindow>> losses;  // behind how many events

  // Of an event that it was asked about just before.
  static auto lookup() {
    return [](const RawEvent& raw) { return raw.time; };
  }
  void dispatch(const RawEvent& raw, std::uint64_t asked) {
    EXPECT_EQ(asked, raw.time);
    times.push_back(raw.time);
    first_bytes.push_back(raw.data[0]);
    last_bytes.push_back(raw.data[raw.size - 1]);
  }
  std::vector<std::pair<std::size_t, LossWindow>> begins;  // of losses
  void dispatch_loss_begin(const LossWindow& window) { begins.emplace_back(times.size(), window); }
  void dispatch_loss(const LossWindow& window) { losses.emplace_back(times.size(), window); }
};

template <class Taker>
void drain(EventQueue& queue, Taker& taker) {
  while (const EventBatch* batch = queue.next_filled()) {
    batch->pass_to(taker);
    queue.emptied();
  }
}

RawEvent event_at(Nanoseconds time, const std::vector<std::uint8_t>& data) {
  return {time, data.data(), static_cast<std::uint32_t>(data.size()), 7, 3, 0};
}

// Puts events one by one; each batch as full as it can be.
class Putter {
 public:
  explicit Putter(EventQueue& queue) : queue_(queue), batch_(queue.next_empty()) {}

  bool put(const RawEvent& event, const std::optional<LossWindow>& gap = {}) {
    if (batch_ != nullptr && !batch_->has_room(event)) {
      queue_.filled();
      batch_ = queue_.next_empty();
    }
    if (batch_ == nullptr) return false;
    if (gap) batch_->lost(*gap);
    batch_->add(event);
    return true;
  }
  void end() {
    if (batch_ != nullptr) queue_.filled();
    queue_.end();
  }

 private:
  EventQueue& queue_;
  EventBatch* batch_;
};

// Puts `count` events whose bytes are gone as soon as they are put.
void put_passing(EventQueue& queue, std::size_t count) {
  Putter putter(queue);
  std::vector<std::uint8_t> page(40);
  for (std::size_t i = 0; i < count; ++i) {
    page.front() = page.back() = static_cast<std::uint8_t>(i);
    ASSERT_TRUE(putter.put(event_at(i, page)));
    page.assign(page.size(), 0xee);
  }
  putter.end();
}

TEST(EventQueue, passes_all_events_with_their_bytes) {
  EventQueue queue(8, EventBatch(false));
  auto putting = std::async(std::launch::async, [&] { put_passing(queue, kMany); });
  Taken taken;
  drain(queue, taken);
  putting.get();
  ASSERT_EQ(taken.times.size(), kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(taken.times[i], i);
    ASSERT_EQ(taken.first_bytes[i], static_cast<std::uint8_t>(i));
    ASSERT_EQ(taken.last_bytes[i], static_cast<std::uint8_t>(i));
  }
}

TEST(EventQueue, what_lasts_is_not_copied) {
  const std::vector<std::uint8_t> page{1, 2, 3, 4};
  EventQueue queue(8, EventBatch(true));
  Putter putter(queue);
  ASSERT_TRUE(putter.put(event_at(5, page)));
  putter.end();
  struct {
    const std::uint8_t* data = nullptr;
    CpuId cpu = 0;
    static auto lookup() {
      return [](const RawEvent&) { return 0; };
    }
    void dispatch(const RawEvent& raw, int) {
      data = raw.data;
      cpu = raw.cpu;
    }
    void dispatch_loss_begin(const LossWindow&) {}
    void dispatch_loss(const LossWindow&) {}
  } taken;
  drain(queue, taken);
  EXPECT_EQ(taken.data, page.data());
  EXPECT_EQ(taken.cpu, 3U);
}

TEST(EventQueue, an_event_of_any_size_fits) {
  const std::vector<std::uint8_t> small(8, 1);
  const std::vector<std::uint8_t> large(1 << 20, 2);
  EventQueue queue(8, EventBatch(false));
  auto putting = std::async(std::launch::async, [&] {
    Putter putter(queue);
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(putter.put(event_at(2 * i, small)));
      ASSERT_TRUE(putter.put(event_at(2 * i + 1, large)));
    }
    putter.end();
  });
  Taken taken;
  drain(queue, taken);
  putting.get();
  ASSERT_EQ(taken.times.size(), 80U);
  for (std::size_t i = 0; i < 80; ++i) {
    EXPECT_EQ(taken.times[i], i);
    EXPECT_EQ(taken.last_bytes[i], i % 2 + 1);
  }
}

// The places include both sides of every border between batches.
TEST(EventQueue, a_gap_comes_right_before_its_event) {
  constexpr std::size_t kEvents = 5000;
  for (const bool lasting : {true, false}) {
    const std::vector<std::uint8_t> page(16);
    EventQueue queue(8, EventBatch(lasting));
    Putter putter(queue);
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_TRUE(putter.put(event_at(i, page), LossWindow{1, i, i, i}));
    }
    putter.end();
    Taken taken;
    drain(queue, taken);
    ASSERT_EQ(taken.times.size(), kEvents);
    ASSERT_EQ(taken.losses.size(), kEvents);
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(taken.losses[i].first, i);
      ASSERT_EQ(taken.losses[i].second.events, i);
    }
  }
}

TEST(EventBatch, who_takes_few_gets_those_and_every_gap) {
  struct Few : Taken {
    bool takes(std::uint16_t id) const { return id % 3 == 0; }
    void dispatch(const RawEvent& raw, std::uint64_t asked) {
      if (takes(raw.id)) Taken::dispatch(raw, asked);
    }
  };
  struct Asked : Few {  // must not be given anything else
    void dispatch(const RawEvent& raw, std::uint64_t asked) {
      EXPECT_TRUE(takes(raw.id));
      Taken::dispatch(raw, asked);
    }
  };
  const std::vector<std::uint8_t> page(16);
  EventBatch batch(true);
  batch.clear();
  for (std::size_t i = 0; i < EventBatch::kEvents; ++i) {
    RawEvent event = event_at(i, page);
    event.id = static_cast<std::uint16_t>(i * i % 31);
    ASSERT_TRUE(batch.has_room(event));
    if (i % 100 == 3) batch.loss_begins({1, i, i, i});
    if (i % 100 == 7) batch.lost({1, i, i, i});
    batch.add(event);
  }
  Few all;
  batch.pass_to(all);
  Asked few;
  batch.pass_taken_to(few);
  EXPECT_GT(few.times.size(), 100U);
  EXPECT_EQ(few.times, all.times);
  for (const auto losses : {&Taken::begins, &Taken::losses}) {
    EXPECT_EQ((all.*losses).size(), 11U);
    ASSERT_EQ((few.*losses).size(), (all.*losses).size());
    for (std::size_t i = 0; i < (few.*losses).size(); ++i) {
      EXPECT_EQ((few.*losses)[i].first, (all.*losses)[i].first);
      EXPECT_EQ((few.*losses)[i].second.events, (all.*losses)[i].second.events);
    }
  }
}

TEST(EventQueue, who_puts_learns_that_nobody_takes) {
  const std::vector<std::uint8_t> page(16);
  EventQueue queue(8, EventBatch(true));
  auto putting = std::async(std::launch::async, [&] {
    Putter putter(queue);
    Nanoseconds put = 0;
    while (putter.put(event_at(put, page))) ++put;
    putter.end();
    return put;
  });
  queue.abandon();
  EXPECT_LT(putting.get(), kMany);
}

}  // namespace
}  // namespace skbtrail::stream
