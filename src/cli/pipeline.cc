#include "cli/pipeline.h"

#include <algorithm>
#include <charconv>

#include "cli/exit_status.h"

namespace skbtrail::cli {
namespace {

// "CPU: 0" or "overrun: 12" -> 0, 12 when the line starts with the key.
bool stat_value(std::string_view line, std::string_view key, std::uint64_t& value) {
  if (!line.starts_with(key)) return false;
  line.remove_prefix(key.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return std::from_chars(line.data(), line.data() + line.size(), value).ec == std::errc{};
}

// per_cpu/cpuN/stats as trace-cmd and we store it, "CPU: N" in front.
track::CpuLossCounters parse_stats(std::string_view text) {
  track::CpuLossCounters counters;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::uint64_t cpu = 0;
    if (stat_value(line, "CPU:", cpu)) counters.cpu = static_cast<CpuId>(cpu);
    stat_value(line, "overrun:", counters.overrun);
    stat_value(line, "commit overrun:", counters.commit_overrun);
    stat_value(line, "dropped events:", counters.dropped);
  }
  return counters;
}

// "\nBuffer: NAME\n\n" stands before the counters of a named buffer; those of the top come first.
std::optional<std::string_view> named_buffer(std::string_view text) {
  constexpr std::string_view kMark = "Buffer: ";
  const std::size_t at = text.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kMark.size());
  return text.substr(0, text.find('\n'));
}

template <class... Events, class Tracker>
void subscribe(stream::Dispatcher& dispatcher, Tracker& tracker) {
  (dispatcher.subscribe<Events>(tracker), ...);
}

void add_page_damage(const stream::Trace& trace, const stream::Merge& merge,
                     track::CaptureFacts& facts) {
  const std::vector<ring::CpuDamage> damage = merge.damage();
  for (std::size_t i = 0; i < damage.size(); ++i) {
    if (damage[i].pages == 0) continue;
    facts.damage.push_back(
        fmt::format("CPU {}: {} damaged pages, the first at page {}; their events are missing",
                    trace.buffer().cpus[i].cpu, damage[i].pages, damage[i].first_page));
  }
}

}  // namespace

track::CaptureFacts start_facts(const stream::Trace& trace) {
  const tracedat::Reader& file = trace.file();
  track::CaptureFacts facts;
  facts.file = file.path();
  facts.file_size = file.file_size();
  facts.version = file.version();
  facts.compression = file.compression();
  facts.buffer = trace.buffer().name;
  facts.other_buffers = trace.other_buffers();
  facts.clock = trace.buffer().clock;
  facts.uname = file.uname();
  facts.cpus = std::max(file.cpu_count(), static_cast<std::uint32_t>(trace.buffer().cpus.size()));
  facts.damage = file.damage();
  std::string_view buffer;
  for (const std::string_view text : file.cpu_stats()) {
    buffer = named_buffer(text).value_or(buffer);
    if (buffer != facts.buffer) continue;
    const track::CpuLossCounters counters = parse_stats(text);
    if (counters.total() > 0) facts.counters.push_back(counters);
  }
  return facts;
}

void run_events(const stream::Trace& trace, stream::Dispatcher& dispatcher,
                track::CaptureFacts& facts) {
  track::LossTracker loss(facts);
  dispatcher.subscribe_loss(loss);
  stream::Merge merge = trace.events();
  RawEvent event;
  // From here on events come in the order in which they happened.
  bool first = true;
  while (merge.next(event)) {
    if (first) facts.first = event.time;
    first = false;
    dispatcher.dispatch(event);
  }
  facts.last = std::max(event.time, facts.first);
  for (const LossWindow& window : merge.lost_at_end()) loss.on_loss(window);
  facts.undecodable = dispatcher.undecodable();
  for (std::size_t id = 0; id < dispatcher.counts().size(); ++id) {
    const std::uint64_t count = dispatcher.counts()[id];
    if (count == 0) continue;
    facts.events += count;
    facts.counts.push_back({trace.catalog().name(static_cast<std::uint16_t>(id)), count});
  }
  std::stable_sort(facts.counts.begin(), facts.counts.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  for (const auto& [name, reason] : dispatcher.missing()) {
    (reason.empty() ? facts.missing : facts.disabled).push_back(reason.empty() ? name : reason);
  }
  add_page_damage(trace, merge, facts);
}

void subscribe_packets(stream::Dispatcher& dispatcher, track::RxTracker& rx) {
  subscribe<IrqHandlerEntry, IrqHandlerExit, SoftirqRaise, SoftirqEntry, SoftirqExit, NapiPoll,
            NetifReceiveSkb, TcpProbe, SkbCopyDatagramIovec, ConsumeSkb, KfreeSkb, NetDevQueue>(
      dispatcher, rx);
  dispatcher.subscribe_loss(rx);
}

void subscribe_packets(stream::Dispatcher& dispatcher, track::TxTracker& tx) {
  subscribe<NetDevQueue, NetDevStartXmit, NetDevXmit, NetifRx, NapiGroReceiveEntry, NetifReceiveSkb,
            ConsumeSkb, KfreeSkb>(dispatcher, tx);
  dispatcher.subscribe_loss(tx);
}

bool has_start_xmit(const stream::EventCatalog& catalog) {
  return catalog.find(NetDevStartXmit::name) != nullptr;
}

track::DropReasons drop_reasons(const stream::EventCatalog& catalog) {
  const tracedat::FormatText* text = catalog.find(KfreeSkb::name);
  if (text == nullptr) return track::DropReasons();
  const auto format = parse_event_format(text->system, text->text);
  return format ? track::DropReasons(symbolic_names(*format, "reason")) : track::DropReasons();
}

int exit_status(const track::CaptureFacts& facts, bool strict) {
  if (!facts.damage.empty()) return kDamaged;
  return strict && !facts.lossless() ? kEventsLost : kOk;
}

}  // namespace skbtrail::cli
