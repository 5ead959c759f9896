// Joins what an event's declaration wants (skbtrail/event.h) with where this trace keeps it
// (skbtrail/event_format.h): once per trace. decode() is then one bounds check and plain loads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "skbtrail/event.h"
#include "skbtrail/event_format.h"
#include "skbtrail/raw_event.h"

namespace skbtrail {

// Where one field lies. `present` is false for an optional field this trace lacks.
struct FieldLocation {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool is_signed = false;
  bool is_data_loc = false;
  bool is_rel_loc = false;
  bool present = false;
};

std::uint64_t load_number(const FieldLocation& field, const std::uint8_t* record);
std::span<const std::uint8_t> load_bytes(const FieldLocation& field, const RawEvent& event);

namespace detail {

template <class Number>
Number load(const std::uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
inline constexpr bool wants_bytes =
    std::is_same_v<T, Text> || std::is_same_v<T, std::span<const std::uint8_t>>;

inline void assign(Text& out, const FieldLocation& field, const RawEvent& event) {
  const auto bytes = load_bytes(field, event);
  out = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline void assign(std::span<const std::uint8_t>& out, const FieldLocation& field,
                   const RawEvent& event) {
  out = load_bytes(field, event);
}

template <class Number>
void assign(Number& out, const FieldLocation& field, const RawEvent& event) {
  out = static_cast<Number>(load_number(field, event.data));
}

template <class T>
void assign(std::optional<T>& out, const FieldLocation& field, const RawEvent& event) {
  if (field.present) {
    assign(out.emplace(), field, event);
  } else {
    out.reset();
  }
}

// The same for a field that lies as its member does, see is_usual().
template <class T>
void assign_usual(T& out, const FieldLocation& field, const RawEvent& event) {
  if constexpr (is_optional<T>::value) {
    if (field.present) {
      assign_usual(out.emplace(), field, event);
    } else {
      out.reset();
    }
  } else if constexpr (wants_bytes<T>) {
    assign(out, field, event);
  } else {
    out = load<T>(event.data + field.offset);
  }
}

// A number of exactly the member's width needs neither a switch on its size nor a sign extension:
// its bytes are the member's bytes.
template <class T>
bool is_usual(const FieldLocation& field) {
  if constexpr (is_optional<T>::value) {
    return !field.present || is_usual<typename T::value_type>(field);
  } else if constexpr (wants_bytes<T>) {
    return true;
  } else {
    return field.size == sizeof(T);
  }
}

}  // namespace detail

template <class Event>
class Decoder {
 public:
  // Fails, naming the field, when a required field is missing or is not of the declared kind.
  static Result<Decoder> bind(const EventFormat& format) {
    Decoder decoder;
    decoder.id_ = format.id;
    std::string problem;
    std::size_t index = 0;
    std::apply(
        [&](const auto&... fields) {
          (decoder.bind_field(format, fields, decoder.fields_[index++], problem), ...);
        },
        Event::fields);
    if (!problem.empty()) {
      return tl::unexpected<Error>(
          Error{ErrorKind::unsupported, format.system + ":" + format.name + " " + problem});
    }
    return decoder;
  }

  std::uint16_t id() const { return id_; }  // RawEvent::id of this event in this trace

  // False when the record is shorter than its format says. Strings in `out` lie in the
  // event's data.
  bool decode(const RawEvent& event, Event& out) const {
    if (event.size < needed_) return false;
    if (usual_) [[likely]] {
      decode_usual(event, out);
    } else {
      decode_fields(event, out, std::make_index_sequence<kFieldCount>());
    }
    return true;
  }

  // For who decodes millions of them: of an event that has the size it needs, and when every field
  // lies as its member does, which is decided once per trace. What of `out` is not looked at is
  // then not loaded.
  std::uint64_t needed() const { return needed_; }
  bool is_usual() const { return usual_; }
  void decode_usual(const RawEvent& event, Event& out) const {
    decode_usual(event, out, std::make_index_sequence<kFieldCount>());
  }

 private:
  static constexpr std::size_t kFieldCount = std::tuple_size_v<decltype(Event::fields)>;

  // Owner is Event, or what Event and its like have in common.
  template <class Owner, class Member>
  void bind_field(const EventFormat& format, const Field<Owner, Member>& wanted,
                  FieldLocation& location, std::string& problem) {
    const FieldFormat* found = format.find(wanted.name);
    if (found == nullptr) {
      if constexpr (!detail::is_optional<Member>::value) {
        if (problem.empty()) problem = "has no field \"" + std::string(wanted.name) + "\"";
      }
      return;
    }
    location = {found->offset,      found->size,       found->is_signed,
                found->is_data_loc, found->is_rel_loc, true};
    if (!fits<Member>(*found) && problem.empty()) {
      problem = "has a field \"" + found->name + "\" of an unknown layout (" + found->type +
                " of " + std::to_string(found->size) + " bytes)";
    }
    needed_ = std::max(needed_, std::uint64_t{found->offset} + found->size);
    usual_ = usual_ && detail::is_usual<Member>(location);
  }

  template <class Member>
  static bool fits(const FieldFormat& field) {
    if constexpr (detail::is_optional<Member>::value) {
      return fits<typename Member::value_type>(field);
    } else if constexpr (detail::wants_bytes<Member>) {
      return field.is_array || ((field.is_data_loc || field.is_rel_loc) && field.size == 4);
    } else {
      const bool number = field.size == 1 || field.size == 2 || field.size == 4 || field.size == 8;
      return number && !field.is_array && !field.is_data_loc && !field.is_rel_loc;
    }
  }

  template <std::size_t... Index>
  void decode_usual(const RawEvent& event, Event& out, std::index_sequence<Index...>) const {
    (detail::assign_usual(out.*(std::get<Index>(Event::fields).member), fields_[Index], event),
     ...);
  }
  // Not inlined: it is hardly ever needed, and its switches would crowd the caller.
  template <std::size_t... Index>
  [[gnu::noinline]] void decode_fields(const RawEvent& event, Event& out,
                                       std::index_sequence<Index...>) const {
    (detail::assign(out.*(std::get<Index>(Event::fields).member), fields_[Index], event), ...);
  }

  std::array<FieldLocation, kFieldCount> fields_{};
  std::uint64_t needed_ = 0;
  std::uint16_t id_ = 0;
  // Every field lies as its member does: true for the events of every kernel seen, 5.4 to 6.18.
  // Decided once, here, so that decode() is plain loads.
  bool usual_ = true;
};

inline std::uint64_t load_number(const FieldLocation& field, const std::uint8_t* record) {
  const std::uint8_t* at = record + field.offset;
  switch (field.size) {
    case 1:
      return field.is_signed ? static_cast<std::uint64_t>(detail::load<std::int8_t>(at)) : *at;
    case 2:
      return field.is_signed ? static_cast<std::uint64_t>(detail::load<std::int16_t>(at))
                             : detail::load<std::uint16_t>(at);
    case 4:
      return field.is_signed ? static_cast<std::uint64_t>(detail::load<std::int32_t>(at))
                             : detail::load<std::uint32_t>(at);
    default:
      return detail::load<std::uint64_t>(at);
  }
}

// A string or array; empty when its descriptor points outside the record.
inline std::span<const std::uint8_t> load_bytes(const FieldLocation& field, const RawEvent& event) {
  std::uint32_t offset = field.offset;
  std::uint32_t size = field.size;
  if (field.is_data_loc || field.is_rel_loc) {
    const auto descriptor = detail::load<std::uint32_t>(event.data + field.offset);
    offset = (descriptor & 0xffff) + (field.is_rel_loc ? field.offset + 4 : 0);
    size = descriptor >> 16;
  }
  if (offset > event.size || size > event.size - offset) return {};
  return {event.data + offset, size};
}

}  // namespace skbtrail
