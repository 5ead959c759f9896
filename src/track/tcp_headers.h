// How much of a packet is headers, and how much the data of a segment: no event tells both.
#pragma once

#include <cstdint>

namespace skbtrail::track {

constexpr std::uint32_t kLeastTcpHeaders = 40;  // IPv4 + TCP
constexpr std::uint32_t kMostTcpHeaders = 120;  // with all options

inline bool are_headers(std::uint64_t bytes) {
  return bytes >= kLeastTcpHeaders && bytes <= kMostTcpHeaders;
}
// All that is in them: ihl and doff count words.
inline bool are_words(std::uint64_t headers) {
  return headers % 4 == 0;
}
// A segment of that length may be headers alone; what IPsec adds is of whole words, too.
inline bool has_no_data(std::uint32_t received_len) {
  return are_headers(received_len) && are_words(received_len);
}

// What a tcp_probe of an skb of that length counted: the event keeps 16 bits of it.
constexpr std::uint32_t kDataLenWraps = 1U << 16;
inline std::uint32_t whole_data_len(std::uint32_t received_len, std::uint32_t data_len) {
  if (received_len < kDataLenWraps || received_len < data_len + kLeastTcpHeaders) return data_len;
  const std::uint32_t whole =
      data_len + (received_len - data_len - kLeastTcpHeaders) / kDataLenWraps * kDataLenWraps;
  return are_headers(received_len - whole) ? whole : data_len;
}

// The segment of a tcp_probe that names no skb: what is not data must be IP and TCP headers.
inline bool could_carry(std::uint32_t received_len, std::uint32_t data_len) {
  data_len = whole_data_len(received_len, data_len);
  if (data_len == 0) return has_no_data(received_len);
  return received_len >= data_len + kLeastTcpHeaders && received_len <= data_len + kMostTcpHeaders;
}
// How long the headers are of what comes behind a SYN of that length: of the options of a SYN only
// time stamps are in each segment (tcp_syn_options(), tcp_established_options(), net/ipv4/
// tcp_output.c, 5.4 to 6.18: MSS 4 bytes, SACK 4, or 12 with time stamps, window scaling 4). 0: it
// has other options, too.
inline std::uint32_t headers_behind_syn(std::uint32_t received_len, bool is_ipv4) {
  constexpr std::uint32_t kTimeStamps = 12;
  const std::uint32_t bare = is_ipv4 ? kLeastTcpHeaders : kLeastTcpHeaders + 20;
  const std::uint32_t options = received_len < bare ? 0 : received_len - bare;
  if (options == 4 || options == 8 || options == 12) return bare;
  return options == 16 || options == 20 ? bare + kTimeStamps : 0;
}

// A packet of that length, as a device is given it, has these IP and TCP headers and nothing else:
// behind an Ethernet header, or none.
inline bool has_only(std::uint32_t sent_len, std::uint32_t headers) {
  constexpr std::uint32_t kEthernetHeader = 14;
  return sent_len == headers || sent_len == headers + kEthernetHeader;
}
// So long a packet, and so much data: nothing else is in it.
inline bool are_one(std::uint32_t received_len, std::uint32_t data_len) {
  return received_len >= data_len && are_headers(received_len - data_len) &&
         are_words(received_len - data_len);
}

}  // namespace skbtrail::track
