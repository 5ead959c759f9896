// skbtrail flows as a user runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "support/files.h"
#include "support/run.h"
#include "support/truth.h"

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

// Segments that a namespace has sent, as its kernel counts them.
struct SentSegments {
  const char* capture;
  const char* network_namespace;
  const char* address;
};

class OneEnd : public testing::TestWithParam<SentSegments> {};

// But for its first segment, and at most the last acknowledgement of each connection, and one that
// an option of its socket sends off (TCP_CORK), a call that is not recorded.
TEST_P(OneEnd, what_it_has_sent_is_of_its_connections) {
  const auto& [capture, network_namespace, address] = GetParam();
  const std::string file = std::string(capture) + ".dat";
  const Truth truth = truth_of(data_file(file));
  const auto& counters = truth.snmp.at(network_namespace);
  const auto counted = [&](const char* name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : found->second;
  };
  const std::int64_t segments = counted("Tcp.OutSegs") + counted("Tcp.RetransSegs");
  const std::int64_t opened = counted("Tcp.ActiveOpens") + counted("Tcp.PassiveOpens");
  const RunResult result = skbtrail_once({"flows", "--format", "json", data_file(file)});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  std::int64_t sent = 0;
  for (const json::value& end : document.at("flows").as_array()) {
    const std::string local(end.at("local").as_string());
    if (local.starts_with(address)) sent += end.at_pointer("/sent/packets").to_number<int>();
  }
  EXPECT_GE(opened, 2);
  EXPECT_LE(sent, segments - opened);
  EXPECT_GE(sent, segments - 3 * opened);
}

INSTANTIATE_TEST_SUITE_P(Captures, OneEnd,
                         testing::Values(SentSegments{"6.1-nginx_small_veth", "cl", "192.0.2.2:"},
                                         SentSegments{"6.1-nginx_small_veth", "sv", "192.0.2.1:"},
                                         SentSegments{"6.1-pingpong_veth", "cl", "192.0.2.2:"},
                                         SentSegments{"6.1-probes_nic", "sv", "192.0.2.1:"},
                                         SentSegments{"6.12-container_nic", "cl", "198.51.100.2:"},
                                         SentSegments{"6.12-forward", "cl", "198.51.100.2:"},
                                         SentSegments{"6.12-nginx_small_nic", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-nginx_small_nic", "sv", "192.0.2.1:"},
                                         SentSegments{"6.12-nginx_small_veth", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-nginx_small_veth", "sv", "192.0.2.1:"},
                                         SentSegments{"6.12-pingpong_nic", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-pingpong_nic", "sv", "192.0.2.1:"},
                                         SentSegments{"6.12-rps_nic", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-rps_nic", "sv", "192.0.2.1:"},
                                         SentSegments{"6.12-subbuf_64k", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-threaded_nic", "cl", "192.0.2.2:"},
                                         SentSegments{"6.12-threaded_nic", "sv", "192.0.2.1:"}),
                         [](const auto& its) {
                           std::string name =
                               std::string(its.param.capture) + "_" + its.param.network_namespace;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace skbtrail::test
