// Events that are lost on purpose, and what is said of packets then: of what is not marked, nothing
// may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/call_log.h"
#include "support/deliveries.h"

namespace skbtrail::test {

// What the two ends of each connection log while events are lost, and are not, by turns. The
// recording's buffers must be small; it is stopped when all have ended.
struct Logs {
  std::vector<CallLog> sent, read;
};
using Work = std::function<void(CallLog& log, std::size_t connection)>;
Logs run_with_losses(Recording& recording, std::size_t connections, const Work& write,
                     const Work& read);

struct Judged {
  std::size_t right = 0, marked = 0, wrong = 0;
  std::size_t guessed_wrong = 0;  // wrong, but not said to be certain
  std::string first_wrong;

  // `reader`: the call that took it.
  void judge(const Arrival& arrival, const LoggedCall& reader);
  void expect_none_wrong(const std::string& what) const;
};

}  // namespace skbtrail::test
