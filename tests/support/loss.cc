#include "support/loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <ctime>

namespace skbtrail::test {

void nap(std::uint64_t microseconds) {
  const timespec pause{0, static_cast<long>(microseconds * 1000)};
  nanosleep(&pause, nullptr);
}

void hold_the_recorder(const Background& recorder, std::future<CallLog>& writing) {
  using std::chrono::milliseconds;
  while (writing.wait_for(milliseconds(40)) != std::future_status::ready) {
    recorder.signal(SIGSTOP);
    writing.wait_for(milliseconds(20));
    recorder.signal(SIGCONT);
  }
}

void Judged::judge(const Arrival& arrival, const LoggedCall& reader) {
  if (arrival.outcome != "delivered" || arrival.crossed_loss) {
    ++marked;
    return;
  }
  const bool returned = !arrival.has("return") || reader.contains(arrival.at("return"));
  if (arrival.pid == reader.tid && reader.contains(arrival.at("copy")) && returned) {
    ++right;
    return;
  }
  ++(arrival.confidence == "exact" ? wrong : guessed_wrong);
  if (first_wrong.empty()) {
    first_wrong = fmt::format("packet {}, {}", arrival.id, arrival.confidence);
  }
}

void Judged::expect_none_wrong(const std::string& what) const {
  fmt::print("{}: {} right, {} marked, {} wrong, {} guessed wrong\n", what, right, marked, wrong,
             guessed_wrong);
  EXPECT_EQ(wrong + guessed_wrong, 0U) << what << ": " << first_wrong;
}

}  // namespace skbtrail::test
