// One thread puts, another takes: everything arrives once, in order, whatever happens between them.
#include "stream/event_queue.h"

#include <gmock/gmock.h>

#include <future>

namespace skbtrail::stream {
namespace {

constexpr std::size_t kMany = 50'000;  // many times what the queue can hold

struct Taken {
  std::vector<Nanoseconds> times;
  std::vector<std::uint8_t> first_bytes, last_bytes;
  std::vector<std::pair<std::size_t, LossWindow>> losses;  // behind how many events

  void event(const RawEvent& raw) {
    times.push_back(raw.time);
    first_bytes.push_back(raw.data[0]);
    last_bytes.push_back(raw.data[raw.size - 1]);
  }
  void lost(const LossWindow& window) { losses.emplace_back(times.size(), window); }
};

RawEvent event_at(Nanoseconds time, const std::vector<std::uint8_t>& data) {
  return {time, data.data(), static_cast<std::uint32_t>(data.size()), 7, 3, 0};
}

// Puts `count` events whose bytes are gone as soon as they are put.
void put_passing(EventQueue& queue, std::size_t count) {
  std::vector<std::uint8_t> page(40);
  for (std::size_t i = 0; i < count; ++i) {
    page.front() = page.back() = static_cast<std::uint8_t>(i);
    ASSERT_TRUE(queue.put(event_at(i, page)));
    page.assign(page.size(), 0xee);
  }
  queue.end();
}

TEST(EventQueue, passes_all_events_with_their_bytes) {
  EventQueue queue(false);
  auto putting = std::async(std::launch::async, [&] { put_passing(queue, kMany); });
  Taken taken;
  queue.drain(taken);
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
  EventQueue queue(true);
  ASSERT_TRUE(queue.put(event_at(5, page)));
  queue.end();
  struct {
    const std::uint8_t* data = nullptr;
    CpuId cpu = 0;
    void event(const RawEvent& raw) {
      data = raw.data;
      cpu = raw.cpu;
    }
    void lost(const LossWindow&) {}
  } taken;
  queue.drain(taken);
  EXPECT_EQ(taken.data, page.data());
  EXPECT_EQ(taken.cpu, 3U);
}

TEST(EventQueue, an_event_of_any_size_fits) {
  const std::vector<std::uint8_t> small(8, 1);
  const std::vector<std::uint8_t> large(1 << 20, 2);
  EventQueue queue(false);
  auto putting = std::async(std::launch::async, [&] {
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(queue.put(event_at(2 * i, small)));
      ASSERT_TRUE(queue.put(event_at(2 * i + 1, large)));
    }
    queue.end();
  });
  Taken taken;
  queue.drain(taken);
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
    EventQueue queue(lasting);
    for (std::size_t i = 0; i < kEvents; ++i) {
      queue.put_loss({1, i, i, i});
      ASSERT_TRUE(queue.put(event_at(i, page)));
    }
    queue.end();
    Taken taken;
    queue.drain(taken);
    ASSERT_EQ(taken.times.size(), kEvents);
    ASSERT_EQ(taken.losses.size(), kEvents);
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(taken.losses[i].first, i);
      ASSERT_EQ(taken.losses[i].second.events, i);
    }
  }
}

TEST(EventQueue, who_puts_learns_that_nobody_takes) {
  const std::vector<std::uint8_t> page(16);
  EventQueue queue(true);
  auto putting = std::async(std::launch::async, [&] {
    Nanoseconds put = 0;
    while (queue.put(event_at(put, page))) ++put;
    queue.end();
    return put;
  });
  queue.abandon();
  EXPECT_LT(putting.get(), kMany);
}

}  // namespace
}  // namespace skbtrail::stream
