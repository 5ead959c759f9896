#pragma once

#include <vector>

#include "track/receive_hunks.h"

namespace skbtrail::test {

struct HunkRecorder : track::HunkSink {
  std::vector<track::ReceiveHunk> hunks;
  void hunk(const track::ReceiveHunk& hunk) override { hunks.push_back(hunk); }
};

}  // namespace skbtrail::test
