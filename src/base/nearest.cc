#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace skbtrail {
namespace {

// Levenshtein distance, one row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> known,
                                 std::size_t limit) {
  std::vector<std::pair<std::size_t, std::string>> candidates;
  for (const std::string& name : known) {
    const std::size_t far = distance(word, name);
    const std::size_t longest = std::max(word.size(), name.size());
    const bool contained = word.size() >= 3 && name.find(word) != std::string::npos;
    if (far * 3 <= longest || contained) candidates.emplace_back(far, name);
  }
  std::sort(candidates.begin(), candidates.end());
  if (candidates.size() > limit) candidates.resize(limit);
  std::vector<std::string> names;
  for (auto& [far, name] : candidates) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> nearest_first(std::string_view word, std::vector<std::string> known) {
  std::stable_sort(known.begin(), known.end(), [word](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
  return known;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::vector<std::string> names = nearest(word, known);
  if (names.empty()) return "";
  std::string text = ": did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text + "?";
}

}  // namespace skbtrail
