#include "support/every_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cli/pipeline.h"
#include "cli/task_facts.h"
#include "track/cpu_account.h"
#include "track/cpu_context.h"
#include "track/drop_stats.h"
#include "track/flow_stats.h"
#include "track/leg_stats.h"
#include "track/packet_tracker.h"
#include "track/poll_stats.h"
#include "track/receive_hunks.h"
#include "track/sched_stats.h"
#include "track/syscall_stats.h"
#include "track/task_times.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::LegDirection;
using track::Outcome;

template <class Values>
std::uint64_t sum(const Values& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}
template <class Values, class Member>
std::uint64_t sum(const Values& values, Member member) {
  std::uint64_t all = 0;
  for (const auto& value : values) all += member(value);
  return all;
}

// What does not hold.
class Violations {
 public:
  void require(bool holds, std::string_view what) {
    if (!holds) all_.emplace_back(what);
  }
  void equal(std::uint64_t one, std::uint64_t other, std::string_view what) {
    if (one != other) all_.push_back(fmt::format("{}: {} and {}", what, one, other));
  }
  void at_most(std::uint64_t value, std::uint64_t most, std::string_view what) {
    if (value > most) all_.push_back(fmt::format("{}: {}, more than {}", what, value, most));
  }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

// Times of packets and of hunks, remembered until the ends of the capture are known.
class Times {
 public:
  void add(Nanoseconds time, const char* what) {
    if (time != 0 && (least_ == 0 || time < least_)) least_ = time, least_what_ = what;
    if (time > most_) most_ = time, most_what_ = what;
  }
  void check(Nanoseconds first, Nanoseconds last, Violations& violations) const {
    if (most_ == 0) return;
    if (least_ < first)
      violations.at_most(first, least_, fmt::format("{} before the first event", least_what_));
    violations.at_most(most_, last, fmt::format("{} after the last event", most_what_));
  }

 private:
  Nanoseconds least_ = 0, most_ = 0;
  const char* least_what_ = "";
  const char* most_what_ = "";
};

// The events themselves, counted.
struct Counts {
  void on(const EventHeader&, const NetifReceiveSkb&) { ++receives; }
  void on(const EventHeader&, const NetDevQueue&) { ++queues; }
  void on(const EventHeader&, const NapiPoll&) { ++polls; }
  void on(const EventHeader&, const TcpProbeWindows&) { ++probes; }
  void on(const EventHeader&, const TcpSendReset&) { ++resets_sent; }
  void on(const EventHeader&, const TcpReceiveReset&) { ++resets_received; }
  void on(const EventHeader&, const SchedSwitch& event) {
    ++switches;
    if (event.prev_pid != 0) ++task_switches;
  }
  void on(const EventHeader& header, const SysEnter&) { enters += header.pid != 0 ? 1 : 0; }
  void on(const EventHeader& header, const SysExit&) { exits += header.pid != 0 ? 1 : 0; }
  void on(const EventHeader&, const RawSysEnter&) { raw_calls = true; }
  void on(const EventHeader&, const RawSysExit&) { raw_calls = true; }

  std::uint64_t receives = 0, queues = 0, polls = 0, probes = 0, resets_sent = 0,
                resets_received = 0, switches = 0, task_switches = 0, enters = 0, exits = 0;
  bool raw_calls = false;
};

// Told of packets, legs and runs; passes them on to those who count them.
class PacketListener : public track::PacketSink,
                       public track::LegSink,
                       public track::RunSink,
                       public track::HunkSink {
 public:
  PacketListener(track::Devices& devices, const track::Comms& comms, track::Flows& table)
      : flows(table,
              [this](const track::FlowSample& sample) { times.add(sample.time, "a sample"); }),
        hunks(devices, comms, *this) {}

  void packet(const track::Packet& packet) override {
    ++packets;
    if (!ids.insert(packet.id).second) violations.require(false, "a packet ended twice");
    bool passing = false;
    for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      ++legs_of_packets;
      look_at(*leg);
      const bool forwards = leg->outcome == Outcome::forwarded;
      if (!passing && !forwards) ++legs_of_flows;
      passing = forwards;
      if (leg->crossed_loss) ++crossed_loss;
      if (leg->outcome == Outcome::dropped) ++dropped;
      if (leg->next != nullptr && in_order) {
        violations.require(leg->next->birth >= leg->birth,
                           "a leg is born before the one before it");
      }
    }
    times.add(packet.begin(), "a packet's begin");
    times.add(packet.end(), "a packet's end");
    violations.require(packet.begin() <= packet.end(), "a packet ends before it begins");
    flows.packet(packet);
    drops.packet(packet);
  }

  void leg_ended(const Leg& leg) override {
    ++legs;
    if (!finishing && leg.outcome == Outcome::open) violations.require(false, "a leg ended open");
    stats.leg_ended(leg);
    hunks.leg_ended(leg);
  }

  void run_began(const EventHeader& header, const track::NetRxContext& run) override {
    hunks.run_began(header, run);
  }
  void received(const EventHeader& header, const track::NetRxContext& run,
                const NetifReceiveSkb& event, const Leg& leg) override {
    violations.require(leg.direction == LegDirection::rx, "a sent leg was received");
    hunks.received(header, run, event, leg);
  }
  void polled(const EventHeader& header, const track::NetRxContext& run,
              const NapiPoll& event) override {
    hunks.polled(header, run, event);
  }
  void run_ended(const EventHeader& header, const track::NetRxContext& run) override {
    hunks.run_ended(header, run);
  }
  void lost(const LossWindow& window) override { hunks.lost(window); }

  void hunk(const track::ReceiveHunk& hunk) override {
    ++hunks_told;
    hunk_packets += hunk.packets.size();
    hunk_polls += hunk.polls.size();
    std::size_t packet = 0, poll = 0;
    for (const track::ReceiveHunk::Step& step : hunk.steps) {
      violations.equal(step.index, step.is_poll ? poll++ : packet++,
                       "steps of a hunk out of order");
    }
    violations.equal(packet, hunk.packets.size(), "packets of a hunk in its steps");
    violations.equal(poll, hunk.polls.size(), "polls of a hunk in its steps");
    times.add(hunk.start, "a hunk's start");
    times.add(hunk.end.value_or(0), "a hunk's end");
    times.add(hunk.raised.value_or(0), "a hunk's raise");
    times.add(hunk.softirq.value_or(0), "a hunk's softirq");
    for (const track::RunIrq& irq : hunk.irqs) times.add(irq.entry, "a hunk's irq");
    for (const track::HunkPacket& its : hunk.packets) {
      times.add(its.received, "a hunk's packet");
      times.add(its.copied.value_or(0), "a hunk's copy");
      times.add(its.ended.value_or(0), "the end of a hunk's packet");
      if (in_order) violations.at_most(hunk.start, its.received, "a hunk starts behind its packet");
    }
    for (const track::HunkPoll& its : hunk.polls) {
      times.add(its.time, "a hunk's poll");
      if (in_order) violations.at_most(hunk.start, its.time, "a hunk starts behind its poll");
    }
    if (in_order && hunk.end)
      violations.at_most(hunk.start, *hunk.end, "a hunk ends before it starts");
  }

  void look_at(const Leg& leg) {
    times.add(leg.birth, "a birth");
    times.add(leg.freed, "a free");
    for (std::size_t stage = 0; stage < track::kStages; ++stage) {
      times.add(leg.stages.times()[stage], track::kStageNames[stage].data());
    }
    const bool sent = leg.direction == LegDirection::tx;
    if (leg.outcome == Outcome::unknown) {
      violations.require(leg.cause != track::UnknownCause::none, "an end is unknown for no cause");
    } else {
      violations.require(leg.cause == track::UnknownCause::none, "a known end is unknown");
    }
    if (sent) {
      const bool received = leg.outcome == Outcome::delivered || leg.outcome == Outcome::acked ||
                            leg.outcome == Outcome::forwarded || leg.outcome == Outcome::merged;
      violations.require(!received, "a sent leg ended as a received one");
      violations.require(leg.next == nullptr || leg.next->direction == LegDirection::rx,
                         "a sent leg is sent on");
    } else {
      violations.require(leg.outcome != Outcome::transmitted, "a received leg was transmitted");
      violations.require((leg.outcome == Outcome::forwarded) == (leg.next != nullptr),
                         "a received leg goes on and was not forwarded, or the other way round");
      violations.require(leg.next == nullptr || leg.next->direction == LegDirection::tx,
                         "a received leg is received on");
    }
    violations.require(leg.outcome != Outcome::merged || leg.merged_into == 0 ||
                           leg.merged_into != leg.parent || leg.parent == 0,
                       "a packet was merged into what it was made of");
    violations.require(leg.repeats == 0 || leg.retransmit,
                       "a packet repeats another for no reason");
  }

  Violations violations;
  Times times;
  bool in_order = true;
  bool finishing = false;
  std::set<std::uint64_t> ids;
  std::uint64_t packets = 0, legs = 0, legs_of_packets = 0, legs_of_flows = 0, crossed_loss = 0,
                dropped = 0, hunks_told = 0, hunk_packets = 0, hunk_polls = 0;
  track::FlowStats flows;
  track::DropStats drops;
  track::LegStats stats;
  track::ReceiveHunks hunks;
};

// `cpu`'s, and that its pieces follow each other.
class Pieces : public track::ContextSink {
 public:
  explicit Pieces(track::ContextSink& to) : to_(to) {}
  void spent(CpuId cpu, const track::Context& context, Nanoseconds from, Nanoseconds to) override {
    Cpu& its = cpus_[cpu];
    if (from >= to) violations.require(false, "a piece of a CPU's time is empty");
    const bool first = its.total == 0;
    const bool before = !first && to == its.from;  // what it was before its first event
    if (!first && !before) violations.equal(from, its.to, "a CPU's time has a gap");
    its.from = first || before ? from : its.from;
    its.to = before ? its.to : to;
    its.total += to - from;
    to_.spent(cpu, context, from, to);
  }
  void check(const EveryTracker::Ends& ends, Violations& all) {
    for (const CpuId cpu : ends.cpus) {
      all.equal(cpus_[cpu].total, ends.last - ends.first, fmt::format("the time of CPU {}", cpu));
    }
    for (std::string& text : violations.take()) all.require(false, text);
  }

 private:
  struct Cpu {
    Nanoseconds from = 0, to = 0, total = 0;
  };
  track::ContextSink& to_;
  std::map<CpuId, Cpu> cpus_;
  Violations violations;
};

struct SwitchListener : track::SwitchSink {
  void switched(const track::SwitchLine& line) override {
    ++lines;
    violations.at_most(line.woken_at, in_order ? line.time : ~Nanoseconds{0},
                       "woken after it left");
    for (const auto& clock : {line.off, line.ran}) {
      if (clock) longest = std::max(longest, clock->wall_ns());
    }
  }
  Violations violations;
  bool in_order = true;
  std::uint64_t lines = 0;
  Nanoseconds longest = 0;
};

std::uint64_t wall(const track::TaskClock& clock) {
  return clock.wall_ns();
}

}  // namespace

struct EveryTracker::Parts {
  Parts(const stream::EventCatalog& catalog, const track::DropReasons& reasons,
        std::string_view cmdlines, std::string_view kallsyms, std::string_view uname)
      : comms(cmdlines),
        calls_of_packets(uname),
        calls_of_cpus(uname),
        calls_of_switches(uname),
        calls_of_calls(uname),
        symbols(kallsyms),
        listener(devices, comms, flows),
        packets(devices, comms, calls_of_packets, reasons, symbols, flows, listener,
                cli::packet_events(catalog)),
        account(calls_of_cpus),
        pieces(account),
        contexts(comms, pieces),
        interrupts_of_switches(comms),
        switch_times(cli::has_wakeups(catalog), &interrupts_of_switches),
        switches(switch_times, calls_of_switches, {}, &switch_lines),
        interrupts_of_calls(comms),
        call_times(cli::has_wakeups(catalog), &interrupts_of_calls),
        calls(call_times, calls_of_calls),
        events(catalog) {
    packets.also_tell(static_cast<track::LegSink&>(listener));
    packets.also_tell(static_cast<track::RunSink&>(listener));
    packets.subscribe(events);
    const auto also = [&]<class... Events>(auto& tracker) {
      (events.subscribe_if_there<Events>(tracker), ...);
    };
    also.template operator()<TcpProbeWindows, TcpSendReset, TcpReceiveReset>(listener.flows);
    also.template operator()<NetifReceiveSkb, NetDevQueue, NapiPoll, TcpProbeWindows, TcpSendReset,
                             TcpReceiveReset, SchedSwitch, RawSysEnter, RawSysExit>(counts);
    events.subscribe_family<SysEnter>(counts);
    events.subscribe_family<SysExit>(counts);
    polls.subscribe(events);
    contexts.subscribe(events);
    account.watch(contexts);
    account.subscribe(events);
    interrupts_of_switches.subscribe_interrupts(events);
    switches.subscribe(events);
    interrupts_of_calls.subscribe_interrupts(events);
    call_times.subscribe(events);
    calls.subscribe(events);
  }

  // Of two events for one call some trackers look at the first only.
  bool all_see_the_same() const { return !counts.raw_calls; }
  void check_packets(const Ends& ends);
  void check_stages(const track::DirectionStats& direction, Nanoseconds span);
  void check_hunks();
  void check_cpus(const Ends& ends);
  void check_tasks(const Ends& ends);
  void check_task(const track::SchedTask& task, const Ends& ends);
  void check_calls();

  track::Devices devices;
  track::Comms comms;
  track::SyscallNames calls_of_packets, calls_of_cpus, calls_of_switches, calls_of_calls;
  Symbols symbols;
  track::Flows flows;
  Counts counts;
  PacketListener listener;
  track::PacketTracker packets;
  track::PollStats polls;
  track::CpuAccount account;
  Pieces pieces;
  track::CpuContexts contexts;
  SwitchListener switch_lines;
  track::CpuContexts interrupts_of_switches;
  track::TaskTimes switch_times;
  track::SchedStats switches;
  track::CpuContexts interrupts_of_calls;
  track::TaskTimes call_times;
  track::SyscallStats calls;
  stream::Dispatcher events;
  Violations violations;
};

EveryTracker::EveryTracker(const stream::EventCatalog& catalog, const track::DropReasons& reasons,
                           std::string_view cmdlines, std::string_view kallsyms,
                           std::string_view uname, bool in_order)
    : parts_(std::make_unique<Parts>(catalog, reasons, cmdlines, kallsyms, uname)) {
  parts_->listener.in_order = in_order;
  parts_->switch_lines.in_order = in_order;
}

EveryTracker::~EveryTracker() = default;

stream::Dispatcher& EveryTracker::events() {
  return parts_->events;
}

std::vector<std::string> EveryTracker::finish(const Ends& ends) {
  Parts& all = *parts_;
  all.listener.finishing = true;
  all.packets.finish();
  all.listener.flows.finish();
  all.listener.hunks.finish();
  all.contexts.finish(ends.first, ends.last, ends.cpus);
  all.switches.finish(ends.last);
  all.call_times.finish(ends.last);
  all.calls.finish();
  all.check_packets(ends);
  all.check_hunks();
  all.check_cpus(ends);
  all.check_tasks(ends);
  all.check_calls();
  std::vector<std::string> found = all.violations.take();
  for (Violations* others : {&all.listener.violations, &all.switch_lines.violations}) {
    for (std::string& text : others->take()) found.push_back(std::move(text));
  }
  return found;
}

void EveryTracker::Parts::check_packets(const Ends& ends) {
  const track::LegCounters& counters = packets.counters();
  violations.equal(listener.packets, counters.packets, "packets told and counted");
  violations.equal(listener.legs, counters.legs, "legs told and counted");
  violations.equal(listener.legs_of_packets, counters.legs, "legs of packets and counted");
  violations.equal(listener.crossed_loss, counters.crossed_loss, "legs with gaps");
  if (!listener.ids.empty()) {
    violations.equal(*listener.ids.begin(), 1, "the first packet's number");
    violations.equal(*listener.ids.rbegin(), listener.ids.size(), "the last packet's number");
  }
  const track::LegStats& stats = listener.stats;
  violations.equal(stats.rx().births + stats.tx().births, counters.legs, "legs by direction");
  for (const track::DirectionStats* direction : {&stats.rx(), &stats.tx()}) {
    violations.equal(sum(direction->outcomes), direction->births, "outcomes and births");
    violations.equal(sum(direction->causes),
                     direction->outcomes[static_cast<std::size_t>(Outcome::unknown)],
                     "causes and unknown ends");
    violations.equal(sum(direction->drops, [](const auto& drop) { return drop.second; }),
                     direction->outcomes[static_cast<std::size_t>(Outcome::dropped)],
                     "drops and dropped legs");
    check_stages(*direction, ends.last - ends.first);
  }
  const auto grouped = [](const auto& group) { return group.second.packets; };
  violations.equal(sum(listener.drops.groups(), grouped), listener.dropped, "groups of drops");
  violations.equal(listener.drops.packets(), counters.packets, "packets of drops");
  const auto& rows = listener.flows.rows();
  violations.at_most(
      sum(rows, [](const auto& row) { return row.received.packets + row.sent.packets; }),
      listener.legs_of_flows, "packets of flows");
  violations.equal(sum(rows, [](const auto& row) { return row.cwnd.histogram().count(); }),
                   counts.probes, "tcp_probe by flow");
  violations.equal(sum(rows, [](const auto& row) { return row.resets_sent; }), counts.resets_sent,
                   "resets sent by flow");
  violations.equal(sum(rows, [](const auto& row) { return row.resets_received; }),
                   counts.resets_received, "resets received by flow");
  violations.at_most(sum(stats.cpu_ways().ways(), [](const auto& way) { return way.packets; }),
                     stats.rx().births, "ways over CPUs");
  const track::WakeupCounts& wakeups = stats.wakeups().counts();
  violations.equal(wakeups.delivered,
                   stats.rx().outcomes[static_cast<std::size_t>(Outcome::delivered)],
                   "delivered legs");
  violations.at_most(wakeups.after_wakeup, wakeups.delivered, "delivered after a wakeup");
  violations.at_most(wakeups.wakeups, wakeups.after_wakeup, "wakeups");
  for (const track::OffloadCounts& device : stats.offloads().devices()) {
    violations.at_most(device.merged, device.into_gro, "merged by GRO");
  }
  const auto packets_of = [](const track::DeviceCount& count) { return count.packets; };
  violations.equal(
      sum(packets.traffic().rx(), packets_of) + packets.traffic().count_received_again(),
      counts.receives, "received by device");
  violations.equal(sum(packets.traffic().tx(), packets_of), counts.queues, "queued by device");
  if (listener.in_order) listener.times.check(ends.first, ends.last, listener.violations);
}

void EveryTracker::Parts::check_stages(const track::DirectionStats& direction, Nanoseconds span) {
  violations.at_most(direction.crossed_loss, direction.births, "legs with gaps");
  for (const track::IntervalTable& device : direction.stages.devices()) {
    for (const auto& interval : device.intervals()) {
      violations.at_most(interval->durations.max(), span,
                         fmt::format("{} to {}", name(interval->from), name(interval->to)));
      violations.at_most(interval->durations.count(), direction.births, "intervals of legs");
    }
  }
  Nanoseconds before = ~Nanoseconds{0};
  for (const track::SlowLeg& leg : direction.stages.slowest()) {
    violations.at_most(leg.duration, std::min(span, before), "a slow leg");
    violations.at_most(leg.longest, leg.duration, "the longest part of a slow leg");
    before = leg.duration;
  }
}

void EveryTracker::Parts::check_hunks() {
  const track::HunkCounters& counters = listener.hunks.counters();
  violations.equal(counters.receives, counts.receives, "receives of hunks");
  violations.equal(counters.births + counters.hops, counts.receives, "births and hops of hunks");
  violations.equal(listener.hunk_packets, counters.births, "packets in hunks");
  violations.equal(listener.hunks_told, counters.hunks, "hunks");
  violations.at_most(listener.hunk_polls, counts.polls, "polls in hunks");
  const auto of_device = [](const track::PollCounts& device) { return device.work.count(); };
  violations.equal(sum(polls.devices(), of_device), counts.polls, "polls by device");
  for (const track::PollCounts& device : polls.devices()) {
    violations.at_most(device.in_softirq, device.work.count(), "polls in the softirq");
    violations.at_most(device.empty, device.work.count(), "empty polls");
    violations.at_most(device.whole_budget, device.work.count(), "polls that used all");
  }
  const auto in_softirq = [](const track::PollCounts& device) { return device.in_softirq; };
  violations.at_most(polls.polls_per_run().total(), sum(polls.devices(), in_softirq),
                     "polls of runs");
}

void EveryTracker::Parts::check_cpus(const Ends& ends) {
  violations.equal(sum(account.cpus(), [](const auto& cpu) { return cpu.rx_packets; }),
                   counts.receives, "received by CPU");
  violations.equal(contexts.counts().switches, counts.switches, "switches by CPU");
  if (!listener.in_order) return;
  const Nanoseconds span = ends.last - ends.first;
  pieces.check(ends, violations);
  for (const CpuId cpu : ends.cpus) {
    if (cpu >= account.cpus().size()) {
      violations.equal(span, 0, "a CPU has no account");
      continue;
    }
    const track::CpuTimes& times = account.cpus()[cpu];
    violations.equal(times.wall(), span, "the parts of a CPU's time");
    const auto each = [&](const auto& parts) {
      for (const Nanoseconds part : parts) violations.at_most(part, span, "a part of a CPU's time");
    };
    each(times.plain), each(times.softirq), each(times.ksoftirqd_softirq), each(times.hardirq);
    each(times.calls);
    violations.at_most(contexts.interrupt_ns(cpu, ends.last), span, "interrupts of a CPU");
    if (!all_see_the_same()) continue;
    violations.equal(interrupts_of_switches.interrupt_ns(cpu, ends.last),
                     contexts.interrupt_ns(cpu, ends.last), "interrupts beside switches");
    violations.equal(interrupts_of_calls.interrupt_ns(cpu, ends.last),
                     contexts.interrupt_ns(cpu, ends.last), "interrupts beside calls");
  }
}

void EveryTracker::Parts::check_tasks(const Ends& ends) {
  violations.equal(switch_lines.lines, counts.task_switches, "lines of switches");
  if (listener.in_order) {
    violations.at_most(switch_lines.longest, ends.last - ends.first, "a line's time");
  }
  violations.equal(switches.tasks().size(), switch_times.lives().size(), "tasks and lives");
  Nanoseconds run = 0;
  for (const track::SchedTask& task : switches.tasks()) {
    check_task(task, ends);
    run += task.life->clock.run_ns;
  }
  violations.equal(sum(switch_times.lives(), [](const auto& life) { return life.switches; }),
                   counts.switches, "switches by task");
  if (listener.in_order) {
    violations.at_most(run, (ends.last - ends.first) * ends.cpus.size(), "time on all CPUs");
  }
  if (!all_see_the_same()) return;
  const auto& one = switch_times.lives();
  const auto& other = call_times.lives();
  violations.equal(one.size(), other.size(), "tasks of switches and of calls");
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    violations.require(one[i].pid == other[i].pid && one[i].clock == other[i].clock,
                       fmt::format("task {} has two clocks", one[i].pid));
  }
}

void EveryTracker::Parts::check_task(const track::SchedTask& task, const Ends& ends) {
  const track::TaskLife& life = *task.life;
  const track::TaskClock& clock = life.clock;
  violations.equal(task.voluntary + task.involuntary, life.pid == 0 ? 0 : life.switches,
                   "switches of a task");
  const auto second = [](const auto& entry) { return entry.second; };
  violations.equal(sum(task.takers, second), task.involuntary, "takers");
  violations.equal(sum(task.wakers, second), task.woken, "wakers");
  violations.equal(sum(task.waits, [](const auto& wait) { return wait.second.switches; }),
                   task.voluntary, "places of waits");
  if (!listener.in_order) return;
  violations.at_most(ends.first, life.begin, "a task begins before the first event");
  violations.at_most(life.end, ends.last, "a task ends after the last event");
  violations.equal(wall(clock), life.end - life.begin, "parts of a task's life");
  violations.at_most(clock.stolen_ns, clock.run_ns, "stolen from a task");
  violations.at_most(clock.doubtful_ns, wall(clock), "doubtful time of a task");
  violations.at_most(task.run.histogram().total(), clock.run_ns, "runs of a task");
  violations.at_most(task.stolen.histogram().total(), clock.stolen_ns, "thefts of a task");
  violations.at_most(task.runnable.histogram().total(), clock.runnable_ns, "queueing of a task");
  violations.at_most(task.blocked.histogram().total(), clock.blocked_ns, "sleeps of a task");
  violations.equal(sum(task.waits, [](const auto& wait) { return wait.second.blocked_ns; }),
                   task.blocked.histogram().total(), "sleeps by place");
  violations.equal(task.worst_wait, task.runnable.histogram().max(), "the worst wait");
  violations.at_most(task.worst_wait_at, ends.last, "when the worst wait was");
}

void EveryTracker::Parts::check_calls() {
  std::uint64_t entered = 0, returned = 0;
  for (const track::TaskCalls* task : calls.tasks()) {
    Nanoseconds in_calls = 0;
    for (const track::CallStats* call : task->calls) {
      violations.equal(call->wall.histogram().count() + call->in_gaps, call->count,
                       "calls and their times");
      violations.equal(call->wall.histogram().total(), wall(call->time), "parts of calls");
      violations.at_most(call->errors, call->count, "errors of calls");
      violations.at_most(call->restarted, call->errors, "restarted calls");
      violations.at_most(call->time.doubtful_ns, wall(call->time), "doubtful time of calls");
      violations.at_most(call->moving + call->errors, call->count, "calls that moved bytes");
      violations.equal(sum(call->sizes.counts()), call->moving, "sizes of calls");
      violations.at_most(call->readying + call->timeouts + call->empty + call->errors, call->count,
                         "calls that waited");
      violations.at_most(call->time.stolen_ns, call->time.run_ns, "stolen from calls");
      in_calls += wall(call->time) + call->in_gaps_ns;
      entered += call->count + call->return_missing + call->open_at_end + call->never_returned;
      returned += call->count + call->entry_missing + call->open_at_start;
    }
    if (listener.in_order) {
      violations.at_most(in_calls, task->life->end - task->life->begin, "a task's time in calls");
    }
  }
  if (counts.raw_calls) return;
  violations.equal(entered, counts.enters, "calls entered");
  violations.equal(returned + calls.returns_of_children(), counts.exits, "calls returned");
}

}  // namespace skbtrail::test
