#include "support/kshark.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <cstdlib>

#include "base/bytes.h"
#include "stream/trace.h"

// Declared here because <libkshark.h> needs json-c's headers, which its package does not bring.
extern "C" {
struct kshark_context;
bool kshark_instance(kshark_context** context);
void kshark_free(kshark_context* context);
int kshark_open(kshark_context* context, const char* file);
ssize_t kshark_load_matrix(kshark_context* context, int stream, std::int16_t** events,
                           std::int16_t** cpus, std::int32_t** pids, std::int64_t** offsets,
                           std::int64_t** times);
}

namespace skbtrail::test {
namespace {

constexpr std::size_t kPidAt = 4;  // common_pid, on every kernel we know

// The columns of kshark_load_matrix().
template <class Number>
struct Column {
  Number* data = nullptr;
  ~Column() { std::free(data); }
};

struct Session {
  kshark_context* context = nullptr;
  Session() { kshark_instance(&context); }
  ~Session() { kshark_free(context); }
};

}  // namespace

Comparison compare_with_kshark(const std::filesystem::path& capture) {
  Comparison result;
  // The first stream that libkshark makes of a file is its top buffer, or the only one.
  stream::ReadOptions first;
  if (const auto file = tracedat::Reader::open(capture); file && !file->buffers().empty()) {
    const std::string& name = file->buffers().front().name;
    first.buffers = {name.empty() ? "top" : name};
  }
  const auto trace = stream::Trace::open(capture, first);
  Session session;
  const int stream = kshark_open(session.context, capture.c_str());
  if (!trace || stream < 0) {
    result.difference = trace ? "libkshark does not open it" : trace.error().message;
    return result;
  }
  Column<std::int16_t> ids;
  Column<std::int16_t> cpus;
  Column<std::int32_t> pids;
  Column<std::int64_t> times;
  const ssize_t rows = kshark_load_matrix(session.context, stream, &ids.data, &cpus.data,
                                          &pids.data, nullptr, &times.data);
  stream::Merge ours = trace->events();
  RawEvent event;
  for (ssize_t row = 0; row < rows; ++row) {
    if (ids.data[row] < 0) continue;  // KernelShark's own entry for a gap
    if (!ours.next(event)) {
      result.difference = fmt::format("we end after {} of {} events", result.events, rows);
      return result;
    }
    const auto pid = load<std::int32_t>(event.data + kPidAt);
    if (event.id != ids.data[row] || static_cast<int>(event.cpu) != cpus.data[row] ||
        pid != pids.data[row] || event.time != static_cast<std::uint64_t>(times.data[row])) {
      result.difference = fmt::format("cpu {} time {} id {} pid {} to us, {} {} {} {} to libkshark",
                                      event.cpu, event.time, event.id, pid, cpus.data[row],
                                      times.data[row], ids.data[row], pids.data[row]);
      return result;
    }
    ++result.events;
  }
  if (ours.next(event)) result.difference = fmt::format("libkshark ends after {}", result.events);
  return result;
}

}  // namespace skbtrail::test
