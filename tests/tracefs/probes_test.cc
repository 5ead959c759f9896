// What kprobe_profile says, as kernels print it, and what is written into kprobe_events, to a plain
// file in its place.
#include "tracefs/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "support/files.h"

namespace skbtrail::tracefs {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kProfile =
    "  tcp_rcv_established                                     20431              19\n"
    "  sock_def_readable                                       12002               0\n"
    "  an_event_with_a_name_that_is_longer_than_its_column_is               7               3\n"
    "  tcp_rcv_established                                         5               1\n";

TEST(KprobeProfile, the_last_number_is_what_was_missed) {
  EXPECT_EQ(misses_of(kProfile, "sock_def_readable"), 0U);
  EXPECT_EQ(misses_of(kProfile, "an_event_with_a_name_that_is_longer_than_its_column_is"), 3U);
  EXPECT_EQ(misses_of(kProfile, "tcp_rcv_established"), 20U) << "of two groups";
  EXPECT_EQ(misses_of(kProfile, "tcp_rcv"), 0U);
}

TEST(KprobeProfile, what_it_does_not_say_is_nothing) {
  EXPECT_EQ(misses_of("", "f"), 0U);
  EXPECT_EQ(misses_of("  f 7", "f"), 0U);
  EXPECT_EQ(misses_of("f f f\n  f 1 2\n", "f"), 0U);
}

class KprobeEvents : public ::testing::Test {
 protected:
  KprobeEvents() {
    test::write_file(folder_ / "available_events", "");
    test::write_file(folder_ / "kprobe_events", "p:somebody/their_probe udp_sendmsg\n");
  }
  Result<Probes> create() {
    return Probes::create(folder_.path(), *KernelEvents::read(folder_.path()));
  }
  std::string text() const { return test::read_file(folder_ / "kprobe_events"); }
  // How often events are made or removed.
  int count(const std::string& what) const {
    const std::string all = text();
    int found = 0;
    for (std::size_t at = 0; (at = all.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  test::TemporaryFolder folder_;
};

TEST_F(KprobeEvents, are_made_and_removed) {
  std::string before = text();
  {
    const Result<Probes> probes = create();
    ASSERT_TRUE(probes.has_value()) << probes.error().message;
    before +=
        "p:skbtrail/tcp_rcv_established tcp_rcv_established skaddr=$arg1:x64 skbaddr=$arg2:x64\n"
        "p:skbtrail/sock_def_readable sock_def_readable skaddr=$arg1:x64\n"
        "p:skbtrail/__udp_enqueue_schedule_skb __udp_enqueue_schedule_skb skaddr=$arg1:x64 "
        "skbaddr=$arg2:x64\n"
        "p:skbtrail/__tcp_transmit_skb __tcp_transmit_skb skaddr=$arg1:x64 skbaddr=$arg2:x64\n"
        "p:skbtrail/skb_gro_receive skb_gro_receive held=$arg1:x64 skbaddr=$arg2:x64\n";
    EXPECT_EQ(text(), before);
  }
  EXPECT_EQ(text(), before +
                        "-:skbtrail/tcp_rcv_established\n"
                        "-:skbtrail/sock_def_readable\n"
                        "-:skbtrail/__udp_enqueue_schedule_skb\n"
                        "-:skbtrail/__tcp_transmit_skb\n"
                        "-:skbtrail/skb_gro_receive\n");
}

// The second one has found them, and has not enabled them yet: the kernel would let them go.
TEST_F(KprobeEvents, stay_until_the_last_recording_ends) {
  std::optional<Result<Probes>> first, second;
  first.emplace(create());
  second.emplace(create());
  ASSERT_TRUE(first->has_value() && second->has_value());
  first.reset();
  EXPECT_EQ(count("-:"), 0);
  first.emplace(create());
  second.reset();
  EXPECT_EQ(count("-:"), 0);
  first.reset();
  EXPECT_EQ(count("-:"), 5);
}

TEST_F(KprobeEvents, a_kernel_without_them_is_unsupported) {
  std::filesystem::remove(folder_ / "kprobe_events");
  const Result<Probes> probes = create();
  ASSERT_FALSE(probes.has_value());
  EXPECT_EQ(probes.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(probes.error().message, HasSubstr("record without --probes"));
}

}  // namespace
}  // namespace skbtrail::tracefs
