// A socket's datagrams, read by one call or another, and logged.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>

#include "base/fd.h"
#include "support/call_log.h"

namespace skbtrail::test {

class DatagramReader {
 public:
  // Both must outlive it.
  DatagramReader(CallLog& log, const Fd& fd);

  // One call, which waits for a datagram; how many it took. The log has what the first four bytes
  // of each are, its number.
  std::uint32_t recv_one();
  std::uint32_t recvmsg_one();
  std::uint32_t recvmmsg_several();
  // By recv() or recvmsg(); takes nothing.
  void peek(bool by_recvmsg);
  // Of each that the last call took.
  std::uint32_t length(std::size_t index) const { return lengths_[index]; }

 private:
  static constexpr std::size_t kMost = 8;
  void note(std::int64_t taken);

  CallLog& log_;
  const Fd& fd_;
  std::array<std::array<char, 2048>, kMost> bytes_{};
  std::array<iovec, kMost> places_{};
  std::array<mmsghdr, kMost> messages_{};
  std::array<std::uint32_t, kMost> lengths_{};
};

}  // namespace skbtrail::test
