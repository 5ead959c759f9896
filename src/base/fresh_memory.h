// Memory that nobody has written yet.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace skbtrail {

// To be called of memory that is about to be filled: the kernel finds pages for all of it at once.
// Left to itself it does so at the first touch of each, which in some virtual machines takes ten
// microseconds, as long as a thousand events. Where the kernel does not know how (before 5.14), it
// is left to itself.
inline void populate(void* memory, std::size_t size) {
  constexpr std::uintptr_t kPage = 4096;  // of x86-64; elsewhere the kernel may refuse
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kPage - 1) & ~(kPage - 1);
  const std::uintptr_t end = (begin + size) & ~(kPage - 1);
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

}  // namespace skbtrail
