// What every test over the networks of support/networks.h needs.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "support/networks.h"
#include "support/recording.h"

namespace skbtrail::test {

class OverNetwork : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
    try {
      network_.emplace(GetParam());
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  const End& client() const { return network_->client(); }
  const End& server() const { return network_->server(); }
  static std::string name() { return name_of(GetParam()); }

 private:
  std::optional<Network> network_;
};

// INSTANTIATE_TEST_SUITE_P(Ways, SUITE, ::testing::ValuesIn(kWays), way_of)
inline std::string way_of(const ::testing::TestParamInfo<Way>& info) {
  return name_of(info.param);
}

}  // namespace skbtrail::test
