#include "stream/common_fields.h"

namespace skbtrail::stream {
namespace {

// The layout without which no trace was ever written (struct trace_entry, 2.6.30 to 6.18); what a
// trace's own formats say comes first, because RT kernels add fields.
constexpr FieldLocation kUsualFlags{2, 1, false, false, false, true};
constexpr FieldLocation kUsualPid{4, 4, true, false, false, true};

FieldLocation common_field(const EventFormat& format, std::string_view name,
                           const FieldLocation& usual) {
  const FieldFormat* field = format.find(name);
  if (field == nullptr || field->size != usual.size) return usual;
  return {field->offset, field->size, field->is_signed, false, false, true};
}

}  // namespace

CommonFields::CommonFields(const EventCatalog& catalog) : flags_(kUsualFlags), pid_(kUsualPid) {
  const tracedat::FormatText* any = catalog.any();
  if (any == nullptr) return;
  const auto format = parse_event_format(any->system, any->text);
  if (!format) return;
  flags_ = common_field(*format, "common_flags", kUsualFlags);
  pid_ = common_field(*format, "common_pid", kUsualPid);
  if (flags_.offset >= pid_.offset) {  // header() checks the end of the pid only
    flags_ = kUsualFlags;
    pid_ = kUsualPid;
  }
}

}  // namespace skbtrail::stream
