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
  constexpr std::size_t kPage = 4096;  // of x86-64; elsewhere the kernel may refuse
  const std::size_t before = (kPage - reinterpret_cast<std::uintptr_t>(memory) % kPage) % kPage;
  if (size < before + kPage) return;
  madvise(static_cast<std::byte*>(memory) + before, (size - before) / kPage * kPage,
          MADV_POPULATE_WRITE);
}

}  // namespace skbtrail
