#include "skbtrail/event_format.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/trim.h"

namespace skbtrail {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  text = trim(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "offset:8" -> 8 when the key matches.
std::optional<std::uint32_t> keyed_number(std::string_view part, std::string_view key) {
  part = trim(part);
  if (!part.starts_with(key) || part.size() <= key.size() || part[key.size()] != ':') return {};
  return parse_number<std::uint32_t>(part.substr(key.size() + 1));
}

// Cuts off and returns the text up to the next ';'.
std::string_view next_part(std::string_view& line) {
  const std::size_t end = line.find(';');
  const std::string_view part = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return part;
}

// "__data_loc char[] name", "char prev_comm[16]", "void * skbaddr", "__u8 saddr[28]"
void split_declaration(std::string_view declaration, FieldFormat& field) {
  declaration = trim(declaration);
  std::string_view array;
  if (declaration.ends_with(']')) {
    const std::size_t bracket = declaration.rfind('[');
    if (bracket != std::string_view::npos) {
      array = declaration.substr(bracket);
      declaration = trim(declaration.substr(0, bracket));
    }
  }
  const std::size_t space = declaration.find_last_of(" \t*");
  field.name = declaration.substr(space == std::string_view::npos ? 0 : space + 1);
  if (space != std::string_view::npos) field.type = trim(declaration.substr(0, space + 1));
  field.type += array;
  field.is_data_loc = field.type.starts_with("__data_loc");
  field.is_rel_loc = field.type.starts_with("__rel_loc");
  field.is_array = !array.empty() && !field.is_data_loc && !field.is_rel_loc;
}

// "field:unsigned short common_type;	offset:0;	size:2;	signed:0;"
std::optional<FieldFormat> parse_field(std::string_view line) {
  line.remove_prefix(std::string_view("field:").size());
  FieldFormat field;
  split_declaration(next_part(line), field);
  const auto offset = keyed_number(next_part(line), "offset");
  const auto size = keyed_number(next_part(line), "size");
  if (field.name.empty() || !offset || !size) return std::nullopt;
  field.offset = *offset;
  field.size = *size;
  field.is_signed = keyed_number(next_part(line), "signed").value_or(0) != 0;
  return field;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Reads "{ 2, "NOT_SPECIFIED" }" at the start of `text`; false when there is none.
bool next_symbol(std::string_view& text, std::map<std::int64_t, std::string>& names) {
  const std::size_t open = text.find_first_not_of(" \t,");
  if (open == std::string_view::npos || text[open] != '{') return false;
  const std::size_t comma = text.find(',', open);
  const std::size_t quote = text.find('"', open);
  if (comma == std::string_view::npos || quote == std::string_view::npos) return false;
  const std::size_t end_quote = text.find('"', quote + 1);
  const std::size_t close = text.find('}', end_quote);
  if (end_quote == std::string_view::npos || close == std::string_view::npos) return false;
  std::string_view number = trim(text.substr(open + 1, comma - open - 1));
  std::int64_t value = 0;
  const bool hex = number.starts_with("0x");
  if (hex) number.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), value, hex ? 16 : 10);
  if (error == std::errc{} && end == number.data() + number.size()) {
    names[value] = text.substr(quote + 1, end_quote - quote - 1);
  }
  text.remove_prefix(close + 1);
  return true;
}

}  // namespace

const FieldFormat* EventFormat::find(std::string_view field_name) const {
  for (const FieldFormat& field : fields) {
    if (field.name == field_name) return &field;
  }
  return nullptr;
}

Result<EventFormat> parse_event_format(std::string_view system, std::string_view text) {
  EventFormat format;
  format.system = system;
  bool has_id = false;
  while (!text.empty()) {
    const std::string_view line = trim(next_line(text));
    if (line.starts_with("name:")) {
      format.name = trim(line.substr(5));
    } else if (line.starts_with("ID:")) {
      const auto id = parse_number<std::uint16_t>(line.substr(3));
      if (id) format.id = *id;
      has_id = id.has_value();
    } else if (line.starts_with("field:")) {
      auto field = parse_field(line);
      if (!field) {
        return fail(ErrorKind::damaged, "format of {}:{}: cannot read the field line \"{}\"",
                    system, format.name, line);
      }
      format.fields.push_back(std::move(*field));
    } else if (line.starts_with("print fmt:")) {
      format.print_format = trim(line.substr(10));
    }
  }
  if (format.name.empty() || !has_id) {
    return fail(ErrorKind::damaged, "an event format of system {} has no {} line", system,
                format.name.empty() ? "name:" : "ID:");
  }
  return format;
}

std::map<std::int64_t, std::string> flag_names(const EventFormat& format, std::string_view field) {
  std::map<std::int64_t, std::string> names;
  std::string_view text = format.print_format;
  const std::size_t begin = text.find(fmt::format("__print_flags(REC->{}", field));
  if (begin == std::string_view::npos) return names;
  // What is printed may be an expression; the delimiter, a string, ends it.
  const std::size_t open = text.find('"', begin);
  const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  if (close == std::string_view::npos) return names;
  text.remove_prefix(close + 1);
  while (next_symbol(text, names)) {
  }
  return names;
}

std::map<std::int64_t, std::string> symbolic_names(const EventFormat& format,
                                                   std::string_view field) {
  std::map<std::int64_t, std::string> names;
  const std::string start = fmt::format("__print_symbolic(REC->{},", field);
  const std::size_t begin = format.print_format.find(start);
  if (begin == std::string::npos) return names;
  std::string_view text = std::string_view(format.print_format).substr(begin + start.size());
  while (next_symbol(text, names)) {
  }
  return names;
}

}  // namespace skbtrail
