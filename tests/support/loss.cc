#include "support/loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <future>

#include "support/background.h"

namespace skbtrail::test {
namespace {

// Until `writing` has ended.
void hold_by_turns(const Background& recorder, const std::future<CallLog>& writing) {
  using std::chrono::milliseconds;
  while (writing.wait_for(milliseconds(40)) != std::future_status::ready) {
    recorder.signal(SIGSTOP);
    writing.wait_for(milliseconds(20));
    recorder.signal(SIGCONT);
  }
}

}  // namespace

Logs run_with_losses(Recording& recording, std::size_t connections, const Work& write,
                     const Work& read) {
  std::vector<std::future<CallLog>> reading, writing;
  for (std::size_t i = 0; i < connections; ++i) {
    reading.push_back(thread([&read, i](CallLog& log) { read(log, i); }));
    writing.push_back(thread([&write, i](CallLog& log) { write(log, i); }));
  }
  for (const std::future<CallLog>& each : writing) hold_by_turns(recording.recorder(), each);
  Logs logs;
  for (std::future<CallLog>& each : writing) logs.sent.push_back(each.get());
  for (std::future<CallLog>& each : reading) logs.read.push_back(each.get());
  recording.stop(/*may_lose=*/true);
  return logs;
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
