#include "support/packet_log.h"

#include <fmt/format.h>

#include <deque>
#include <stdexcept>

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

}  // namespace

bool has(const stream::EventCatalog& catalog, const Absent& absent) {
  const tracedat::FormatText* format = catalog.find(absent.event);
  return format != nullptr && format->text.find(declared(absent)) != std::string_view::npos;
}

PacketLog track_packets(const std::filesystem::path& capture, std::span<const Absent> absent) {
  auto trace = stream::Trace::open(capture);
  if (!trace) throw std::runtime_error(trace.error().message);
  PacketLog log;
  log.trace = std::make_unique<stream::Trace>(std::move(*trace));
  const track::Comms comms(log.trace->file().cmdlines());
  const track::SyscallNames calls(log.trace->file().uname());
  const PoorerFormats formats(*log.trace, absent);
  const stream::EventCatalog catalog(formats.all());
  const track::DropReasons reasons = cli::drop_reasons(catalog);
  Symbols symbols(log.trace->file().kallsyms());
  track::Flows flows;
  PacketCollector collector(log.packets);
  track::PacketTracker tracker(*log.devices, comms, calls, reasons, symbols, flows, collector,
                               cli::packet_events(catalog));
  stream::Dispatcher dispatcher(catalog);
  tracker.subscribe(dispatcher);
  track::CaptureFacts facts = cli::start_facts(*log.trace);
  cli::run_events(*log.trace, {&dispatcher}, facts);
  tracker.finish();
  log.counters = tracker.counters();
  log.send_counters = tracker.send_counters();
  log.delivery_counters = tracker.delivery_counters();
  log.missing = facts.missing;
  log.lossless = facts.lossless() && facts.damage.empty();
  return log;
}

}  // namespace skbtrail::test
