#include "support/stream.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <stdexcept>

namespace skbtrail::test {
namespace {

// Byte `at` of every stream: what is read proves where in the stream it was.
char pattern(std::uint64_t at) {
  return static_cast<char>(at * 7 + (at >> 8) * 13);
}

}  // namespace

std::vector<char> Stream::next(std::size_t count) {
  std::vector<char> bytes(count);
  for (char& byte : bytes) byte = pattern(at_++);
  return bytes;
}

void Stream::check(const char* bytes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (bytes[i] != pattern(at_++)) throw std::runtime_error("a read does not fit the stream");
  }
}

void send_all(CallLog& log, Stream& stream, const Fd& fd, std::size_t count) {
  const std::vector<char> bytes = stream.next(count);
  std::size_t sent = 0;
  while (sent < count) {
    sent += static_cast<std::size_t>(
        log.other("sendto", [&] { return send(fd.get(), bytes.data() + sent, count - sent, 0); }));
  }
}

std::int64_t take(CallLog& log, Stream& stream, const Fd& fd, std::size_t most, int flags) {
  std::vector<char> bytes(most);
  const std::int64_t count =
      log.take("recvfrom", [&] { return recv(fd.get(), bytes.data(), most, flags); });
  stream.check(bytes.data(), count);
  return count;
}

void throw_away(CallLog& log, Stream& stream, const Fd& fd, std::size_t most) {
  char nothing = 0;
  const std::int64_t count =
      log.take("recvfrom", [&] { return recv(fd.get(), &nothing, most, MSG_TRUNC); });
  stream.skip(static_cast<std::uint64_t>(count));
}

void peek(CallLog& log, const Fd& fd, std::size_t most) {
  std::vector<char> bytes(most);
  log.other("recvfrom", [&] { return recv(fd.get(), bytes.data(), most, MSG_PEEK); });
}

void wait_for_bytes(const Fd& fd, int count) {
  for (int i = 0; i < 20'000; ++i) {
    int there = 0;
    if (ioctl(fd.get(), FIONREAD, &there) == 0 && there >= count) return;
    nap(1'000);
  }
  throw std::runtime_error("what was sent does not come");
}

}  // namespace skbtrail::test
