// The names of kfree_skb's reasons, from the trace's own print format: every kernel numbers them
// anew.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace skbtrail::track {

class DropReasons {
 public:
  explicit DropReasons(std::map<std::int64_t, std::string> names = {}) : names_(std::move(names)) {
    for (const auto& [number, name] : names_) {
      if (name == "NOT_SPECIFIED") unspecified_ = number;
      if (name == "CONSUMED" || name == "TCP_OFOMERGE" || name == "TCP_OLD_DATA") {
        harmless_.insert(number);
      }
      if (name == "TCP_OFO_QUEUE_PRUNE") pruned_ = number;
      if (name == "QDISC_DROP") no_room_ = number;
    }
  }

  // "NO_SOCKET"; the number when the trace has no name for it; "-" on kernels without reasons.
  std::string name(std::optional<std::uint32_t> reason) const {
    if (!reason) return "-";
    const auto found = names_.find(*reason);
    return found == names_.end() ? fmt::format("{}", *reason) : found->second;
  }

  // The caller of kfree_skb() gave no reason: then it may not be a drop at all (track/send.cc).
  bool unspecified(std::optional<std::uint32_t> reason) const {
    return !reason || *reason == unspecified_;
  }
  // With some reasons nothing is lost: the data was there already, or lies in another skb.
  bool is_drop(std::optional<std::uint32_t> reason) const {
    return !reason || !harmless_.contains(*reason);
  }
  // A segment that came too early had to make room (tcp_prune_ofo_queue()).
  bool is_pruned(std::optional<std::uint32_t> reason) const { return reason && *reason == pruned_; }
  // A queueing discipline did not take it (__dev_xmit_skb(), net/core/dev.c).
  bool is_no_room(std::optional<std::uint32_t> reason) const {
    return reason && *reason == no_room_;
  }

 private:
  std::map<std::int64_t, std::string> names_;
  std::set<std::int64_t> harmless_;
  std::int64_t unspecified_ = -1;
  std::int64_t pruned_ = -1;
  std::int64_t no_room_ = -1;
};

}  // namespace skbtrail::track
