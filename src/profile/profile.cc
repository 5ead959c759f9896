#include "profile/profile.h"

#include <algorithm>

#include "base/error.h"
#include "base/trim.h"

namespace skbtrail {
namespace {

// A filter may compare with a string that holds "#", so only " #" and a leading "#" start a
// comment.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || kBlanks.find(line[at - 1]) != std::string_view::npos) return line.substr(0, at);
  }
  return line;
}

// Splits off the first word; `rest` loses it and the blanks after it.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest = trim(rest.substr(end));
  return word;
}

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_letter);
}

// The names become path components under events/: letters and fnmatch wildcards only.
bool is_event_pattern(std::string_view name) {
  constexpr std::string_view kWildcards = "*?[]";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char letter) {
    return is_name_letter(letter) || kWildcards.find(letter) != std::string_view::npos;
  });
}

bool split_event(std::string_view word, EventRule& rule) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  rule.system = word.substr(0, colon);
  rule.event = word.substr(colon + 1);
  return is_event_pattern(rule.system) && is_event_pattern(rule.event);
}

// Empty when `$` only starts the placeholders there are.
std::string unknown_placeholder(std::string_view filter) {
  for (std::size_t at = filter.find('$'); at != std::string_view::npos;
       at = filter.find('$', at + 1)) {
    std::size_t end = at + 1;
    while (end < filter.size() && is_name_letter(filter[end])) ++end;
    const std::string_view name = filter.substr(at, end - at);
    if (name != "$dev" && name != "$pid") return std::string(name);
  }
  return "";
}

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  Result<void> statement(std::string_view line) {
    ++line_;
    std::string_view rest = trim(without_comment(line));
    if (rest.empty()) return {};
    const std::string_view word = take_word(rest);
    if (rest.empty()) return bad(fmt::format("'{}' needs a value", word));
    if (word == "name") return name(rest);
    if (word == "about") return set_once(profile_.about, "about", rest);
    if (word == "include") return include(rest);
    if (word == "event") return event(rest);
    return bad(fmt::format("unknown word '{}': there are name, about, include and event", word));
  }

  Result<Profile> finish() {
    if (profile_.name.empty()) return fail(ErrorKind::usage, "{}: no line 'name NAME'", where_);
    if (profile_.about.empty()) return fail(ErrorKind::usage, "{}: no line 'about TEXT'", where_);
    if (profile_.rules.empty() && profile_.includes.empty()) {
      return fail(ErrorKind::usage, "{}: no line 'event SYSTEM:EVENT'", where_);
    }
    return std::move(profile_);
  }

 private:
  tl::unexpected<Error> bad(std::string_view what) const {
    return fail(ErrorKind::usage, "{}:{}: {}", where_, line_, what);
  }

  Result<void> set_once(std::string& target, std::string_view word, std::string_view value) {
    if (!target.empty()) return bad(fmt::format("a second '{}'", word));
    target = value;
    return {};
  }

  Result<void> name(std::string_view value) {
    if (!is_plain_name(value)) return bad(fmt::format("'{}' is no profile name", value));
    return set_once(profile_.name, "name", value);
  }

  Result<void> include(std::string_view value) {
    if (!is_plain_name(value)) return bad(fmt::format("'{}' is no profile name", value));
    profile_.includes.emplace_back(value);
    return {};
  }

  Result<void> event(std::string_view rest) {
    EventRule rule;
    const std::string_view word = take_word(rest);
    if (!split_event(word, rule)) return bad(fmt::format("'{}' is not SYSTEM:EVENT", word));
    const std::string placeholder = unknown_placeholder(rest);
    if (!placeholder.empty()) {
      return bad(fmt::format("'{}': the placeholders are $dev and $pid", placeholder));
    }
    rule.filter = rest;
    profile_.rules.push_back(std::move(rule));
    return {};
  }

  std::string_view where_;
  int line_ = 0;
  Profile profile_;
};

}  // namespace

Result<Profile> parse_profile(std::string_view text, std::string_view where) {
  Parser parser(where);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Result<void> done = parser.statement(text.substr(0, end));
    if (!done) return pass(done);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.finish();
}

Result<EventRule> parse_event_argument(std::string_view word) {
  EventRule rule;
  rule.required = true;
  const std::size_t system_end = word.find(':');
  std::size_t event_end = std::string_view::npos;
  if (system_end != std::string_view::npos) event_end = word.find(':', system_end + 1);
  if (!split_event(word.substr(0, event_end), rule)) {
    return fail(ErrorKind::usage, "event '{}' is not SYSTEM:EVENT or SYSTEM:EVENT:FILTER", word);
  }
  if (event_end != std::string_view::npos) rule.filter = trim(word.substr(event_end + 1));
  return rule;
}

}  // namespace skbtrail
