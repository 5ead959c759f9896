// A stream of bytes that tell where in it they are, and one end's logged calls that send and take
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "support/call_log.h"

namespace skbtrail::test {

// One direction of a stream: what was sent or taken so far.
class Stream {
 public:
  // The next `count` bytes.
  std::vector<char> next(std::size_t count);
  // Throws when those are not the next ones.
  void check(const char* bytes, std::int64_t count);
  void skip(std::uint64_t count) { at_ += count; }
  std::uint64_t at() const { return at_; }

 private:
  std::uint64_t at_ = 0;
};

void send_all(CallLog& log, Stream& stream, const Fd& fd, std::size_t count);
// One recv() of at most `most` bytes; what it took.
std::int64_t take(CallLog& log, Stream& stream, const Fd& fd, std::size_t most, int flags = 0);
// The same, but that nobody gets to see it.
void throw_away(CallLog& log, Stream& stream, const Fd& fd, std::size_t most);
void peek(CallLog& log, const Fd& fd, std::size_t most);

// Waits, without a call that the profile records, until nothing is on its way: so much has come.
void wait_for_bytes(const Fd& fd, int count);

}  // namespace skbtrail::test
