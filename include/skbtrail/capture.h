// A trace.dat, ours or trace-cmd's, event by event. With a declaration from <skbtrail/event/...>,
// or one of your own (see event.h), the events are typed:
//
//   auto capture = skbtrail::Capture::open("trace.dat");
//   auto receive = capture->decoder<skbtrail::NetifReceiveSkb>();
//   skbtrail::RawEvent raw;
//   skbtrail::NetifReceiveSkb event;
//   while (capture->next(raw)) {
//     if (raw.id == receive->id() && receive->decode(raw, event)) use(raw.time, event.device,
//     event.len);
//   }
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skbtrail/decoder.h"
#include "skbtrail/event.h"
#include "skbtrail/event_format.h"
#include "skbtrail/raw_event.h"
#include "skbtrail/result.h"

namespace skbtrail {

class Capture {
 public:
  // `buffer` names an instance of the capture, or "top"; without it all buffers are read that can
  // be read together (see skbtrail-report(1)).
  static Result<Capture> open(const std::string& path, const std::string& buffer = "");
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture();

  // The next event of all CPUs, ordered by (time, CPU); false at the end. What it points at stays
  // valid until the next call: copy what you keep.
  bool next(RawEvent& event);
  // The fields every event has.
  EventHeader header(const RawEvent& event) const;

  // "net:netif_receive_skb", or "id 17" for an event the capture has no format of.
  std::string event_name(std::uint16_t id) const;
  // ErrorKind::unsupported when the capture does not have this event.
  Result<EventFormat> format(const EventName& name) const;
  template <class Event>
  Result<Decoder<Event>> decoder() const {
    auto found = format(Event::name);
    if (!found) return tl::unexpected<Error>(std::move(found.error()));
    return Decoder<Event>::bind(*found);
  }

  const std::string& clock() const;  // of the time stamps: "mono", "local", ...
  const std::vector<std::string>& damage()
      const;  // what of the file could not be read, a line each

 private:
  struct State;
  explicit Capture(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace skbtrail
