#include "support/datagram_reader.h"

#include <cstring>

namespace skbtrail::test {

DatagramReader::DatagramReader(CallLog& log, const Fd& fd) : log_(log), fd_(fd) {
  for (std::size_t i = 0; i < kMost; ++i) {
    places_[i] = {bytes_[i].data(), bytes_[i].size()};
    messages_[i].msg_hdr.msg_iov = &places_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
  }
}

std::uint32_t DatagramReader::recv_one() {
  lengths_[0] = static_cast<std::uint32_t>(log_.take(
      "recvfrom", [&] { return recv(fd_.get(), bytes_[0].data(), bytes_[0].size(), 0); }));
  note(1);
  return 1;
}

std::uint32_t DatagramReader::recvmsg_one() {
  lengths_[0] = static_cast<std::uint32_t>(
      log_.take("recvmsg", [&] { return recvmsg(fd_.get(), &messages_[0].msg_hdr, 0); }));
  note(1);
  return 1;
}

std::uint32_t DatagramReader::recvmmsg_several() {
  const std::int64_t taken = log_.take("recvmmsg", [&] {
    return recvmmsg(fd_.get(), messages_.data(), kMost, MSG_WAITFORONE, nullptr);
  });
  for (std::size_t i = 0; i < kMost; ++i) lengths_[i] = messages_[i].msg_len;
  note(taken);
  return static_cast<std::uint32_t>(taken);
}

void DatagramReader::peek(bool by_recvmsg) {
  log_.other(by_recvmsg ? "recvmsg" : "recvfrom", [&] {
    return by_recvmsg ? recvmsg(fd_.get(), &messages_[0].msg_hdr, MSG_PEEK)
                      : recv(fd_.get(), bytes_[0].data(), bytes_[0].size(), MSG_PEEK);
  });
}

void DatagramReader::note(std::int64_t taken) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(taken); ++i) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes_[i].data(), sizeof number);
    log_.calls.back().datagrams.push_back(number);
  }
}

}  // namespace skbtrail::test
