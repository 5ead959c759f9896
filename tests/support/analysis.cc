#include "support/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/pipeline.h"
#include "track/leg_stats.h"
#include "track/poll_stats.h"
#include "track/receive_hunks.h"

namespace skbtrail::test {
namespace {

struct NoPackets : track::PacketSink {
  void packet(const track::Packet&) override {}
};
struct NoHunks : track::HunkSink {
  void hunk(const track::ReceiveHunk&) override {}
};

// Hunks and figures in one walk, which a verb never needs.
class Both : public track::LegSink, public track::RunSink {
 public:
  Both(track::LegStats& legs, track::ReceiveHunks& hunks) : legs_(legs), hunks_(hunks) {}

  void leg_ended(const track::Leg& leg) override {
    legs_.leg_ended(leg);
    hunks_.leg_ended(leg);
  }
  void run_began(const EventHeader& header, const track::NetRxContext& run) override {
    hunks_.run_began(header, run);
  }
  void received(const EventHeader& header, const track::NetRxContext& run,
                const NetifReceiveSkb& event, const track::Leg& leg) override {
    hunks_.received(header, run, event, leg);
  }
  void polled(const EventHeader& header, const track::NetRxContext& run,
              const NapiPoll& event) override {
    hunks_.polled(header, run, event);
  }
  void run_ended(const EventHeader& header, const track::NetRxContext& run) override {
    hunks_.run_ended(header, run);
  }
  void lost(const LossWindow& window) override { hunks_.lost(window); }

 private:
  track::LegStats& legs_;
  track::ReceiveHunks& hunks_;
};

}  // namespace

Analysis analyse(Result<stream::Trace> trace) {
  Analysis result;
  if (!trace) {
    result.error = trace.error();
    return result;
  }
  const track::Comms comms(trace->file().cmdlines());
  const track::SyscallNames calls(trace->file().uname());
  const track::DropReasons reasons = cli::drop_reasons(trace->catalog());
  Symbols symbols(trace->file().kallsyms());
  track::Devices devices;
  track::Flows flows;
  NoPackets packets;
  NoHunks printed;
  track::PacketTracker tracker(devices, comms, calls, reasons, symbols, flows, packets,
                               cli::packet_events(trace->catalog()));
  track::LegStats legs;
  track::PollStats polls;
  track::ReceiveHunks hunks(devices, comms, printed);
  Both both(legs, hunks);
  tracker.also_tell(static_cast<track::LegSink&>(both));
  tracker.also_tell(static_cast<track::RunSink&>(both));
  stream::Dispatcher events(trace->catalog());
  tracker.subscribe(events);
  polls.subscribe(events);
  track::CaptureFacts facts = cli::start_facts(*trace);
  cli::run_events(*trace, {&events}, facts);
  tracker.finish();
  hunks.finish();
  result.events = facts.events;
  result.damage = facts.damage;
  result.left_out = facts.other_buffers;
  result.figures = fmt::format("{} to {}, {} gaps\n", facts.first, facts.last, facts.gap_count);
  for (const track::EventCount& count : facts.counts) {
    result.figures += fmt::format("{} {}\n", count.name, count.count);
  }
  const track::DirectionStats& rx = legs.rx();
  const track::DirectionStats& tx = legs.tx();
  result.figures +=
      fmt::format("rx {} {} tx {} {} receives {} hops {} hunks {} runs {}\n", rx.births,
                  fmt::join(rx.outcomes, " "), tx.births, fmt::join(tx.outcomes, " "),
                  hunks.counters().receives, hunks.counters().hops, hunks.counters().hunks,
                  polls.polls_per_run().count());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    result.figures +=
        fmt::format("device {}\n", devices.name(track::DeviceId{static_cast<std::uint16_t>(i)}));
  }
  return result;
}

Analysis analyse(std::span<const std::uint8_t> bytes, const stream::ReadOptions& options) {
  auto reader = tracedat::Reader::parse(bytes, "damaged.dat");
  if (!reader) {
    Analysis result;
    result.error = reader.error();
    return result;
  }
  return analyse(stream::Trace::of(std::move(*reader), options));
}

}  // namespace skbtrail::test
