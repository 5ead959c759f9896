// skbtrail flows as a user runs it.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <string>

#include "support/files.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

// Who sends a packet sees it with this header, who receives it without (eth_type_trans()).
constexpr std::uint64_t kEthernetHeader = 14;

std::uint64_t number_at(const json::value& object, const char* key) {
  return object.at(key).to_number<std::uint64_t>();
}

// Captures of connections whose two ends are on the same machine, with the very same skbs.
class BothEnds : public testing::TestWithParam<std::string> {};

TEST_P(BothEnds, what_one_has_sent_the_other_has_received) {
  const RunResult result =
      skbtrail_once({"flows", "--format", "json", data_file(GetParam() + ".dat")});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  std::map<std::string, const json::value*> ends;
  for (const json::value& end : document.at("flows").as_array()) {
    ends[json::serialize(end.at("local")) + json::serialize(end.at("remote"))] = &end;
  }
  std::size_t pairs = 0;
  for (const auto& [name, end] : ends) {
    const auto other =
        ends.find(json::serialize(end->at("remote")) + json::serialize(end->at("local")));
    if (other == ends.end()) continue;
    ++pairs;
    const json::value& sent = end->at("sent");
    const json::value& received = other->second->at("received");
    const std::uint64_t packets = number_at(sent, "packets");
    EXPECT_EQ(packets, number_at(received, "packets")) << name;
    EXPECT_EQ(number_at(sent, "bytes"), number_at(received, "bytes") + packets * kEthernetHeader)
        << name;
  }
  EXPECT_GE(pairs, 2U);
}

INSTANTIATE_TEST_SUITE_P(Captures, BothEnds,
                         testing::Values("6.1-full_veth", "6.1-nginx_small_veth", "6.1-pingpong_lo",
                                         "6.1-pingpong_veth", "6.12-mptcp_veth",
                                         "6.12-nginx_1m_veth", "6.12-nginx_contended",
                                         "6.12-nginx_small_veth", "6.12-pingpong_lo",
                                         "6.12-pingpong_veth"));

}  // namespace
}  // namespace skbtrail::test
