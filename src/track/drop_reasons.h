// The names of kfree_skb's reasons, from the trace's own print format: every kernel numbers them
// anew.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace skbtrail::track {

class DropReasons {
 public:
  explicit DropReasons(std::map<std::int64_t, std::string> names = {}) : names_(std::move(names)) {}

  // "NO_SOCKET"; the number when the trace has no name for it; "-" on kernels without reasons.
  std::string name(std::optional<std::uint32_t> reason) const {
    if (!reason) return "-";
    const auto found = names_.find(*reason);
    return found == names_.end() ? fmt::format("{}", *reason) : found->second;
  }

  // The caller of kfree_skb() gave no reason: then it may not be a drop at all (track/tx.h).
  bool unspecified(std::optional<std::uint32_t> reason) const {
    return !reason || name(reason) == "NOT_SPECIFIED";
  }

 private:
  std::map<std::int64_t, std::string> names_;
};

}  // namespace skbtrail::track
