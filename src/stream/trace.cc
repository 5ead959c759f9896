#include "stream/trace.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/human.h"

namespace skbtrail::stream {
namespace {

Nanoseconds resolve(const Moment& moment, Nanoseconds start) {
  constexpr Nanoseconds kEnd = std::numeric_limits<Nanoseconds>::max();
  if (!moment.from_start) return moment.time;
  return moment.time > kEnd - start ? kEnd : start + moment.time;
}

}  // namespace

Result<Trace> Trace::open(const std::string& path, const ReadOptions& options) {
  auto file = tracedat::Reader::open(path);
  if (!file) return pass(file);
  return of(std::move(*file), options);
}

Result<Trace> Trace::of(tracedat::Reader file, const ReadOptions& options) {
  Trace trace;
  trace.file_ = std::make_unique<tracedat::Reader>(std::move(file));
  auto choice = choose_buffers(*trace.file_, options.buffers);
  if (!choice) return pass(choice);
  trace.choice_ = std::make_unique<BufferChoice>(std::move(*choice));
  trace.catalog_ = std::make_unique<EventCatalog>(trace.file_->formats());
  const auto& cpus = options.cpus;
  const auto wanted = [&cpus](CpuId cpu) {
    return cpus.empty() || std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
  };
  for (const ChosenBuffer& chosen : trace.choice_->read) {
    for (const tracedat::CpuData& cpu : chosen.buffer->cpus) {
      if (wanted(cpu.cpu)) trace.streams_.push_back({&chosen, &cpu});
    }
  }
  if (trace.file_->damage().empty()) {
    const std::vector<CpuId> heard = trace.cpus();
    for (CpuId cpu = 0; cpu < trace.file_->cpu_count(); ++cpu) {
      if (wanted(cpu) && !std::binary_search(heard.begin(), heard.end(), cpu)) {
        trace.silent_cpus_.push_back(cpu);
      }
    }
  }
  if (trace.streams_.empty()) {
    const std::set<CpuId> each(cpus.begin(), cpus.end());
    const std::vector<CpuId> others = trace.cpus_not_read();
    if (!others.empty()) {
      const bool silent = !trace.silent_cpus_.empty();
      return fail(ErrorKind::usage, "{} has no {}{}; it has {}{}", trace.file_->path(),
                  silent ? "event of " : "", human_cpus(std::vector(each.begin(), each.end())),
                  silent ? "those of " : "", human_cpus(others));
    }
  }
  const bool from_start =
      (options.from && options.from->from_start) || (options.to && options.to->from_start);
  const Nanoseconds start = from_start ? trace.first(0, kEndOfTime).value_or(0) : 0;
  if (options.from) trace.from_ = resolve(*options.from, start);
  if (options.to) trace.to_ = resolve(*options.to, start);
  // Of one moment on the clock and one from the start, only the capture tells which comes first.
  if (trace.from_ > trace.to_) {
    return fail(ErrorKind::usage,
                "{}: the stretch of time ends at {}, before it begins at {}; the first event is at "
                "{}",
                trace.file_->path(), human_time(trace.to_), human_time(trace.from_),
                human_time(start));
  }
  return trace;
}

bool Trace::reads(std::string_view buffer) const {
  return std::any_of(choice_->read.begin(), choice_->read.end(),
                     [buffer](const ChosenBuffer& read) { return read.buffer->name == buffer; });
}

std::string Trace::buffer_names() const {
  if (choice_->read.size() == 1) return buffer().name;
  std::string names;
  for (const ChosenBuffer& read : choice_->read) {
    names += (names.empty() ? "" : ", ") + shown_name(*read.buffer);
  }
  return names;
}

std::vector<std::string> Trace::other_buffers() const {
  std::vector<std::string> names;
  for (const tracedat::Buffer* buffer : choice_->not_read) names.push_back(shown_name(*buffer));
  return names;
}

std::string Trace::clock() const {
  const std::string& clock = buffer().clock;
  if (file_->time_scale().mult != 0) return clock;
  if (clock == "x86-tsc")
    return "x86-tsc (times are CPU cycles: the file does not say how long one is)";
  if (clock == "counter") return "counter (times are a count of events)";
  if (clock == "uptime") return "uptime (times are ticks of the kernel)";
  return clock;
}

std::string Trace::stream_name(std::size_t stream) const {
  std::string cpu = fmt::format("CPU {}", streams_[stream].cpu->cpu);
  if (choice_->read.size() == 1) return cpu;
  return fmt::format("{} of buffer \"{}\"", cpu, shown_name(stream_buffer(stream)));
}

std::vector<CpuId> Trace::cpus() const {
  std::set<CpuId> numbers;
  for (const Stream& stream : streams_) numbers.insert(stream.cpu->cpu);
  return {numbers.begin(), numbers.end()};
}

std::vector<CpuId> Trace::cpus_not_read() const {
  std::set<CpuId> numbers;
  for (const ChosenBuffer& chosen : choice_->read) {
    for (const tracedat::CpuData& cpu : chosen.buffer->cpus) numbers.insert(cpu.cpu);
  }
  for (const CpuId cpu : cpus()) numbers.erase(cpu);
  return {numbers.begin(), numbers.end()};
}

// Of those CPUs and buffers that are read.
std::optional<Nanoseconds> Trace::first(Nanoseconds from, Nanoseconds to) const {
  std::optional<Nanoseconds> first;
  for (const Stream& stream : streams_) {
    RawEvent event;
    if (!pages(stream, from, to).next(event)) continue;
    first = std::min(first.value_or(event.time), event.time);
  }
  return first;
}

std::optional<std::pair<Nanoseconds, Nanoseconds>> Trace::span() const {
  std::optional<std::pair<Nanoseconds, Nanoseconds>> span;
  for (const Stream& stream : streams_) {
    ring::CpuPages all = pages(stream, 0, kEndOfTime);
    for (RawEvent event; all.next(event);) {
      if (!span) span.emplace(event.time, event.time);
      span->first = std::min(span->first, event.time);
      span->second = std::max(span->second, event.time);
    }
  }
  return span;
}

ring::CpuPages Trace::pages(const Stream& stream, Nanoseconds from, Nanoseconds to) const {
  const ChosenBuffer& chosen = *stream.chosen;
  ring::Selection selection{from, to, file_->time_scale(), nullptr};
  if (!chosen.skip.empty()) selection.skip = &chosen.skip;
  return {file_->pages(*chosen.buffer, *stream.cpu, from), chosen.buffer->page_size,
          stream.cpu->cpu, selection};
}

Merge Trace::events(bool all_wanted) const {
  std::vector<ring::CpuPages> cpus;
  cpus.reserve(streams_.size());
  for (const Stream& stream : streams_) cpus.push_back(pages(stream, from_, to_));
  return Merge(std::move(cpus), all_wanted);
}

bool Trace::events_last() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) {
    return stream.cpu->compression == tracedat::Compression::none;
  });
}

}  // namespace skbtrail::stream
