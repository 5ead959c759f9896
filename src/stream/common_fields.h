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

  EventHeader header(const RawEvent& raw) const {
    EventHeader header{raw.time, raw.cpu, 0, 0};
    if (raw.size >= pid_offset_ + sizeof header.pid) {
      header.pid = detail::load<Pid>(raw.data + pid_offset_);
      header.flags = detail::load<std::uint8_t>(raw.data + flags_offset_);
    }
    return header;
  }

 private:
  // The layout without which no trace was ever written (struct trace_entry, 2.6.30 to 6.18).
  std::uint32_t flags_offset_ = 2;
  std::uint32_t pid_offset_ = 4;
};

}  // namespace skbtrail::stream
