#include "track/tls_records.h"

#include <utility>

namespace skbtrail::track {

std::optional<std::uint64_t> TlsRecords::returned(std::uint64_t text, const ByteQueue& queue) {
  text_ += text;
  if (!beside_text_ && !queue.aligned()) {
    records_ = text_ = 0;  // of what was read before it was known where, it stays so
    return std::nullopt;
  }
  for (auto i = kBesideText.begin(); !beside_text_ && i != kBesideText.end(); ++i) {
    if (records_ > 0 && queue.has_end_at(text_ + records_ * *i)) beside_text_ = *i;
  }
  guesses_ = guesses_ || text_ >= kMostWaiting;
  if (!beside_text_ && !guesses_) return std::nullopt;
  const std::uint32_t beside = beside_text_.value_or(kBesideText.front());
  return std::exchange(text_, 0) + std::exchange(records_, 0) * beside;
}

}  // namespace skbtrail::track
