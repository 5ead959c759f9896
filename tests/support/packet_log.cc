#include "support/packet_log.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "cli/pipeline.h"

namespace skbtrail::test {
namespace {

class PacketCollector : public track::PacketSink {
 public:
  explicit PacketCollector(std::vector<LoggedPacket>& packets) : packets_(packets) {}

  void packet(const track::Packet& packet) override {
    LoggedPacket& logged = packets_.emplace_back();
    logged.id = packet.id;
    logged.generation = packet.generation;
    logged.begin = packet.begin();
    logged.end = packet.end();
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      logged.legs.push_back(*leg);
    }
    for (std::size_t i = 0; i < logged.legs.size(); ++i) {
      logged.legs[i].next = i + 1 < logged.legs.size() ? &logged.legs[i + 1] : nullptr;
    }
  }

 private:
  std::vector<LoggedPacket>& packets_;
};

// How the format text has it: what stands before the last sign is its name.
std::string declared(const Absent& absent) {
  return absent.field.empty() ? fmt::format("name: {}\n", absent.event.event)
                              : fmt::format(" {};", absent.field);
}

// The formats of a capture, but for what is absent.
class PoorerFormats {
 public:
  PoorerFormats(const stream::Trace& trace, std::span<const Absent> absent)
      : formats_(trace.file().formats()) {
    for (const Absent& one : absent) {
      if (!has(trace.catalog(), one)) throw std::runtime_error("no" + declared(one));
      const auto at = trace.catalog().find(one.event) - trace.file().formats().data();
      hide(formats_[static_cast<std::size_t>(at)], declared(one));
    }
  }
  std::span<const tracedat::FormatText> all() const { return formats_; }

 private:
  // As long as before, under a name that nobody asks for.
  void hide(tracedat::FormatText& format, const std::string& what) {
    std::string& text = texts_.emplace_back(format.text);
    text[text.find(what) + what.size() - 2] = '_';
    format.text = text;
  }

  std::vector<tracedat::FormatText> formats_;
  std::deque<std::string> texts_;
};

// A capture, and the tracker that its events are for.
class Tracking {
 public:
  Tracking(const std::filesystem::path& capture, std::span<const Absent> absent)
      : trace_(open(capture)), formats_(trace_, absent) {
    tracker_.subscribe(events);
  }
  const stream::Trace& trace() const { return trace_; }

  PacketLog finish() {
    tracker_.finish();
    log_.counters = tracker_.counters();
    log_.send_counters = tracker_.send_counters();
    log_.delivery_counters = tracker_.delivery_counters();
    return std::move(log_);
  }

 private:
  const stream::Trace& open(const std::filesystem::path& capture) {
    auto trace = stream::Trace::open(capture);
    if (!trace) throw std::runtime_error(trace.error().message);
    log_.trace = std::make_unique<stream::Trace>(std::move(*trace));
    return *log_.trace;
  }

  PacketLog log_;
  const stream::Trace& trace_;
  const track::Comms comms_{trace_.file().cmdlines()};
  const track::SyscallNames calls_{trace_.file().uname()};
  const PoorerFormats formats_;
  const stream::EventCatalog catalog_{formats_.all()};
  const track::DropReasons reasons_ = cli::drop_reasons(catalog_);
  Symbols symbols_{trace_.file().kallsyms()};
  track::Flows flows_;
  PacketCollector collector_{log_.packets};
  track::PacketTracker tracker_{*log_.devices, comms_, calls_,     reasons_,
                                symbols_,      flows_, collector_, cli::packet_events(catalog_)};

 public:
  stream::Dispatcher events{catalog_};
};

}  // namespace

bool has(const stream::EventCatalog& catalog, const Absent& absent) {
  const tracedat::FormatText* format = catalog.find(absent.event);
  return format != nullptr && format->text.find(declared(absent)) != std::string_view::npos;
}

PacketLog track_packets(const std::filesystem::path& capture, std::span<const Absent> absent) {
  Tracking tracking(capture, absent);
  track::CaptureFacts facts = cli::start_facts(tracking.trace());
  cli::run_events(tracking.trace(), {&tracking.events}, facts);
  PacketLog log = tracking.finish();
  log.missing = facts.missing;
  log.events = facts.events;
  log.lossless = facts.lossless() && facts.damage.empty();
  return log;
}

PacketLog track_packets_without(const std::filesystem::path& capture, const IsMissed& is_missed) {
  Tracking tracking(capture, {});
  std::map<std::uint16_t, std::pair<std::string, std::size_t>> came;
  stream::Merge merge = tracking.trace().events();
  RawEvent event;
  while (merge.next(event)) {
    auto& [name, number] = came[event.id];
    if (name.empty()) name = tracking.trace().catalog().name(event.id);
    if (!is_missed(name, number++)) tracking.events.dispatch(event);
  }
  return tracking.finish();
}

}  // namespace skbtrail::test
