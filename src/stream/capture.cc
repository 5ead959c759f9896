#include "skbtrail/capture.h"

#include "base/error.h"
#include "stream/common_fields.h"
#include "stream/trace.h"

namespace skbtrail {

struct Capture::State {
  explicit State(stream::Trace opened)
      : trace(std::move(opened)), common(trace.catalog()), events(trace.events()) {}

  stream::Trace trace;
  stream::CommonFields common;
  stream::Merge events;
};

Capture::Capture(std::unique_ptr<State> state) : state_(std::move(state)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

Result<Capture> Capture::open(const std::string& path, const std::string& buffer) {
  stream::ReadOptions options;
  if (!buffer.empty()) options.buffers = {buffer};
  auto trace = stream::Trace::open(path, options);
  if (!trace) return pass(trace);
  return Capture(std::make_unique<State>(std::move(*trace)));
}

bool Capture::next(RawEvent& event) {
  return state_->events.next(event);
}

EventHeader Capture::header(const RawEvent& event) const {
  if (event.size < state_->common.needed()) return {event.time, event.cpu, 0, 0};
  return state_->common.header(event);
}

std::string Capture::event_name(std::uint16_t id) const {
  return state_->trace.catalog().name(id);
}

Result<EventFormat> Capture::format(const EventName& name) const {
  const tracedat::FormatText* text = state_->trace.catalog().find(name);
  if (text == nullptr) {
    return fail(ErrorKind::unsupported, "{} has no event {}:{}", state_->trace.file().path(),
                name.system, name.event);
  }
  return parse_event_format(text->system, text->text);
}

const std::string& Capture::clock() const {
  return state_->trace.buffer().clock;
}

const std::vector<std::string>& Capture::damage() const {
  return state_->trace.file().damage();
}

}  // namespace skbtrail
