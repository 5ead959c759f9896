#include "support/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/pipeline.h"
#include "cli/task_facts.h"
#include "track/cpu_account.h"
#include "track/cpu_context.h"
#include "track/drop_stats.h"
#include "track/flow_stats.h"
#include "track/leg_stats.h"
#include "track/poll_stats.h"
#include "track/receive_hunks.h"
#include "track/sched_stats.h"
#include "track/syscall_stats.h"
#include "track/task_times.h"

namespace skbtrail::test {
namespace {

struct Packets : track::PacketSink {
  explicit Packets(track::Flows& table) : flows(table, nullptr) {}
  void packet(const track::Packet& packet) override {
    flows.packet(packet);
    drops.packet(packet);
  }
  track::FlowStats flows;
  track::DropStats drops;
};

// The trackers of `sched`, `cpu` and `syscalls`, in one walk.
class TaskTrackers {
 public:
  explicit TaskTrackers(const stream::Trace& trace)
      : trace_(trace),
        comms_(trace.file().cmdlines()),
        names_(trace.file().uname()),
        account_(names_),
        contexts_(comms_, account_),
        times_(cli::has_wakeups(trace.catalog()), &contexts_),
        sched_(times_, names_, {}),
        calls_times_(cli::has_wakeups(trace.catalog()), &contexts_),
        calls_(calls_times_, names_) {}
  void subscribe(stream::Dispatcher& events) {
    contexts_.subscribe(events);
    account_.watch(contexts_);
    account_.subscribe(events);
    sched_.subscribe(events);
    calls_times_.subscribe(events);
    calls_.subscribe(events);
  }
  void finish(const track::CaptureFacts& facts) {
    contexts_.finish(facts.first, facts.last, trace_.cpus());
    sched_.finish(facts.last);
    calls_times_.finish(facts.last);
    calls_.finish();
  }

 private:
  const stream::Trace& trace_;
  track::Comms comms_;
  track::SyscallNames names_;
  track::CpuAccount account_;
  track::CpuContexts contexts_;
  track::TaskTimes times_;
  track::SchedStats sched_;
  track::TaskTimes calls_times_;
  track::SyscallStats calls_;
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
  Packets packets(flows);
  TaskTrackers tasks(*trace);
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
  stream::Dispatcher beside(trace->catalog());
  tasks.subscribe(beside);
  track::CaptureFacts facts = cli::start_facts(*trace);
  cli::run_events(*trace, {&events, &beside}, facts);
  tracker.finish();
  packets.flows.finish();
  tasks.finish(facts);
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
