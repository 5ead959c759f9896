// The layout of one event as the trace's own format text gives it. Never keyed on a kernel version:
// distribution kernels backport fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail {

struct FieldFormat {
  std::string name;
  std::string
      type;  // as written, without the name: "__data_loc char[]", "unsigned int", "char[16]"
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool is_signed = false;
  bool is_array = false;     // a fixed array: offset and size are those of the bytes themselves
  bool is_data_loc = false;  // u32: low 16 bits offset from the record's start, high 16 bits length
  bool is_rel_loc = false;   // the same, offset counted from the end of this field (5.17+)
};

struct EventFormat {
  std::string system;
  std::string name;
  std::uint16_t id = 0;
  std::vector<FieldFormat> fields;  // common_ fields included
  std::string print_format;         // the text after "print fmt: "

  const FieldFormat* find(std::string_view field_name) const;
};

// Parses one `format` file. Own parser of about a screen, because the text comes from other
// people's files and libtraceevent 1.7.1 crashes on damaged ones, print format or not (tests hold
// the two equal on every format of every kernel we have).
Result<EventFormat> parse_event_format(std::string_view system, std::string_view text);

// The names a __print_symbolic() in the print format gives the values of `field`, e.g. the drop
// reasons of kfree_skb, which are numbered differently by every kernel. Empty when there is none.
std::map<std::int64_t, std::string> symbolic_names(const EventFormat& format,
                                                   std::string_view field);
// The same of a __print_flags(): names of single bits, e.g. the task states of sched_switch.
std::map<std::int64_t, std::string> flag_names(const EventFormat& format, std::string_view field);

}  // namespace skbtrail
