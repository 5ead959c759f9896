// libtraceevent's page walk; its header has no extern "C".
#pragma once

extern "C" {
#include <kbuffer.h>
}

#include <memory>

namespace skbtrail::test {

struct FreeKbuffer {
  void operator()(kbuffer* buffer) const { kbuffer_free(buffer); }
};
using Kbuffer = std::unique_ptr<kbuffer, FreeKbuffer>;

inline Kbuffer make_kbuffer() {
  return Kbuffer(kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_LITTLE));
}

}  // namespace skbtrail::test
