// How much a call takes of a stream that the kernel decrypts (kTLS): it returns what was in the
// records, and no event tells of what else they had.
//
// tls_sw_recvmsg() takes a record whole (net/tls/tls_sw.c; tls_strp_msg_done() and tcp_read_done(),
// 6.0 to 6.18): a tcp_rcv_space_adjust each. Only behind that it copies, and not from what lies in
// the socket, or has decrypted into the caller's buffer. What that has no room for later calls get.
// A record's header and tag are as long as its cipher wants: that is known once records end where a
// segment does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "track/byte_queue.h"

namespace skbtrail::track {

class TlsRecords {
 public:
  // The socket's stream has been found to be records.
  bool are_read() const { return are_read_; }
  void begin() { are_read_ = true; }

  // A call has taken so many.
  void taken(std::uint32_t records) { records_ += records; }
  // A call returned so much of what was in them. How many bytes of the queue have been read since
  // the last time that was told; nothing while it is not known.
  std::optional<std::uint64_t> returned(std::uint64_t text, const ByteQueue& queue);

 private:
  // Of AES-GCM and AES-CCM with TLS 1.2: header, nonce, tag; of TLS 1.3: header, type, tag; of
  // ChaCha20-Poly1305 with TLS 1.2: header, tag. A sockmap's stream is read in the same way and has
  // nothing of these (tcp_bpf_recvmsg_parser(), net/ipv4/tcp_bpf.c, 6.4 to 6.18).
  static constexpr std::array<std::uint32_t, 4> kBesideText{29, 22, 21, 0};
  // Four full records. From then on it is taken to be the most usual, until it is known.
  static constexpr std::uint64_t kMostWaiting = 4 * 16384;

  bool are_read_ = false;
  bool guesses_ = false;
  std::optional<std::uint32_t> beside_text_;  // of kBesideText, once it is known
  std::uint64_t records_ = 0;                 // and text, not told yet
  std::uint64_t text_ = 0;
};

}  // namespace skbtrail::track
