// The events a trace knows: names and ids of all of them, the full format of those somebody asks
// for.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skbtrail/event.h"
#include "skbtrail/event_format.h"
#include "skbtrail/result.h"
#include "tracedat/reader.h"

namespace skbtrail::stream {

class EventCatalog {
 public:
  // `formats` must outlive the catalog. Of each only the name: and ID: lines are read here.
  // Names are printable (base/printable.h): a system call is called what its event is.
  explicit EventCatalog(std::span<const tracedat::FormatText> formats);
  EventCatalog(const EventCatalog&) = delete;
  EventCatalog& operator=(const EventCatalog&) = delete;

  // Null when the trace has no such event.
  const tracedat::FormatText* find(const EventName& name) const;
  struct Member {
    std::string_view name;
    std::uint16_t id = 0;
    const tracedat::FormatText* format = nullptr;
  };
  // All events of a system whose name starts with `prefix`: syscalls:sys_enter_*.
  std::vector<Member> family(const EventName& prefix) const;
  // "net:netif_receive_skb", or "id 17" for an event without a format.
  std::string name(std::uint16_t id) const;
  // The format of any event, for the common_ fields that all share; null when there is none.
  const tracedat::FormatText* any() const;

 private:
  struct Known {
    std::uint16_t id = 0;
    const tracedat::FormatText* format = nullptr;
  };
  std::string_view shown(std::string_view name);

  std::deque<std::string> changed_;  // the few that could not be printed as they are
  std::map<std::pair<std::string_view, std::string_view>, Known> by_name_;
  std::map<std::uint16_t, std::pair<std::string_view, std::string_view>> by_id_;
};

}  // namespace skbtrail::stream
