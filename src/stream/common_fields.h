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
    if (raw.size >= pid_.offset + pid_.size) {
      header.pid = static_cast<Pid>(load_number(pid_, raw.data));
      header.flags = static_cast<std::uint8_t>(load_number(flags_, raw.data));
    }
    return header;
  }

 private:
  FieldLocation flags_;
  FieldLocation pid_;
};

}  // namespace skbtrail::stream
