#include "cli/no_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/human.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/arguments.h"
#include "report/sched.h"

namespace skbtrail::cli {
namespace {

// ", there are a, b, c and 5 more"
std::string there_are(const std::vector<std::string>& known) {
  if (known.empty()) return ": there is none here";
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(known.size(), kShown);
  std::string text = fmt::format(
      ": there {} {}", known.size() == 1 ? "is" : "are",
      fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (known.size() > shown) text += fmt::format(" and {} more", human_count(known.size() - shown));
  return text;
}

}  // namespace

void tell_no_match(std::string_view option, std::string_view value,
                   std::vector<std::string> known) {
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string text = did_you_mean(value, known);
  if (text.empty()) text = there_are(nearest_first(value, std::move(known)));
  say(fmt::format("skbtrail: nothing matches --{} {}{}\n", option, printable(value), text));
}

void tell_unknown_tasks(const std::vector<Pid>& pids, const std::vector<std::string>& comms,
                        const std::vector<const track::TaskLife*>& lives,
                        const track::Kinship& kinship) {
  const auto name = [](const track::TaskLife& life) { return report::task_name(life); };
  std::unordered_set<Pid> numbers;
  std::unordered_set<std::string> names;
  for (const track::TaskLife* life : lives) {
    numbers.insert({life->pid, kinship.process(life->pid)});
    names.insert(name(*life));
  }
  for (const Pid pid : pids) {
    // Whom /proc named did nothing that was recorded.
    if (numbers.contains(pid) || kinship.process(pid) != 0) continue;
    std::vector<std::string> known;
    for (const track::TaskLife* life : lives) {
      known.push_back(fmt::format("{} ({})", life->pid, name(*life)));
    }
    tell_no_match("pid", std::to_string(pid), std::move(known));
  }
  for (const std::string& comm : comms) {
    if (!names.contains(comm)) tell_no_match("comm", comm, {names.begin(), names.end()});
  }
}

}  // namespace skbtrail::cli
