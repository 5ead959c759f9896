// Builds sub-buffers record by record, as the kernel lays them out (ring/page_decoder.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::test {

inline constexpr std::uint32_t kPage = 4096;  // bytes, where a test asks for no other size

// What tracefs says of such pages: events/header_page and events/header_event.
inline constexpr const char* kHeaderPage =
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
inline constexpr const char* kHeaderEvent =
    "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
    "\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
    "\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

// Appends the bytes of a number, little endian.
template <class Number>
void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A payload: common_type `id`, then zeros up to `size` bytes, the last of which is `mark`.
std::string payload(std::uint16_t id, std::size_t size = 8, char mark = 0);

class PageBuilder {
 public:
  explicit PageBuilder(Nanoseconds time, std::size_t size = kPage) : time_(time), size_(size) {}

  // type_len 1..28; `bytes` is padded to a multiple of 4, at most 112.
  PageBuilder& data(std::uint32_t delta, const std::string& bytes);
  // type_len 0: the size stands in array[0] and need not be a multiple of 4.
  PageBuilder& big_data(std::uint32_t delta, const std::string& bytes);
  // type_len 29 with a delta: a discarded event, `size` bytes without its header.
  PageBuilder& discarded(std::uint32_t delta, std::uint32_t size);
  // type_len 29 without one: the rest of the page is empty.
  PageBuilder& rest_is_empty();
  PageBuilder& time_extend(Nanoseconds delta);
  // type_len 31: the low 59 bits of `time`.
  PageBuilder& time_stamp(Nanoseconds time);
  // Anything, into the data.
  PageBuilder& raw(std::string_view bytes);
  PageBuilder& record(std::uint32_t type_len, std::uint32_t delta, std::string_view rest = {});

  // RB_MISSED_EVENTS, with the count stored behind the data or without. As in the kernel, the flags
  // are added as a sign-extended int.
  PageBuilder& missed();
  PageBuilder& missed(std::uint64_t count);
  // Replaces the commit word.
  PageBuilder& commit(std::uint64_t word);

  // The page, zero-filled to its size. Throws when the data does not fit.
  std::string build() const;

 private:
  Nanoseconds time_;
  std::size_t size_;
  std::string data_;
  std::string stored_;
  std::uint64_t flags_ = 0;
  std::uint64_t commit_ = 0;
  bool commit_set_ = false;
};

// A string's bytes as the decoders take them.
std::vector<std::uint8_t> as_bytes(std::string_view text);

}  // namespace skbtrail::test
