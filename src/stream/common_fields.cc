#include "stream/common_fields.h"

namespace skbtrail::stream {
namespace {

// Where a field of `size` bytes lies; `usual` when the format has none of this size.
std::uint32_t offset_of(const EventFormat& format, std::string_view name, std::uint32_t size,
                        std::uint32_t usual) {
  const FieldFormat* field = format.find(name);
  return field == nullptr || field->size != size ? usual : field->offset;
}

}  // namespace

// What a trace's own formats say comes first, because RT kernels add fields.
CommonFields::CommonFields(const EventCatalog& catalog) {
  const tracedat::FormatText* any = catalog.any();
  if (any == nullptr) return;
  const auto format = parse_event_format(any->system, any->text);
  if (!format) return;
  const std::uint32_t flags = offset_of(*format, "common_flags", 1, flags_offset_);
  const std::uint32_t pid = offset_of(*format, "common_pid", 4, pid_offset_);
  if (flags >= pid) return;  // needed() is the end of the pid
  flags_offset_ = flags;
  pid_offset_ = pid;
}

}  // namespace skbtrail::stream
