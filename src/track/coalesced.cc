#include "track/coalesced.h"

#include <algorithm>

#include "track/tcp_headers.h"

namespace skbtrail::track {

// All segments of a flow have headers of the same length, of whole words (ihl, doff) where IPsec
// has not padded them. Where more than one number of packets makes the sum, headers as long as
// before. The event's 16 bits may have no room for it (whole_data_len()): two segments of 64 KiB
// over lo seem to be one that lacks 53 bytes, which is not of whole words. Uncertain where other
// flows wait too and nothing tells whose is whose.
CoalescedSum make_the_sum(const LiveLeg& first, std::span<LiveLeg* const> behind,
                          std::uint32_t data_len, std::uint32_t headers) {
  // The better the answer, the higher.
  const auto rank = [headers](std::uint32_t its) {
    return its == headers ? 3 : are_words(its) ? 2 : 1;
  };
  // Where it can be of one packet, it is, unless the event has not said all.
  const std::uint32_t of_one = first.rx.stack_len - whole_data_len(first.rx.stack_len, data_len);
  const bool may_be_one = are_headers(of_one);
  CoalescedSum best;
  int best_rank = may_be_one ? rank(of_one) : 0;
  std::uint64_t sum = first.rx.stack_len;
  std::uint32_t shortest = first.rx.stack_len;
  std::size_t of_words = 0;
  for (std::size_t i = 0; i < behind.size(); ++i) {
    const std::size_t packets = i + 2;
    sum += behind[i]->rx.stack_len;
    shortest = std::min(shortest, behind[i]->rx.stack_len);
    if (sum < data_len + packets * kLeastTcpHeaders) continue;
    const std::uint64_t lacking =
        (sum - data_len - packets * kLeastTcpHeaders) / kDataLenWraps * kDataLenWraps;
    const std::uint64_t all_headers = sum - data_len - lacking;
    if (all_headers % packets != 0 || !are_headers(all_headers / packets)) continue;
    if (may_be_one && lacking == 0) continue;
    const auto its = static_cast<std::uint32_t>(all_headers / packets);
    if (its > shortest) continue;  // one of them has less
    if (rank(its) > 1) ++of_words;
    if (rank(its) <= best_rank) continue;
    best_rank = rank(its);
    best = {i + 1, its, static_cast<std::uint32_t>(data_len + lacking), false};
  }
  best.sure = of_words == 1 && best.behind > 0;
  return best;
}

}  // namespace skbtrail::track
