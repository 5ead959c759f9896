#include <fmt/format.h>

#include "stream/dispatcher.h"

#include <gmock/gmock.h>

#include "support/page_builder.h"

namespace skbtrail::stream {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

constexpr std::string_view kCommon =
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

std::string format_text(const std::string& name, int id, const std::string& field) {
  return "name: " + name + "\nID: " + std::to_string(id) + "\nformat:\n" + std::string(kCommon) +
         "\tfield:int " + field + ";\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
}

struct Fork {
  static constexpr EventName name{"kitchen", "fork"};
  std::int32_t prongs = 0;
  static constexpr auto fields = std::tuple{field("prongs", &Fork::prongs)};
};
struct Spoon {
  static constexpr EventName name{"kitchen", "spoon"};
  std::int32_t size = 0;
  static constexpr auto fields = std::tuple{field("size", &Spoon::size)};
};
struct Whisk {
  static constexpr EventName name{"kitchen", "whisk"};
  std::int32_t wires = 0;
  static constexpr auto fields = std::tuple{field("wires", &Whisk::wires)};
};
struct Ladle {
  static constexpr EventName name{"kitchen", "ladle"};
  std::int32_t volume = 0;
  static constexpr auto fields = std::tuple{field("volume", &Ladle::volume)};
};

constexpr std::uint16_t kFork = 10;
constexpr std::uint16_t kSpoon = 20;

// What the trackers saw, in one order.
struct Log {
  std::vector<std::string> lines;
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
};

struct Tracker {
  Log& log;
  std::string name = "";
  void on(const EventHeader& header, const Fork& fork) {
    log.add("{}fork {} at {} cpu {} pid {} flags {:#x}", name, fork.prongs, header.time, header.cpu,
            header.pid, header.flags);
  }
  void on(const EventHeader&, const Spoon& spoon) { log.add("{}spoon {}", name, spoon.size); }
  void on(const EventHeader&, const Whisk&) { log.add("whisk"); }
  void on(const EventHeader&, const Ladle&) { log.add("ladle"); }
  void on_loss(const LossWindow& window) {
    log.add("loss of {} on cpu {} from {} to {}", window.events, window.cpu, window.from,
            window.to);
  }
};

class DispatcherTest : public ::testing::Test {
 protected:
  void send(Nanoseconds time, CpuId cpu, std::uint16_t id, std::int32_t value,
            std::uint32_t size = 12) {
    std::string bytes;
    test::put(bytes, id);
    test::put(bytes, std::uint16_t{0x0110});  // preempt count 1, serving a softirq
    test::put(bytes, std::int32_t{-7});
    test::put(bytes, value);
    dispatcher_.dispatch({time, reinterpret_cast<const std::uint8_t*>(bytes.data()), size, id,
                          static_cast<std::uint16_t>(cpu), 0});
  }

  std::string fork_ = format_text("fork", kFork, "prongs");
  std::string spoon_ = format_text("spoon", kSpoon, "size");
  std::string whisk_ = format_text("whisk", 30, "something_else");
  std::vector<tracedat::FormatText> formats_{
      {"kitchen", fork_}, {"kitchen", spoon_}, {"kitchen", whisk_}};
  EventCatalog catalog_{formats_};
  Dispatcher dispatcher_{catalog_};
  Log log_;
  Tracker tracker_{log_};
};

TEST_F(DispatcherTest, an_event_arrives_decoded_with_its_header) {
  EXPECT_TRUE(dispatcher_.subscribe<Fork>(tracker_));
  send(100, 3, kFork, 4);
  EXPECT_THAT(log_.lines, ElementsAre("fork 4 at 100 cpu 3 pid -7 flags 0x10"));
}

TEST_F(DispatcherTest, what_nobody_subscribed_to_is_not_wanted_and_skipped) {
  dispatcher_.subscribe<Fork>(tracker_);
  send(1, 0, kSpoon, 1);
  send(2, 0, kSpoon, 2, 2);  // not even decodable: nobody looks
  send(3, 0, 65535, 0);
  EXPECT_THAT(log_.lines, IsEmpty());
  EXPECT_THAT(dispatcher_.ids(), ElementsAre(kFork));
  EXPECT_THAT(dispatcher_.undecodable(), IsEmpty());
}

TEST_F(DispatcherTest, subscribers_of_one_event_are_called_in_their_order) {
  Tracker second{log_, "second "};
  dispatcher_.subscribe<Spoon>(tracker_);
  dispatcher_.subscribe<Spoon>(second);
  dispatcher_.subscribe<Fork>(second);
  send(1, 0, kSpoon, 5);
  EXPECT_THAT(log_.lines, ElementsAre("spoon 5", "second spoon 5"));
}

TEST_F(DispatcherTest, records_shorter_than_their_format_are_counted) {
  Tracker second{log_, "second "};
  dispatcher_.subscribe<Fork>(tracker_);
  dispatcher_.subscribe<Fork>(second);  // a record is counted once, however many want it
  send(1, 0, kFork, 1, 11);
  send(2, 0, kFork, 2, 2);
  send(3, 0, kFork, 3);
  EXPECT_THAT(dispatcher_.undecodable(), ElementsAre(Pair(kFork, 2U)));
  EXPECT_EQ(log_.lines.size(), 2U);
}

TEST_F(DispatcherTest, a_gap_goes_to_everyone_who_subscribed_to_gaps) {
  Tracker second{log_};
  dispatcher_.subscribe_loss(tracker_);
  dispatcher_.subscribe_loss(second);
  dispatcher_.dispatch_loss({3, 100, 200, 42});
  const std::string line = "loss of 42 on cpu 3 from 100 to 200";
  EXPECT_THAT(log_.lines, ElementsAre(line, line));
}

TEST_F(DispatcherTest, its_begin_goes_to_those_of_them_who_want_that) {
  struct Careful : Tracker {
    void on_loss_begin(const LossWindow& window) { log.add("cpu {} loses some", window.cpu); }
  } careful{{log_}};
  dispatcher_.subscribe_loss(tracker_);
  dispatcher_.subscribe_loss(careful);
  dispatcher_.dispatch_loss_begin({3, 100, 200, 42});
  EXPECT_THAT(log_.lines, ElementsAre("cpu 3 loses some"));
}

TEST_F(DispatcherTest, an_event_the_trace_lacks_is_missing_without_a_reason) {
  EXPECT_FALSE(dispatcher_.subscribe<Ladle>(tracker_));
  EXPECT_THAT(dispatcher_.missing(), Contains(Pair("kitchen:ladle", "")));
}

TEST_F(DispatcherTest, an_event_of_another_layout_is_missing_with_its_reason) {
  EXPECT_FALSE(dispatcher_.subscribe<Whisk>(tracker_));
  EXPECT_THAT(dispatcher_.missing(), Contains(Pair("kitchen:whisk", HasSubstr("\"wires\""))));
  EXPECT_TRUE(dispatcher_.subscribe<Fork>(tracker_));
  EXPECT_THAT(dispatcher_.missing(), testing::Not(Contains(Key("kitchen:fork"))));
}

// A number that is wider or narrower than its member takes the way that is hardly ever taken.
struct Knife {
  static constexpr EventName name{"kitchen", "knife_"};
  std::string_view family_member;
  std::int32_t length = 0;
  static constexpr auto fields = std::tuple{field("length", &Knife::length)};
};

struct KnifeTracker {
  Log& log;
  void on(const EventHeader&, const Knife& knife) {
    log.add("{} {}", knife.family_member, knife.length);
  }
};

TEST(DispatcherFamily, a_member_is_bound_when_its_first_event_comes) {
  const std::string bread = format_text("knife_bread", 40, "length");
  const std::string blunt = format_text("knife_blunt", 41, "no_length");
  const std::string spread = format_text("knife_spread", 42, "no_length");
  const std::string fork = format_text("fork", kFork, "prongs");
  const std::vector<tracedat::FormatText> formats{
      {"kitchen", bread}, {"kitchen", blunt}, {"kitchen", spread}, {"kitchen", fork}};
  const EventCatalog catalog{formats};
  Dispatcher dispatcher{catalog};
  Log log;
  KnifeTracker first{log}, second{log};
  dispatcher.subscribe_family<Knife>(first);
  dispatcher.subscribe_family<Knife>(second);
  EXPECT_THAT(dispatcher.ids(), ::testing::UnorderedElementsAre(40, 40, 41, 41, 42, 42));
  const auto send = [&](std::uint16_t id, std::int32_t value, std::uint32_t size) {
    std::string bytes;
    test::put(bytes, id);
    test::put(bytes, std::uint16_t{0});
    test::put(bytes, std::int32_t{7});
    test::put(bytes, value);
    dispatcher.dispatch({1, reinterpret_cast<const std::uint8_t*>(bytes.data()), size, id, 0, 0});
  };
  send(40, 9, 11);
  send(40, 12, 12);
  send(40, 13, 12);
  EXPECT_THAT(log.lines, ElementsAre("bread 12", "bread 12", "bread 13", "bread 13"));
  EXPECT_THAT(dispatcher.undecodable(), ElementsAre(Pair(40, 1)));
  EXPECT_THAT(dispatcher.missing(), IsEmpty()) << "no event of a bad format has come";
  send(41, 5, 12);
  send(41, 6, 12);
  EXPECT_THAT(dispatcher.missing(), ElementsAre(Pair("kitchen:knife_blunt", HasSubstr("length"))));
  EXPECT_EQ(log.lines.size(), 4U);
}

TEST(DispatcherLayout, a_field_of_another_width_arrives_too) {
  std::string text = format_text("fork", kFork, "prongs");
  text.replace(text.find("offset:8;\tsize:4"), 16, "offset:8;\tsize:2");
  const std::vector<tracedat::FormatText> formats{{"kitchen", text}};
  const EventCatalog catalog(formats);
  Dispatcher dispatcher(catalog);
  Log log;
  Tracker tracker{log};
  ASSERT_TRUE(dispatcher.subscribe<Fork>(tracker));
  std::string bytes;
  for (const std::int32_t value : {0x00080000 | kFork, 77, 0x7777fffd}) test::put(bytes, value);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  dispatcher.dispatch({1, data, 10, kFork, 0, 0});
  dispatcher.dispatch({2, data, 9, kFork, 0, 0});
  EXPECT_THAT(log.lines, ElementsAre("fork -3 at 1 cpu 0 pid 77 flags 0x8"));
  EXPECT_THAT(dispatcher.undecodable(), ElementsAre(Pair(kFork, 1U)));
}

struct Tap {
  static constexpr EventName name{"kitchen", "tap"};
  static constexpr auto fields = std::tuple{};
};
struct TapTracker {
  std::vector<Pid> pids;
  void on(const EventHeader& header, const Tap&) { pids.push_back(header.pid); }
};

// Of an event without fields the common ones must be there.
TEST(DispatcherLayout, a_record_that_ends_before_its_pid_is_too_short) {
  const std::string text = format_text("tap", 40, "unused");
  const std::vector<tracedat::FormatText> formats{{"kitchen", text}};
  const EventCatalog catalog(formats);
  Dispatcher dispatcher(catalog);
  TapTracker tracker;
  ASSERT_TRUE(dispatcher.subscribe<Tap>(tracker));
  std::string bytes;
  for (const std::int32_t value : {40, 77}) test::put(bytes, value);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  dispatcher.dispatch({1, data, 8, 40, 0, 0});
  dispatcher.dispatch({2, data, 7, 40, 0, 0});
  EXPECT_THAT(tracker.pids, ElementsAre(77));
  EXPECT_THAT(dispatcher.undecodable(), ElementsAre(Pair(40, 1U)));
}

// RT kernels add common fields; a trace's own format comes first.
TEST(DispatcherHeader, common_fields_come_from_the_traces_own_format) {
  std::string text = format_text("fork", kFork, "prongs");
  text.replace(text.find("common_pid;\toffset:4"), 20, "common_pid;\toffset:8");
  text.replace(text.find("prongs;\toffset:8"), 16, "prongs;\toffset:4");
  const std::vector<tracedat::FormatText> formats{{"kitchen", text}};
  const EventCatalog catalog(formats);
  Dispatcher dispatcher(catalog);
  Log log;
  Tracker tracker{log};
  dispatcher.subscribe<Fork>(tracker);
  std::string bytes;
  for (const std::int32_t value : {0x00080000 | kFork, 4, 77}) test::put(bytes, value);
  dispatcher.dispatch({1, reinterpret_cast<const std::uint8_t*>(bytes.data()), 12, kFork, 0, 0});
  EXPECT_THAT(log.lines, ElementsAre("fork 4 at 1 cpu 0 pid 77 flags 0x8"));
}

}  // namespace
}  // namespace skbtrail::stream
