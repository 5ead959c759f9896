// The fields every event starts with: flags and pid.
#pragma once

#include "skbtrail/decoder.h"
#include "skbtrail/event.h"
#include "skbtrail/raw_event.h"
#include "stream/event_catalog.h"

namespace skbtrail::stream {

class CommonFields {
 public:
  // Takes the layout from the catalog's own formats; RT kernels add fields.
  explicit CommonFields(const EventCatalog& catalog);

  // How large an event must be to have them.
  std::uint64_t needed() const { return pid_offset_ + sizeof(Pid); }
  // Of an event of at least that size.
  EventHeader header(const RawEvent& raw) const { return header(raw, flags_offset_, pid_offset_); }
  // The same where they lie as in every trace that was ever written.
  bool is_usual() const { return flags_offset_ == kFlagsOffset && pid_offset_ == kPidOffset; }
  static EventHeader usual_header(const RawEvent& raw) {
    return header(raw, kFlagsOffset, kPidOffset);
  }

 private:
  // struct trace_entry, 2.6.30 to 6.18.
  static constexpr std::uint32_t kFlagsOffset = 2;
  static constexpr std::uint32_t kPidOffset = 4;

  static EventHeader header(const RawEvent& raw, std::uint32_t flags, std::uint32_t pid) {
    return {raw.time, raw.cpu, detail::load<Pid>(raw.data + pid),
            detail::load<std::uint8_t>(raw.data + flags)};
  }

  std::uint32_t flags_offset_ = kFlagsOffset;
  std::uint32_t pid_offset_ = kPidOffset;
};

}  // namespace skbtrail::stream
