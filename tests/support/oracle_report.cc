// Comparison with the text that `trace-cmd report` prints.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>

#include "skbtrail/decoder.h"
#include "stream/trace.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"
#include "support/typed_events.h"

namespace skbtrail::test {
namespace {

//            nginx-626   [001]    78.034581992: netif_receive_skb:    dev=nic0 skbaddr=0xff11
//            len=52
struct Line {
  std::uint64_t cpu = 0;
  Nanoseconds time = 0;
  std::string_view event;
  std::string_view text;
};

// Takes a number of decimal digits, at least one, off the front.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// Reads what follows a '['; false when that is not the one before the CPU.
bool read_from_cpu(std::string_view rest, Line& line) {
  std::uint64_t seconds = 0;
  std::uint64_t fraction = 0;
  if (!take_number(rest, line.cpu) || !take(rest, "] ")) return false;
  skip_blanks(rest);
  if (!take_number(rest, seconds) || !take(rest, ".")) return false;
  if (!take_number(rest, fraction) || !take(rest, ": ")) return false;
  line.time = seconds * 1'000'000'000 + fraction;
  const std::size_t colon = rest.find(':');
  line.event = rest.substr(0, colon);
  line.text = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  return true;
}

// False for what is no event: "cpus=2", "CPU:0 [3 EVENTS DROPPED]", the second line of a text.
bool read_line(std::string_view text, Line& line) {
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    if (read_from_cpu(text.substr(at + 1), line)) return true;
  }
  return false;
}

// The value of " key=value" in an event's text; false when there is none.
bool find_value(std::string_view text, std::string_view key, std::string_view& value) {
  const std::string start = fmt::format(" {}=", key);
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return false;
  value = text.substr(at + start.size());
  value = value.substr(0, value.find_first_of(" ,"));
  return true;
}

// How the kernel's format strings print a value: pointers as %p, everything else in decimal.
template <class Value>
std::string printed(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? printed(*value) : "";
  } else if constexpr (requires { value.subspan(0); }) {
    return "";
  } else if constexpr (std::is_enum_v<Value>) {
    const auto address = static_cast<std::uint64_t>(value);
    return address == 0 ? "(nil)" : fmt::format("{:#x}", address);
  } else {
    return fmt::format("{}", value);
  }
}

// Compares an event's text with its record; counts what it could find there.
using TextCheck = std::function<std::string(const RawEvent&, std::string_view, std::uint64_t&)>;

template <class Event>
TextCheck text_check(const Decoder<Event>& decoder) {
  return [decoder](const RawEvent& raw, std::string_view text, std::uint64_t& values) {
    Event ours;
    if (!decoder.decode(raw, ours)) return std::string("we cannot decode it");
    std::string difference;
    const auto check = [&](const auto& field) {
      // The net events print their field "name" as dev=.
      const bool device = Event::name.system == "net" && field.name == "name";
      std::string_view theirs;
      // Printed as a symbol.
      if (field.name == "location" || field.name == "reason") return;
      // Every event prints an address in its own way.
      if (field.name.starts_with("saddr") || field.name.starts_with("daddr")) return;
      if (!find_value(text, device ? "dev" : field.name, theirs)) return;
      ++values;
      std::string mine = printed(ours.*(field.member));
      if constexpr (requires { std::uint64_t{ours.*(field.member)}; }) {
        if (field.name == "sock_cookie") mine = fmt::format("{:x}", ours.*(field.member));
        if (Event::name.system == "net" && field.name == "protocol") {
          mine = fmt::format("{:#06x}", ours.*(field.member));
        }
      }
      if (mine != theirs && difference.empty()) {
        difference = fmt::format("{} is {} to us, {} in the text", field.name, mine, theirs);
      }
    };
    std::apply([&](const auto&... fields) { (check(fields), ...); }, Event::fields);
    return difference;
  };
}

std::map<int, TextCheck> text_checks(const stream::EventCatalog& catalog) {
  std::map<int, TextCheck> checks;
  for_each_typed_event([&]<class Event>() {
    const tracedat::FormatText* text = catalog.find(Event::name);
    if (text == nullptr) return;
    const auto format = parse_event_format(text->system, text->text);
    if (!format) return;
    const auto decoder = Decoder<Event>::bind(*format);
    if (decoder) checks.emplace(format->id, text_check<Event>(*decoder));
  });
  return checks;
}

std::string compare_line(const RawEvent& ours, const std::string& name, const Line& line,
                         const std::map<int, TextCheck>& checks, std::uint64_t& values) {
  const std::string event = name.substr(name.find(':') + 1);
  if (ours.cpu != line.cpu || ours.time != line.time || event != line.event) {
    return fmt::format("cpu {} time {} {} to us, cpu {} time {} {} in the text", ours.cpu,
                       ours.time, event, line.cpu, line.time, line.event);
  }
  const auto check = checks.find(ours.id);
  if (check == checks.end()) return "";
  const std::string difference = check->second(ours, line.text, values);
  if (difference.empty()) return "";
  return fmt::format("cpu {} time {} {}: {}", ours.cpu, ours.time, event, difference);
}

}  // namespace

Comparison compare_with_report(const std::filesystem::path& capture) {
  Comparison result;
  const auto trace = stream::Trace::open(capture);
  const RunResult report = run({"env", "LC_ALL=C", "trace-cmd", "report", "-t", capture.string()});
  if (!trace || report.status != 0 || !trace->other_buffers().empty()) {
    result.difference = !trace               ? trace.error().message
                        : report.status != 0 ? "trace-cmd report: " + report.err
                                             : "several buffers";
    return result;
  }
  const std::map<int, TextCheck> checks = text_checks(trace->catalog());
  stream::Merge events = trace->events();
  RawEvent event;
  std::string_view rest = report.out;
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    Line line;
    if (!read_line(text, line)) continue;
    if (!events.next(event)) {
      result.difference = fmt::format("we end after {} events", result.events);
      return result;
    }
    result.difference =
        compare_line(event, trace->catalog().name(event.id), line, checks, result.values);
    if (!result.difference.empty()) return result;
    ++result.events;
  }
  if (events.next(event))
    result.difference = fmt::format("the text ends after {} events", result.events);
  return result;
}

std::vector<std::filesystem::path> captures() {
  const char* elsewhere = std::getenv("SKBTRAIL_CAPTURES");
  const std::filesystem::path folder = elsewhere != nullptr ? elsewhere : data_file("");
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".dat") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace skbtrail::test
