// skbtrail packets: one line per packet.
#include "report/packets.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <queue>
#include <set>

#include "base/duration.h"
#include "base/error.h"
#include "base/human.h"
#include "cli/line_order.h"
#include "cli/no_match.h"
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
  arguments.value("top", "N", "only the N slowest, slowest first; 0: all");
  arguments.value("stage", "A:B",
                  "rank by the time from stage A to B; skbtrail-stages(7) has them");
  arguments.values("dev,d", "DEV", "only packets that passed this device");
  arguments.values("task", "COMM|PID|COMM-PID", "only packets that this task sent or read");
  arguments.values("outcome", "NAME", "only packets with this outcome: delivered, dropped, ...");
  arguments.values("flow", "TEXT", "only packets of flows whose name contains this: 10.0.0.2:80");
  arguments.values("on-cpu", "CPU", "only packets that were born on this CPU");
  arguments.values("id", "N[,N...]", "only these packets, by their numbers in report or JSON");
  arguments.positional("file", 1);
  return arguments;
}

struct Options {
  Input input;
  report::PacketColumns columns;
  bool waterfall = false;
  std::optional<Nanoseconds> slower;
  std::optional<std::uint64_t> top;
  std::vector<std::string> devices, tasks, flows;
  std::set<track::Outcome> outcomes;
  std::set<CpuId> cpus;
  std::set<std::uint64_t> ids;
  std::string chosen_by;  // "--task, --slower": the options that choose packets
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

Result<report::StageInterval> parse_interval(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto from = find_stage(text.substr(0, colon));
  const auto to = colon == std::string::npos ? std::nullopt : find_stage(text.substr(colon + 1));
  if (!from || !to) {
    return usage_error("packets",
                       fmt::format("--stage wants two stages, A:B, not '{}'; there are {}", text,
                                   joined(track::kStageNames)));
  }
  return report::StageInterval{*from, *to};
}

Result<track::Outcome> parse_outcome(const std::string& text) {
  const auto at = std::find(track::kOutcomeNames.begin(), track::kOutcomeNames.end(), text);
  if (at == track::kOutcomeNames.end()) {
    return usage_error("packets", fmt::format("there is no outcome '{}'; there are {}", text,
                                              joined(track::kOutcomeNames)));
  }
  return static_cast<track::Outcome>(at - track::kOutcomeNames.begin());
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// "17,4711"
Result<void> add_ids(std::string_view text, std::set<std::uint64_t>& ids) {
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const auto id = parse_number<std::uint64_t>(rest.substr(0, comma));
    if (!id)
      return usage_error("packets", fmt::format("--id wants numbers, N[,N...], not '{}'", text));
    ids.insert(*id);
    if (comma == std::string_view::npos) return {};
    rest.remove_prefix(comma + 1);
  }
}

Result<void> read_choice(const Parsed& parsed, Options& options) {
  for (const std::string& text : parsed.all("outcome")) {
    auto outcome = parse_outcome(text);
    if (!outcome) return pass(outcome);
    options.outcomes.insert(*outcome);
  }
  for (const std::string& text : parsed.all("on-cpu")) {
    const auto cpu = parse_number<CpuId>(text);
    if (!cpu) {
      return usage_error("packets", fmt::format("--on-cpu wants a number, not '{}'", text));
    }
    options.cpus.insert(*cpu);
  }
  for (const std::string& text : parsed.all("id")) {
    if (auto added = add_ids(text, options.ids); !added) return added;
  }
  options.devices = parsed.all("dev");
  options.tasks = parsed.all("task");
  options.flows = parsed.all("flow");
  for (const char* option : {"id", "dev", "task", "outcome", "flow", "on-cpu", "slower", "stage"}) {
    if (!parsed.has(option)) continue;
    options.chosen_by += fmt::format("{}--{}", options.chosen_by.empty() ? "" : ", ", option);
  }
  return {};
}

Result<Options> read_options(const Parsed& parsed) {
  Options options;
  if (parsed.has("wide")) options.columns.width = report::PacketWidth::wide;
  options.waterfall = parsed.has("waterfall");
  if (const auto text = parsed.text("slower")) {
    options.slower = parse_duration(*text);
    if (!options.slower) {
      return usage_error("packets",
                         fmt::format("--slower wants a duration like 200us, not '{}'", *text));
    }
  }
  auto top = parsed.number("top", 0, 1'000'000);
  if (!top) return pass(top);
  options.top = *top == 0 ? std::numeric_limits<std::uint64_t>::max() : *top;
  if (const auto text = parsed.text("stage")) {
    auto interval = parse_interval(*text);
    if (!interval) return pass(interval);
    options.columns.interval = *interval;
  }
  if (auto choice = read_choice(parsed, options); !choice) return pass(choice);
  auto input = read_input_options(parsed, "packets", parsed.all("file"));
  if (!input) return pass(input);
  options.input = std::move(*input);
  if (options.input.format == Format::json) {
    auto text_only = parsed.refuse({"wide", "waterfall"}, "--format json");
    if (!text_only) return pass(text_only);
  }
  return options;
}

// The values of an option that names something, and which of them any packet had.
struct Named {
  explicit Named(const std::vector<std::string>& texts) : values(texts), seen(texts.size()) {}

  // Whether any of them is in the packet, or none was asked for. Looks at all of them.
  template <class Has>
  bool in(Has has) {
    bool any = values.empty();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!has(values[i])) continue;
      any = seen[i] = true;
    }
    return any;
  }

  const std::vector<std::string>& values;
  std::vector<bool> seen;
};

// Which packets are wanted.
class Choice {
 public:
  explicit Choice(const Options& options)
      : options_(options),
        devices_(options.devices),
        tasks_(options.tasks),
        flows_(options.flows) {}

  // How long the packet, or the interval asked for, took, where that matters; nothing when it is
  // not wanted.
  std::optional<Nanoseconds> operator()(const track::Packet& packet,
                                        const report::PacketNames& names) {
    last_id_ = std::max(last_id_, packet.id);
    if (!fits(packet, names)) return std::nullopt;
    const auto& interval = options_.columns.interval;
    if (!interval && !options_.slower && !options_.top) return 0;
    Nanoseconds took = 0;
    if (interval) {
      const auto between = report::duration(packet, *interval);
      if (!between) return std::nullopt;
      took = *between;
      ++with_interval_;
    } else {
      took = packet.end() - packet.begin();
    }
    if (options_.slower && took < *options_.slower) return std::nullopt;
    return took;
  }
  // That have both stages of --stage, in this order.
  std::uint64_t with_interval() const { return with_interval_; }

  // After the last packet: says of each name and number that no packet has it. Whether there was
  // any.
  bool tell_unmatched(const report::PacketNames& names) const {
    bool any = false;
    const auto tell = [&any](std::string_view option, std::string_view value,
                             std::vector<std::string> known) {
      tell_no_match(option, value, std::move(known));
      any = true;
    };
    each_unseen(devices_, [&](const std::string& device) {
      std::vector<std::string> known;
      for (std::size_t id = 1; id < names.devices.size(); ++id) {
        known.emplace_back(names.devices.name(track::DeviceId{static_cast<std::uint16_t>(id)}));
      }
      tell("dev", device, std::move(known));
    });
    each_unseen(tasks_, [&](const std::string& task) {
      std::vector<std::string> known;
      for (const Pid pid : pids_) known.push_back(shown_task(pid, names));
      tell("task", task, std::move(known));
    });
    each_unseen(flows_, [&](const std::string& flow) {
      std::vector<std::string> known;
      for (track::FlowId id = 1; id < names.flows.size(); ++id) {
        known.push_back(names.flows.name(id, track::LegDirection::rx));
      }
      tell("flow", flow, std::move(known));
    });
    for (const CpuId cpu : options_.cpus) {
      if (cpus_.contains(cpu)) continue;
      std::vector<std::string> known;
      for (const CpuId seen : cpus_) known.push_back(std::to_string(seen));
      tell("on-cpu", std::to_string(cpu), std::move(known));
    }
    for (const std::uint64_t id : options_.ids) {
      if (id > 0 && id <= last_id_) continue;
      tell("id", std::to_string(id), {fmt::format("1 to {}", last_id_)});
    }
    return any;
  }

 private:
  template <class Fits>
  static bool any_leg(const track::Packet& packet, Fits fits) {
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      if (fits(*leg)) return true;
    }
    return false;
  }
  template <class Tell>
  static void each_unseen(const Named& named, Tell tell) {
    for (std::size_t i = 0; i < named.values.size(); ++i) {
      if (!named.seen[i]) tell(named.values[i]);
    }
  }
  // COMM, PID, or COMM-PID.
  static bool names_task(std::string_view text, std::string_view comm, Pid pid) {
    if (text == comm || parse_number<Pid>(text) == pid) return true;
    const std::size_t dash = text.rfind('-');
    return dash != std::string_view::npos && text.substr(0, dash) == comm &&
           parse_number<Pid>(text.substr(dash + 1)) == pid;
  }
  // As the lines have it.
  static std::string shown_task(Pid pid, const report::PacketNames& names) {
    return fmt::format("{}-{}", names.comms.name(pid), pid);
  }

  // Names come first: what is seen does not depend on what else was asked for.
  bool fits(const track::Packet& packet, const report::PacketNames& names) {
    const bool right_device = devices_.in([&](const std::string& device) {
      return any_leg(
          packet, [&](const track::Leg& leg) { return names.devices.name(leg.device) == device; });
    });
    const bool right_task = tasks_.in([&](const std::string& task) {
      return any_leg(packet, [&](const track::Leg& leg) {
        if (leg.pid == 0) return false;
        pids_.insert(leg.pid);
        return names_task(task, names.comms.name(leg.pid), leg.pid);
      });
    });
    const bool right_flow = flows_.in([&](const std::string& flow) {
      return report::flow(packet, names).find(flow) != std::string::npos;
    });
    if (!options_.cpus.empty()) cpus_.insert(packet.first->cpu);
    return right_device && right_task && right_flow &&
           (options_.ids.empty() || options_.ids.contains(packet.id)) &&
           (options_.outcomes.empty() || options_.outcomes.contains(packet.outcome())) &&
           (options_.cpus.empty() || options_.cpus.contains(packet.first->cpu));
  }

  const Options& options_;
  Named devices_, tasks_, flows_;
  std::set<Pid> pids_;    // of packets, where tasks were asked for
  std::set<CpuId> cpus_;  // the same of CPUs
  std::uint64_t last_id_ = 0;
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
  const Choice& choice() const { return choice_; }
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
      report::write_packet_json(packet, *names_, options_.columns.interval, text_);
    } else {
      report::write_packet_text(packet, *names_, options_.columns, text_);
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
std::string why_no_interval(const report::StageInterval& interval,
                            const track::CaptureFacts& facts) {
  const auto& [from, to] = interval;
  std::string text =
      fmt::format("no packet chosen has the stages {} and {}, in this order", name(from), name(to));
  const bool ready = from == Stage::ready || to == Stage::ready;
  if (ready && facts.lacks("sock:sk_data_ready")) {
    text += ": this capture has no sock:sk_data_ready (Linux 6.3); --stage proto:run is near";
  }
  return text;
}

// Nothing was printed, or a name that was asked for is nowhere: why.
void tell_unmatched(const Options& options, const Printer& printer,
                    const report::PacketNames& names, const track::CaptureFacts& facts) {
  const bool told = printer.choice().tell_unmatched(names);
  if (told || printer.printed() > 0 || options.chosen_by.empty()) return;
  if (options.columns.interval && printer.choice().with_interval() == 0) {
    say(fmt::format("skbtrail: {}\n", why_no_interval(*options.columns.interval, facts)));
    return;
  }
  say(fmt::format("skbtrail: none of {} packets fits {}\n", human_count(printer.packets()),
                  options.chosen_by));
}

Result<int> run_packets(const Options& options) {
  auto trace = open_capture(options.input);
  if (!trace) return pass(trace);
  TextWriter out(STDOUT_FILENO);
  const bool text = options.input.format == Format::text;
  if (text) report::write_packets_header(options.columns, out);
  Printer printer(options, out);
  PacketQueue queue(printer);
  PacketWalk walk(*trace, queue);
  printer.use(walk.names());
  const track::CaptureFacts facts = walk.run();
  queue.finish();
  printer.finish();
  if (text) {
    const track::PacketTracker& tracker = walk.tracker();
    report::write_packets_summary(
        facts,
        {printer.packets(), printer.printed(), tracker.counters(), tracker.send_counters(),
         tracker.delivery_counters(), tracker.unknown_ends(), tracker.unseen_drops().packets()},
        out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  tell_unmatched(options, printer, walk.names(), facts);
  if (!text) report::tell_what_lacks(facts);
  return exit_status(facts, options.input.strict);
}

}  // namespace

int packets(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_packets);
}

}  // namespace skbtrail::cli
