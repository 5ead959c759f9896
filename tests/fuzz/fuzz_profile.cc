// A profile, an event argument of the command line, and the filters that come of them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "profile/filter.h"
#include "profile/profile.h"

namespace {

void compose(const skbtrail::EventRule& rule) {
  static const std::vector<std::string> kFields{"common_pid", "name", "skbaddr", "len"};
  const skbtrail::Selection selection{{"eth0", "lo"}, {1, 2, 3}};
  const std::string narrow = skbtrail::compose_filter(rule.system, kFields, rule.filter, selection);
  const std::string wide = skbtrail::compose_filter(rule.system, kFields, rule.filter, {});
  skbtrail::either_filter(narrow, wide);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto profile = skbtrail::parse_profile(text, "fuzz.profile")) {
    for (const skbtrail::EventRule& rule : profile->rules) {
      if (rule.system.empty() || rule.event.empty()) std::abort();
      compose(rule);
    }
  } else if (profile.error().message.empty()) {
    std::abort();
  }
  if (const auto rule = skbtrail::parse_event_argument(text.substr(0, text.find('\n')))) {
    compose(*rule);
  }
  return 0;
}
