#include "cli/pipeline.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>

#include "base/human.h"
#include "base/printable.h"
#include "cli/exit_status.h"
#include "event/probe.h"
#include "event/qdisc.h"
#include "event/syscall.h"
#include "tracedat/text.h"

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

bool is_function_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

// Of the option skbtrail_loss.
std::vector<track::EventCount> missed_probes(std::string_view text) {
  std::vector<track::EventCount> probes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    track::EventCount probe;
    if (!(words >> key >> probe.name >> probe.count) || key != "missed_probe") continue;
    if (probe.count > 0 && is_function_name(probe.name)) probes.push_back(std::move(probe));
  }
  return probes;
}

// Of the option skbtrail_loss: what a recorder that had to stop left in the buffers. trace-cmd's
// own captures have no such option; what is left in its buffers it does read.
void add_unread(std::string_view text, const stream::Trace& trace,
                std::vector<track::CpuLossCounters>& counters) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string when;
    track::CpuLossCounters cpu;
    if (!(words >> when >> cpu.cpu >> cpu.overrun >> cpu.commit_overrun >> cpu.dropped >>
          cpu.unread)) {
      continue;
    }
    const bool graph = when == "graph_after";
    if ((when != "after" && !graph) || cpu.unread == 0 || !trace.reads(graph ? "graph" : "")) {
      continue;
    }
    counters.push_back({cpu.cpu, 0, 0, 0, cpu.unread});
  }
}

void add_page_damage(const stream::Trace& trace, const std::vector<ring::CpuDamage>& damage,
                     track::CaptureFacts& facts) {
  for (std::size_t i = 0; i < damage.size(); ++i) {
    if (damage[i].pages > 0) {
      facts.damage.push_back(
          fmt::format("{}: {}, the first at page {}; events are missing", trace.stream_name(i),
                      plural(damage[i].pages, "damaged page"), damage[i].first_page));
    }
    if (damage[i].unreadable > 0) {
      facts.damage.push_back(
          fmt::format("{}: in {} the data is damaged or cannot be read; its events are missing",
                      trace.stream_name(i), plural(damage[i].unreadable, "place")));
    }
    if (damage[i].unwritten > 0) {
      facts.damage.push_back(fmt::format("{}: {} never written, between others; events are missing",
                                         trace.stream_name(i),
                                         plural(damage[i].unwritten, "page")));
    }
    if (damage[i].runs_back > 0) {
      facts.damage.push_back(fmt::format("{}: time runs back at page {} ({})", trace.stream_name(i),
                                         damage[i].first_back,
                                         plural(damage[i].runs_back, "page")));
    }
    const std::string buffer = stream::shown_name(trace.stream_buffer(i));
    std::vector<std::string>& others = facts.other_buffers;
    if (damage[i].unselected > 0 &&
        std::find(others.begin(), others.end(), buffer) == others.end()) {
      others.push_back(buffer);
    }
  }
}

void add_counts(const stream::Trace& trace, const std::vector<std::uint64_t>& counts,
                track::CaptureFacts& facts) {
  for (std::size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] == 0) continue;
    facts.events += counts[id];
    facts.counts.push_back({trace.catalog().name(static_cast<std::uint16_t>(id)), counts[id]});
  }
  std::stable_sort(facts.counts.begin(), facts.counts.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
}

// An event that several dispatchers want is one event, in each of them.
void add_undecodable(std::initializer_list<stream::Dispatcher*> dispatchers,
                     track::CaptureFacts& facts) {
  std::map<std::uint16_t, std::uint64_t> records;
  for (const stream::Dispatcher* dispatcher : dispatchers) {
    records.merge(dispatcher->undecodable());
  }
  for (const auto& [id, count] : records) facts.undecodable += count;
}

void add_missing(const stream::EventCatalog& catalog,
                 std::initializer_list<stream::Dispatcher*> dispatchers,
                 track::CaptureFacts& facts) {
  std::map<std::string, std::string> missing;
  for (const stream::Dispatcher* dispatcher : dispatchers) {
    missing.insert(dispatcher->missing().begin(), dispatcher->missing().end());
  }
  // Calls are told by either: a capture with events of single calls was meant to have just those.
  if (!catalog.family(SysEnter::name).empty()) missing.erase("raw_syscalls:sys_enter");
  if (!catalog.family(SysExit::name).empty()) missing.erase("raw_syscalls:sys_exit");
  if (catalog.find(ProbeTcpTransmit::name) != nullptr) missing.erase("sock:sock_send_length");
  for (const auto& [name, reason] : missing) {
    (reason.empty() ? facts.missing : facts.disabled).push_back(reason.empty() ? name : reason);
  }
}

// All that stands there in the capture's own words, or its path's.
void make_printable(track::CaptureFacts& facts) {
  for (std::string* text :
       {&facts.file, &facts.compression, &facts.buffer, &facts.clock, &facts.uname}) {
    *text = printable(*text);
  }
  for (auto* texts : {&facts.other_buffers, &facts.damage, &facts.missing, &facts.disabled}) {
    for (std::string& text : *texts) text = printable(text);
  }
  for (track::EventCount& event : facts.counts) event.name = printable(event.name);
}

}  // namespace

track::CaptureFacts start_facts(const stream::Trace& trace) {
  const tracedat::Reader& file = trace.file();
  track::CaptureFacts facts;
  facts.file = file.path();
  facts.file_size = file.file_size();
  facts.version = file.version();
  facts.compression = file.compression();
  facts.buffer = trace.buffer_names();
  facts.other_buffers = trace.other_buffers();
  facts.cpus_not_read = trace.cpus_not_read();
  facts.silent_cpus = trace.silent_cpus();
  facts.in_part = trace.in_part();
  facts.clock = trace.clock();
  facts.uname = file.uname();
  facts.cpus = std::max(file.cpu_count(), static_cast<std::uint32_t>(trace.buffer().cpus.size()));
  facts.damage = file.damage();
  std::string_view buffer;
  for (const std::string_view text : file.cpu_stats()) {
    buffer = named_buffer(text).value_or(buffer);
    if (!trace.reads(buffer)) continue;
    const track::CpuLossCounters counters = parse_stats(text);
    if (counters.total() > 0) facts.counters.push_back(counters);
  }
  const std::string_view loss = file.option_text(tracedat::OptionId::skbtrail_loss);
  add_unread(loss, trace, facts.counters);
  std::erase_if(facts.counters, [&](const track::CpuLossCounters& counters) {
    return std::ranges::binary_search(facts.cpus_not_read, counters.cpu);
  });
  facts.missed_probes = missed_probes(loss);
  const std::string_view recorder = file.option_text(tracedat::OptionId::skbtrail_recorder);
  facts.stopped_early = tracedat::has_line(recorder, "stopped_by trouble");
  facts.switched_off = tracedat::has_line(recorder, tracedat::kSwitchedOff);
  return facts;
}

void run_events(const stream::Trace& trace, std::initializer_list<stream::Dispatcher*> dispatchers,
                track::CaptureFacts& facts, stream::Behind* behind) {
  track::LossTracker loss(facts);
  (*dispatchers.begin())->subscribe_loss(loss);
  const stream::Census census = stream::walk(trace, dispatchers, behind);
  facts.first = census.first;
  facts.last = census.last;
  add_page_damage(trace, census.damage, facts);
  add_counts(trace, census.counts, facts);
  add_undecodable(dispatchers, facts);
  add_missing(trace.catalog(), dispatchers, facts);
  make_printable(facts);
}

track::PacketEvents packet_events(const stream::EventCatalog& catalog) {
  return {catalog.find(NetDevStartXmit::name) != nullptr,
          catalog.find(SchedWaking::name) != nullptr, catalog.find(QdiscEnqueue::name) != nullptr};
}

track::DropReasons drop_reasons(const stream::EventCatalog& catalog) {
  const tracedat::FormatText* text = catalog.find(KfreeSkb::name);
  if (text == nullptr) return track::DropReasons();
  const auto format = parse_event_format(text->system, text->text);
  if (!format) return track::DropReasons();
  auto names = symbolic_names(*format, "reason");
  for (auto& [number, name] : names) name = printable(name);
  return track::DropReasons(std::move(names));
}

int exit_status(const track::CaptureFacts& facts, bool strict) {
  if (!facts.damage.empty() || facts.undecodable > 0) return kDamaged;
  return strict && !facts.complete() ? kEventsLost : kOk;
}

}  // namespace skbtrail::cli
