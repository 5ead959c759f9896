// Walks on threads of their own against one plain loop over the same trace.
#include "stream/walk.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "event/irq.h"
#include "event/net.h"
#include "event/skb.h"
#include "support/files.h"

namespace skbtrail::stream {
namespace {

struct Times {
  std::vector<Nanoseconds> times;
  void on(const EventHeader& header, const NetifReceiveSkb&) { times.push_back(header.time); }
  void on(const EventHeader& header, const NetDevQueue&) { times.push_back(header.time); }
  void on(const EventHeader& header, const ConsumeSkb&) { times.push_back(header.time); }
};

struct Thrower {
  void on(const EventHeader&, const SoftirqEntry&) { throw std::runtime_error("no more"); }
};

class Walk : public ::testing::Test {
 protected:
  std::vector<Nanoseconds> times_of(std::initializer_list<const char*> names) const {
    std::vector<Nanoseconds> times;
    Merge merge = trace.events();
    RawEvent event;
    while (merge.next(event)) {
      const std::string name = trace.catalog().name(event.id);
      if (std::find(names.begin(), names.end(), name) != names.end()) times.push_back(event.time);
    }
    return times;
  }

  Trace trace = *Trace::open(test::data_file("6.12-nginx_small_veth.dat"));
};

TEST_F(Walk, each_sees_what_it_wants_in_order) {
  Times receives;
  Times others;
  Dispatcher first(trace.catalog());
  first.subscribe<NetifReceiveSkb>(receives);
  Dispatcher second(trace.catalog());
  second.subscribe<NetDevQueue>(others);
  second.subscribe<ConsumeSkb>(others);
  Dispatcher nothing(trace.catalog());
  Dispatcher* const all[] = {&nothing, &first, &second};
  walk(trace, all);
  EXPECT_FALSE(receives.times.empty());
  EXPECT_EQ(receives.times, times_of({"net:netif_receive_skb"}));
  EXPECT_EQ(others.times, times_of({"net:net_dev_queue", "skb:consume_skb"}));
}

TEST_F(Walk, the_census_counts_every_event_once) {
  std::vector<std::uint64_t> counts(65536);
  Merge merge = trace.events();
  RawEvent event;
  Nanoseconds first = 0;
  std::uint64_t events = 0;
  while (merge.next(event)) {
    if (events++ == 0) first = event.time;
    ++counts[event.id];
  }
  Dispatcher one(trace.catalog());
  Dispatcher two(trace.catalog());
  Dispatcher* const all[] = {&one, &two};
  const Census census = walk(trace, all);
  EXPECT_GT(events, 1000U);
  std::vector<std::uint64_t> counted = census.counts;
  counted.resize(counts.size());
  EXPECT_EQ(counted, counts);
  EXPECT_EQ(census.first, first);
  EXPECT_EQ(census.last, event.time);
  EXPECT_EQ(census.damage.size(), trace.buffer().cpus.size());
}

// Its last page is damaged: that its events are lost no later event of this CPU can say.
TEST_F(Walk, each_is_told_what_a_cpu_lost_at_its_end_after_all_events) {
  const tracedat::Buffer& buffer = trace.buffer();
  const tracedat::CpuData& cpu = buffer.cpus.front();
  std::string file = test::read_file(trace.file().path());
  const auto* const start = reinterpret_cast<const std::uint8_t*>(file.data());
  const auto whole = *tracedat::Reader::parse({start, file.size()}, "whole");
  const std::span<const std::uint8_t> stored = whole.buffers().front().cpus.front().stored;
  const std::size_t last_page =
      static_cast<std::size_t>(stored.data() - start) + stored.size() - buffer.page_size;
  Nanoseconds page_time = 0;
  std::memcpy(&page_time, file.data() + last_page, sizeof page_time);
  file[last_page + 10] = 7;  // its length
  auto damaged = Trace::of(*tracedat::Reader::parse({start, file.size()}, "damaged"));
  ASSERT_TRUE(damaged);

  struct LastLoss {
    std::vector<LossWindow> losses;
    std::size_t events_since = 0, begins = 0;
    bool other_cpu_since = false;  // the begin
    void on(const EventHeader& header, const SoftirqEntry&) {
      ++events_since;
      other_cpu_since |= begins > 0 && header.cpu != 0;
    }
    void on_loss_begin(const LossWindow& window) {
      EXPECT_EQ(window.cpu, 0U);
      ++begins;
    }
    void on_loss(const LossWindow& window) {
      losses.push_back(window);
      events_since = 0;
    }
  };
  std::array<LastLoss, 2> told;
  Dispatcher first(damaged->catalog());
  Dispatcher second(damaged->catalog());
  first.subscribe<SoftirqEntry>(told[0]);
  first.subscribe_loss(told[0]);
  second.subscribe<SoftirqEntry>(told[1]);
  second.subscribe_loss(told[1]);
  Dispatcher* const all[] = {&first, &second};
  const Census census = walk(*damaged, all);
  for (const LastLoss& one : told) {
    ASSERT_EQ(one.losses.size(), 1U);
    EXPECT_EQ(one.events_since, 0U);
    EXPECT_EQ(one.begins, 1U);
    EXPECT_TRUE(one.other_cpu_since);
    EXPECT_EQ(one.losses.front().cpu, cpu.cpu);
    EXPECT_EQ(one.losses.front().events, kLostUnknown);
    EXPECT_GT(one.losses.front().from, census.first);
    EXPECT_LE(one.losses.front().from, page_time);
    EXPECT_EQ(one.losses.front().to, census.last);
  }
}

TEST_F(Walk, what_one_of_them_throws_arrives) {
  Thrower thrower;
  Dispatcher fine(trace.catalog());
  Dispatcher throws(trace.catalog());
  ASSERT_TRUE(throws.subscribe<SoftirqEntry>(thrower));
  Dispatcher* const last[] = {&fine, &throws};
  EXPECT_THROW(walk(trace, last), std::runtime_error);
  Dispatcher* const front[] = {&throws, &fine};
  EXPECT_THROW(walk(trace, front), std::runtime_error);
}

}  // namespace
}  // namespace skbtrail::stream
