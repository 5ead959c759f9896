// Events that are lost on purpose, and what is said of packets then: of what is not marked, nothing
// may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <string>

#include "support/background.h"
#include "support/call_log.h"
#include "support/deliveries.h"

namespace skbtrail::test {

void nap(std::uint64_t microseconds);

// Until `writing` has ended, by turns: events are lost, and are not. The recorder's buffers must be
// small.
void hold_the_recorder(const Background& recorder, std::future<CallLog>& writing);

struct Judged {
  std::size_t right = 0, marked = 0, wrong = 0;
  std::size_t guessed_wrong = 0;  // wrong, but not said to be certain
  std::string first_wrong;

  // `reader`: the call that took it.
  void judge(const Arrival& arrival, const LoggedCall& reader);
  void expect_none_wrong(const std::string& what) const;
};

}  // namespace skbtrail::test
