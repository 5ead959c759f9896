// Looks at pages from outside: when they begin, and whether bytes are a page at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ring/selection.h"

namespace skbtrail::ring {

// How many whole pages at the start of `bytes` hold only events before `time`, found by a binary
// search over the time stamps of the pages; one page fewer than that, or none, so that a page whose
// own stamp is damaged hides no other. Pages that were never written are passed over.
std::uint64_t pages_before(std::span<const std::uint8_t> bytes, std::uint32_t page_size,
                           Nanoseconds time, const TimeScale& scale);

// Whether these bytes are a page that the kernel could have written: a time stamp, a commit that
// fits, at least one event, every event within the page and of an id that `ids` has (empty: any
// id). With so many conditions other bytes do not pass for a page.
bool looks_like_page(std::span<const std::uint8_t> page, const std::vector<bool>& ids);

}  // namespace skbtrail::ring
