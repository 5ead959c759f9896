#include "stream/dispatcher.h"

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

Dispatcher::Dispatcher(const EventCatalog& catalog)
    : catalog_(catalog), common_pid_(kUsualPid), common_flags_(kUsualFlags) {
  const tracedat::FormatText* any = catalog.any();
  if (any == nullptr) return;
  const auto format = parse_event_format(any->system, any->text);
  if (!format) return;
  common_flags_ = common_field(*format, "common_flags", kUsualFlags);
  common_pid_ = common_field(*format, "common_pid", kUsualPid);
  if (common_flags_.offset >=
      common_pid_.offset) {  // decode_header() checks the end of the pid only
    common_flags_ = kUsualFlags;
    common_pid_ = kUsualPid;
  }
}

void Dispatcher::loss(const RawEvent& raw) {
  LossWindow window{raw.cpu, 0, raw.time, raw.lost_before};
  if (raw.cpu < last_time_.size()) window.from = last_time_[raw.cpu];
  for (const auto& [target, call] : loss_subscribers_) call(target, window);
}

void Dispatcher::grow(std::uint16_t id) {
  table_.resize(std::size_t{id} + 1);
  counts_.resize(std::size_t{id} + 1);
}

}  // namespace skbtrail::stream
