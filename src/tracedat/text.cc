#include "tracedat/text.h"

#include <algorithm>
#include <charconv>

namespace skbtrail::tracedat {
namespace {

// The number behind the first `key` in `text`.
template <class Number>
std::optional<Number> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  Number value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view without_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

std::string selected_clock(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

bool has_line(std::string_view text, std::string_view line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (text.substr(0, end) == line) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::string spool_suffix(std::string_view buffer, CpuId cpu) {
  return (buffer.empty() ? "" : "." + std::string(buffer)) + ".cpu" + std::to_string(cpu);
}

std::optional<std::uint16_t> event_id(std::string_view format) {
  return number_behind<std::uint16_t>(format, "\nID: ");
}

std::uint32_t page_size_of(std::string_view header_page) {
  const std::size_t at = header_page.find("char data;");
  if (at == std::string_view::npos) return 0;
  const auto offset = number_behind<std::uint32_t>(header_page.substr(at), "offset:");
  const auto size = number_behind<std::uint32_t>(header_page.substr(at), "size:");
  return offset && size ? *offset + *size : 0;
}

}  // namespace skbtrail::tracedat
