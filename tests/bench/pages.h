// Changing the pages of a capture into those of another one.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "base/bytes.h"

namespace skbtrail::test {

template <class Number>
void put(std::uint8_t* at, Number value) {
  std::memcpy(at, &value, sizeof value);
}

// All stamps of a page, its own and absolute ones between its events, become `shift` later; each
// event's data is for `change(std::span<std::uint8_t>)`. ring/page_decoder.h has the layout.
template <class Change>
void change_page(std::span<std::uint8_t> page, std::uint64_t shift, Change change) {
  constexpr std::size_t kHeader = 16;
  std::uint8_t* const bytes = page.data();
  put(bytes, load<std::uint64_t>(bytes) + shift);
  const std::size_t end = kHeader + (load<std::uint64_t>(bytes + 8) & 0x07ffffff);
  if (end > page.size()) throw std::runtime_error("the capture is damaged");
  for (std::size_t at = kHeader; at + 8 <= end;) {
    const auto head = load<std::uint32_t>(bytes + at);
    const std::uint32_t type = head & 31;
    const auto array0 = load<std::uint32_t>(bytes + at + 4);
    if (type == 31) {
      const std::uint64_t time = (std::uint64_t{array0} << 27 | head >> 5) + shift;
      put(bytes + at, static_cast<std::uint32_t>(time & 0x07ffffff) << 5 | type);
      put(bytes + at + 4, static_cast<std::uint32_t>(time >> 27));
    }
    if (type == 29 && head >> 5 == 0) break;
    const bool sized = type == 0 || type == 29;
    const std::size_t next = at + (type > 29 ? 8
                                   : sized   ? 4 + ((array0 + 3) & ~std::size_t{3})
                                             : 4 + type * 4);
    if (next > end) throw std::runtime_error("the capture is damaged");
    const std::size_t data = at + (type == 0 ? 8 : 4);
    if (type < 29) change(page.subspan(data, next - data));
    at = next;
  }
}

inline void write_all(int fd, const void* data, std::size_t size, std::uint64_t offset) {
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = pwrite(fd, from, size, static_cast<off_t>(offset));
    if (count <= 0) throw std::runtime_error("cannot write");
    from += count;
    size -= static_cast<std::size_t>(count);
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace skbtrail::test
