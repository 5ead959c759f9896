// skbtrail netdev-times: the familiar receive trees and transmit chart.
#include "report/netdev_times.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cli/no_match.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/verb.h"
#include "report/loss_line.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"netdev-times", "[rx] [tx] [FILE]",
       "A tree for every run of NET_RX that received or polled, and a chart of every\n"
       "packet sent, as perf's script of that name prints them. Both without a word.",
       "  skbtrail netdev-times\n"
       "  skbtrail netdev-times rx --dev eth0 -i web.dat | less"});
  add_input_options(arguments);
  arguments.values("dev,d", "DEV",
                   "only hunks with packets or polls of this device, only its transmits");
  arguments.positional("word", 3);
  return arguments;
}

struct Options {
  Input input;
  bool rx = false;
  bool tx = false;
  std::vector<std::string> devices;
};

Result<Options> read_options(const Parsed& parsed) {
  Options options;
  std::vector<std::string> files;
  for (const std::string& word : parsed.all("word")) {
    if (word == "rx") {
      options.rx = true;
    } else if (word == "tx") {
      options.tx = true;
    } else {
      files.push_back(word);
    }
  }
  if (files.size() > 1) {
    return usage_error("netdev-times", fmt::format("'{}' is neither rx nor tx, and there is "
                                                   "a capture already: {}",
                                                   files[1], files[0]));
  }
  if (!options.rx && !options.tx) options.rx = options.tx = true;
  options.devices = parsed.all("dev");
  auto input = read_input_options(parsed, "netdev-times", files);
  if (!input) return pass(input);
  options.input = std::move(*input);
  return options;
}

// Chooses the devices to print. Empty: all.
class DeviceFilter {
 public:
  DeviceFilter(const std::vector<std::string>& wanted, const track::Devices& devices)
      : wanted_(wanted.begin(), wanted.end()), devices_(devices) {}

  bool operator()(track::DeviceId device) const {
    return wanted_.empty() || wanted_.contains(devices_.name(device));
  }
  bool operator()(const track::ReceiveHunk& hunk) const {
    const auto chosen = [this](const auto& item) { return (*this)(item.device); };
    return wanted_.empty() || std::any_of(hunk.packets.begin(), hunk.packets.end(), chosen) ||
           std::any_of(hunk.polls.begin(), hunk.polls.end(), chosen);
  }

 private:
  std::set<std::string, std::less<>> wanted_;
  const track::Devices& devices_;
};

// Writes the elements of a JSON array, or the lines of a text, as they come.
class ElementWriter {
 public:
  ElementWriter(TextWriter& out, Format format) : out_(out), json_(format == Format::json) {}

  bool json() const { return json_; }
  TextWriter& next() {
    if (json_) out_.write(first_ ? "\n" : ",\n");
    first_ = false;
    return out_;
  }

 private:
  TextWriter& out_;
  bool json_;
  bool first_ = true;
};

class HunkPrinter : public track::HunkSink {
 public:
  HunkPrinter(ElementWriter writer, const report::PacketNames& names, DeviceFilter filter)
      : writer_(writer), names_(names), filter_(std::move(filter)) {}

  void hunk(const track::ReceiveHunk& hunk) override {
    if (!filter_(hunk)) return;
    ++printed_;
    TextWriter& out = writer_.next();
    if (writer_.json()) {
      report::write_hunk_json(hunk, names_, out);
    } else {
      report::write_hunk_text(hunk, names_, out);
    }
  }

  std::uint64_t printed() const { return printed_; }

 private:
  ElementWriter writer_;
  const report::PacketNames& names_;
  DeviceFilter filter_;
  std::uint64_t printed_ = 0;
};

class TransmitPrinter : public track::LegSink {
 public:
  TransmitPrinter(ElementWriter writer, const report::PacketNames& names, DeviceFilter filter)
      : writer_(writer), names_(names), filter_(std::move(filter)) {}

  void leg_ended(const track::Leg& leg) override {
    if (leg.direction != track::LegDirection::tx) return;
    ++totals_.births;
    totals_.hops += leg.hops;
    if (leg.crossed_loss) ++totals_.crossed_loss;
    if (!filter_(leg.device)) return;
    ++totals_.printed;
    TextWriter& out = writer_.next();
    if (writer_.json()) {
      report::write_transmit_json(leg, names_, out);
    } else {
      report::write_transmit_text(leg, names_, out);
    }
  }

  const report::TransmitTotals& totals() const { return totals_; }

 private:
  ElementWriter writer_;
  const report::PacketNames& names_;
  DeviceFilter filter_;
  report::TransmitTotals totals_;
};

// Trees and chart are two walks over the trace: each is printed while it is read, in bounded
// memory.
class NetdevTimes {
 public:
  NetdevTimes(stream::Trace& trace, const Options& options, TextWriter& out)
      : trace_(trace), options_(options), out_(out) {}

  track::CaptureFacts print_receives() {
    NoPackets none;
    PacketWalk walk(trace_, none);
    HunkPrinter printer(elements(), walk.names(), {options_.devices, walk.devices()});
    track::ReceiveHunks hunks(walk.devices(), walk.names().comms, printer);
    walk.also_tell<track::RunSink>(hunks);
    walk.also_tell<track::LegSink>(hunks);
    track::CaptureFacts facts = walk.run();
    hunks.finish();
    note_devices(walk.devices());
    const track::DeliveryCounters& delivery = walk.tracker().delivery_counters();
    rx_ = {hunks.counters(), printer.printed(),
           delivery.unmatched_copies + delivery.unmatched_datagrams};
    return facts;
  }

  track::CaptureFacts print_transmits() {
    NoPackets none;
    PacketWalk walk(trace_, none);
    if (options_.input.format == Format::text) report::write_transmit_header(out_);
    TransmitPrinter printer(elements(), walk.names(), {options_.devices, walk.devices()});
    walk.also_tell<track::LegSink>(printer);
    track::CaptureFacts facts = walk.run();
    note_devices(walk.devices());
    tx_ = printer.totals();
    tx_.send = walk.tracker().send_counters();
    return facts;
  }

  // After either walk: which of these devices no event named.
  void note_devices(const track::Devices& devices) {
    known_.clear();
    for (std::size_t id = 1; id < devices.size(); ++id) {
      known_.emplace_back(devices.name(track::DeviceId{static_cast<std::uint16_t>(id)}));
    }
  }
  void tell_unmatched() const {
    for (const std::string& device : options_.devices) {
      if (std::find(known_.begin(), known_.end(), device) == known_.end()) {
        tell_no_match("dev", device, known_);
      }
    }
  }

  const report::ReceiveTotals& rx() const { return rx_; }
  const report::TransmitTotals& tx() const { return tx_; }

 private:
  ElementWriter elements() { return {out_, options_.input.format}; }

  stream::Trace& trace_;
  const Options& options_;
  TextWriter& out_;
  report::ReceiveTotals rx_;
  report::TransmitTotals tx_;
  std::vector<std::string> known_;  // devices
};

void print_text(const Options& options, NetdevTimes& times, TextWriter& out,
                track::CaptureFacts& facts) {
  if (options.rx) facts = times.print_receives();
  if (options.tx) facts = times.print_transmits();
  if (options.rx) report::write_rx_summary(times.rx(), out);
  if (options.tx) report::write_tx_summary(times.tx(), out);
  report::write_loss_line(facts, out);
}

void print_json(const Options& options, NetdevTimes& times, TextWriter& out,
                track::CaptureFacts& facts) {
  out.write("{\"rx\":[");
  if (options.rx) facts = times.print_receives();
  out.write("],\n\"tx\":[");
  if (options.tx) facts = times.print_transmits();
  out.write("],\n\"summary\":");
  report::write_summary_json(times.rx(), times.tx(), facts, out);
  out.write("}\n");
}

Result<int> run_netdev_times(const Options& options) {
  auto trace = open_capture(options.input);
  if (!trace) return pass(trace);
  TextWriter out(STDOUT_FILENO);
  NetdevTimes times(*trace, options, out);
  track::CaptureFacts facts;
  if (options.input.format == Format::json) {
    print_json(options, times, out, facts);
  } else {
    print_text(options, times, out, facts);
  }
  if (auto written = out.flush(); !written) return pass(written);
  times.tell_unmatched();
  return exit_status(facts, options.input.strict);
}

}  // namespace

int netdev_times(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_netdev_times);
}

}  // namespace skbtrail::cli
