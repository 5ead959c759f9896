#include "support/packet_log.h"

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

}  // namespace

PacketLog track_packets(const std::filesystem::path& capture) {
  auto trace = stream::Trace::open(capture);
  if (!trace) throw std::runtime_error(trace.error().message);
  PacketLog log;
  log.trace = std::make_unique<stream::Trace>(std::move(*trace));
  const track::Comms comms(log.trace->file().cmdlines());
  const track::SyscallNames calls(log.trace->file().uname());
  const track::DropReasons reasons = cli::drop_reasons(log.trace->catalog());
  Symbols symbols(log.trace->file().kallsyms());
  track::Flows flows;
  PacketCollector collector(log.packets);
  track::PacketTracker tracker(*log.devices, comms, calls, reasons, symbols, flows, collector,
                               cli::packet_events(log.trace->catalog()));
  stream::Dispatcher dispatcher(log.trace->catalog());
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
