// Loss as libtracecmd, kbuffer and KernelShark see it. The captures in tests/data have none:
// trace-cmd recorded them without overwriting, where the kernel drops new events and flags nothing.
#include <gtest/gtest.h>

#include "stream/trace.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/page_builder.h"
#include "tracedat/writer.h"

namespace skbtrail::tracedat {
namespace {

using test::PageBuilder;

// Two CPUs, the second with a known gap, an unknown one, and one before a page that starts with an
// absolute time stamp.
std::string lossy_file(FileVersion version) {
  const std::string text =
      test::read_file(test::data_file("formats/6.18/net/netif_receive_skb.format"));
  const std::string record = test::payload(parse_event_format("net", text)->id, 28);
  CaptureText capture;
  capture.page_size = 4096;
  capture.cpu_count = 2;
  capture.header_page = test::kHeaderPage;
  capture.header_event = test::kHeaderEvent;
  capture.systems = {{"net", {text}}};
  capture.clock = "mono";
  capture.trace_clock = "local [mono]\n";
  const std::string zero = PageBuilder(1500).data(0, record).data(2000, record).build();
  const std::string one = PageBuilder(1000).data(0, record).build() +
                          PageBuilder(2000).data(0, record).data(7, record).missed(18939).build() +
                          PageBuilder(3000).data(0, record).missed().build() +
                          PageBuilder(4000).time_stamp(4005).data(0, record).missed(3).build();
  const auto layout = lay_out(capture, {{0, zero.size()}, {1, one.size()}}, version);
  EXPECT_TRUE(layout.has_value());
  return layout->head + zero + one;
}

class LossOracle : public ::testing::TestWithParam<FileVersion> {
 protected:
  LossOracle() { test::write_file(file_, lossy_file(GetParam())); }
  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "lossy.dat";
};

TEST_P(LossOracle, we_read_every_gap) {
  const auto trace = stream::Trace::open(file_);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  stream::Merge events = trace->events();
  std::vector<std::pair<Nanoseconds, std::uint64_t>> seen;
  for (RawEvent raw; events.next(raw);) seen.emplace_back(raw.time, raw.lost_before);
  const std::vector<std::pair<Nanoseconds, std::uint64_t>> expected{
      {1000, 0}, {1500, 0}, {2000, 18939}, {2007, 0}, {3000, kLostUnknown}, {3500, 0}, {4005, 3}};
  EXPECT_EQ(seen, expected);
}

TEST_P(LossOracle, libtracecmd_and_kbuffer_read_the_same_gaps) {
  const test::Comparison tracecmd = test::compare_with_tracecmd(file_);
  EXPECT_EQ(tracecmd.difference, "");
  EXPECT_EQ(tracecmd.events, 7U);
  const test::Comparison kbuffer = test::compare_with_kbuffer(file_);
  EXPECT_EQ(kbuffer.difference, "");
  EXPECT_EQ(kbuffer.events, 7U);
}

INSTANTIATE_TEST_SUITE_P(BothVersions, LossOracle,
                         ::testing::Values(FileVersion::v6, FileVersion::v7),
                         [](const auto& version) {
                           return version.param == FileVersion::v6 ? "v6" : "v7";
                         });

}  // namespace
}  // namespace skbtrail::tracedat
