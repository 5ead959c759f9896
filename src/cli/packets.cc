// skbtrail packets: one line per packet.
#include "report/packets.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <queue>
#include <set>

#include "base/duration.h"
#include "base/error.h"
#include "cli/line_order.h"
#include "cli/packet_queue.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/verb.h"
#include "report/loss_line.h"

namespace skbtrail::cli {
namespace {

using track::Stage;

Arguments make_arguments() {
  Arguments arguments(
      {"packets", "[FILE]",
       "One line per packet in the order in which they began: where it went, how long each\n"
       "part of its way took, what became of it, who read or sent it.",
       "  # the ten slowest of what nginx read, with a bar for every stage\n"
       "  skbtrail packets --task nginx --top 10 --waterfall web.dat\n\n"
       "  # everything that waited longer than 200 us for its reader to run\n"
       "  skbtrail packets --stage ready:run --slower 200us web.dat"});
  add_input_options(arguments);
  arguments.flag("wide,w", "a column for every stage, the flow, the call, the skb");
  arguments.flag("waterfall", "a bar for every stage of each packet");
  arguments.value("slower", "DURATION", "only packets that took at least so long: 200us, 1.5ms");
  arguments.value("top", "N", "only the N slowest, slowest first");
  arguments.value("stage", "A:B",
                  "rank by the time from stage A to B; skbtrail-stages(7) has them");
  arguments.values("dev,d", "DEV", "only packets that passed this device");
  arguments.values("task", "COMM|PID", "only packets that this task sent or read");
  arguments.values("outcome", "NAME", "only packets with this outcome: delivered, dropped, ...");
  arguments.values("flow", "TEXT", "only packets of flows whose name contains this: 10.0.0.2:80");
  arguments.values("on-cpu", "CPU", "only packets that were born on this CPU");
  arguments.positional("file", 1);
  return arguments;
}

struct Interval {
  Stage from{}, to{};
};

struct Options {
  Input input;
  bool wide = false;
  bool waterfall = false;
  std::optional<Nanoseconds> slower;
  std::optional<std::uint64_t> top;
  std::optional<Interval> interval;
  std::vector<std::string> devices, tasks, flows;
  std::set<track::Outcome> outcomes;
  std::set<CpuId> cpus;
};

std::optional<Stage> find_stage(std::string_view text) {
  const auto at = std::find(track::kStageNames.begin(), track::kStageNames.end(), text);
  if (at == track::kStageNames.end()) return std::nullopt;
  return static_cast<Stage>(at - track::kStageNames.begin());
}

template <class Names>
std::string joined(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Interval> parse_interval(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto from = find_stage(text.substr(0, colon));
  const auto to = colon == std::string::npos ? std::nullopt : find_stage(text.substr(colon + 1));
  if (!from || !to) {
    return usage_error("packets",
                       fmt::format("--stage wants two stages, A:B, not '{}'; there are {}", text,
                                   joined(track::kStageNames)));
  }
  return Interval{*from, *to};
}

Result<track::Outcome> parse_outcome(const std::string& text) {
  const auto at = std::find(track::kOutcomeNames.begin(), track::kOutcomeNames.end(), text);
  if (at == track::kOutcomeNames.end()) {
    return usage_error("packets", fmt::format("there is no outcome '{}'; there are {}", text,
                                              joined(track::kOutcomeNames)));
  }
  return static_cast<track::Outcome>(at - track::kOutcomeNames.begin());
}

Result<Options> read_options(const Parsed& parsed) {
  Options options;
  options.wide = parsed.has("wide");
  options.waterfall = parsed.has("waterfall");
  if (const auto text = parsed.text("slower")) {
    options.slower = parse_duration(*text);
    if (!options.slower) {
      return usage_error("packets",
                         fmt::format("--slower wants a duration like 200us, not '{}'", *text));
    }
  }
  auto top = parsed.number("top", 1, 1'000'000);
  if (!top) return pass(top);
  options.top = *top;
  if (const auto text = parsed.text("stage")) {
    auto interval = parse_interval(*text);
    if (!interval) return pass(interval);
    options.interval = *interval;
  }
  for (const std::string& text : parsed.all("outcome")) {
    auto outcome = parse_outcome(text);
    if (!outcome) return pass(outcome);
    options.outcomes.insert(*outcome);
  }
  for (const std::string& text : parsed.all("on-cpu")) {
    CpuId cpu = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
    if (error != std::errc{} || *end != '\0') {
      return usage_error("packets", fmt::format("--on-cpu wants a number, not '{}'", text));
    }
    options.cpus.insert(cpu);
  }
  options.devices = parsed.all("dev");
  options.tasks = parsed.all("task");
  options.flows = parsed.all("flow");
  auto input = read_input_options(parsed, "packets", parsed.all("file"));
  if (!input) return pass(input);
  options.input = std::move(*input);
  return options;
}

// Which packets are wanted.
class Choice {
 public:
  explicit Choice(const Options& options) : options_(options) {}

  // How long the packet, or the interval asked for, took, where that matters; nothing when it is
  // not wanted.
  std::optional<Nanoseconds> operator()(const track::Packet& packet,
                                        const report::PacketNames& names) {
    if (!fits(packet, names)) return std::nullopt;
    if (!options_.interval && !options_.slower && !options_.top) return 0;
    Nanoseconds from = 0;
    Nanoseconds to = 0;
    if (options_.interval) {
      from = packet.stage(options_.interval->from);
      to = packet.stage(options_.interval->to);
      if (from == 0 || to == 0 || to < from) return std::nullopt;
      ++with_interval_;
    } else {
      from = packet.begin();
      to = packet.end();
    }
    const Nanoseconds took = to - from;
    if (options_.slower && took < *options_.slower) return std::nullopt;
    return took;
  }
  std::uint64_t with_interval() const { return with_interval_; }

 private:
  template <class Fits>
  static bool any_leg(const track::Packet& packet, Fits fits) {
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      if (fits(*leg)) return true;
    }
    return false;
  }
  template <class List, class Fits>
  static bool any_of(const List& list, Fits fits) {
    return list.empty() || std::any_of(list.begin(), list.end(), fits);
  }

  bool fits(const track::Packet& packet, const report::PacketNames& names) const {
    if (!options_.outcomes.empty() && !options_.outcomes.contains(packet.outcome())) return false;
    if (!options_.cpus.empty() && !options_.cpus.contains(packet.first->cpu)) return false;
    const bool right_device = any_of(options_.devices, [&](const std::string& device) {
      return any_leg(
          packet, [&](const track::Leg& leg) { return names.devices.name(leg.device) == device; });
    });
    const bool right_task = any_of(options_.tasks, [&](const std::string& task) {
      return any_leg(packet, [&](const track::Leg& leg) {
        return leg.pid != 0 &&
               (names.comms.name(leg.pid) == task || std::to_string(leg.pid) == task);
      });
    });
    const bool right_flow = any_of(options_.flows, [&](const std::string& flow) {
      return report::flow(packet, names).find(flow) != std::string::npos;
    });
    return right_device && right_task && right_flow;
  }

  const Options& options_;
  std::uint64_t with_interval_ = 0;
};

// Packets end in another order than they came, and came in another order than they began.
class Printer : public track::PacketSink {
 public:
  Printer(const Options& options, TextWriter& out)
      : options_(options), choice_(options), out_(out), by_time_(out), order_(by_time_) {}

  // Before the first packet.
  void use(const report::PacketNames& names) { names_ = &names; }

  void packet(const track::Packet& packet) override {
    ++packets_;
    const auto took = choice_(packet, *names_);
    if (took) ++printed_;
    if (options_.top) {
      if (took) keep(packet, *took);
      return;
    }
    order_.put(packet.id, packet.begin(), took ? lines(packet) : std::string_view());
  }

  // After the last packet.
  void finish() {
    order_.finish();
    by_time_.finish();
    std::sort(slowest_.begin(), slowest_.end(), slower);
    for (const Slow& slow : slowest_) out_.write(slow.lines);
  }

  std::uint64_t packets() const { return packets_; }
  // That have both stages of --stage, in this order.
  std::uint64_t with_interval() const { return choice_.with_interval(); }
  std::uint64_t printed() const { return options_.top ? slowest_.size() : printed_; }

 private:
  struct Slow {
    Nanoseconds took = 0;
    std::uint64_t id = 0;
    std::string lines;
  };

  // The slowest first; of equals the older.
  static bool slower(const Slow& a, const Slow& b) {
    return a.took != b.took ? a.took > b.took : a.id < b.id;
  }

  void keep(const track::Packet& packet, Nanoseconds took) {
    if (slowest_.size() >= *options_.top) {
      if (!slower({took, packet.id, {}}, slowest_.front())) return;
      std::pop_heap(slowest_.begin(), slowest_.end(), slower);
      slowest_.pop_back();
    }
    slowest_.push_back({took, packet.id, std::string(lines(packet))});
    std::push_heap(slowest_.begin(), slowest_.end(), slower);
  }

  // Until the next call.
  std::string_view lines(const track::Packet& packet) {
    text_.clear();
    if (options_.input.format == Format::json) {
      report::write_packet_json(packet, *names_, text_);
    } else {
      report::write_packet_text(
          packet, *names_, options_.wide ? report::PacketWidth::wide : report::PacketWidth::narrow,
          text_);
      if (options_.waterfall) report::write_waterfall(packet, *names_, text_);
    }
    return {text_.data(), text_.size()};
  }

  const Options& options_;
  const report::PacketNames* names_ = nullptr;
  Choice choice_;
  TextWriter& out_;
  TimeOrder by_time_;
  LineOrder order_;
  report::Lines text_;
  std::vector<Slow> slowest_;  // a heap, the fastest of them first
  std::uint64_t packets_ = 0;
  std::uint64_t printed_ = 0;
};

// A stage that nobody saw is an event that was not recorded, or that this kernel does not have.
void explain_nothing(const Options& options, const track::CaptureFacts& facts, TextWriter& out) {
  const auto& [from, to] = *options.interval;
  out.print("# no packet chosen has the stages {} and {}, in this order", name(from), name(to));
  const bool ready = from == Stage::ready || to == Stage::ready;
  if (ready && facts.lacks("sock:sk_data_ready")) {
    out.write(": this capture has no\n# sock:sk_data_ready (Linux 6.3); --stage proto:run is near");
  }
  out.write("\n");
}

Result<int> run_packets(const Options& options) {
  auto trace = open_capture(options.input);
  if (!trace) return pass(trace);
  TextWriter out(STDOUT_FILENO);
  const bool text = options.input.format == Format::text;
  if (text) {
    report::write_packets_header(
        options.wide ? report::PacketWidth::wide : report::PacketWidth::narrow, out);
  }
  Printer printer(options, out);
  PacketQueue queue(printer);
  PacketWalk walk(*trace, queue);
  printer.use(walk.names());
  const track::CaptureFacts facts = walk.run();
  queue.finish();
  printer.finish();
  if (text) {
    if (options.interval && printer.with_interval() == 0) explain_nothing(options, facts, out);
    const track::PacketTracker& tracker = walk.tracker();
    report::write_packets_summary(
        facts,
        {printer.packets(), printer.printed(), tracker.counters(), tracker.send_counters(),
         tracker.delivery_counters(), tracker.unknown_ends()},
        out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  if (!text) report::tell_what_lacks(facts);
  return exit_status(facts, options.input.strict);
}

}  // namespace

int packets(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_packets);
}

}  // namespace skbtrail::cli
