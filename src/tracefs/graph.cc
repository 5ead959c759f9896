#include "tracefs/graph.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "tracefs/access.h"
#include "tracefs/kernel_events.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTracer = "function_graph";
constexpr const char* kFilterFile = "set_ftrace_filter";

// Calls `use` with every function that can be traced: the first word of a line; " [MODULE]" may
// follow. There are some 50,000.
template <class Use>
Result<void> each_function(const fs::path& file, Use use) {
  std::ifstream lines(file);
  if (!lines) return tl::unexpected(access_error(errno, file));
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find_first_of(" \t"), line.size()));
    use(line);
  }
  return {};
}

// ": did you mean ...?" with only the near names in memory.
std::string suggestion(const fs::path& file, const std::string& function) {
  std::vector<std::string> near;
  (void)each_function(file, [&](const std::string& name) {
    constexpr std::size_t kMany = 64;
    if (nearest(function, {&name, 1}).empty()) return;
    near.push_back(name);
    if (near.size() > kMany) near = nearest(function, near);
  });
  return did_you_mean(function, near);
}

// The lines of set_ftrace_filter as words to write into it: "name [module]" is "name:mod:module".
// "#### all functions enabled ####" is an empty filter, and "name:command:count" stands for a
// trigger, which emptying the file does not remove.
std::vector<std::string> words_of_filter(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#' || line.find(':') != std::string::npos) continue;
    const std::size_t module = line.find(" [");
    if (module != std::string::npos) {
      const std::size_t close = std::min(line.find(']', module), line.size());
      line = line.substr(0, module) + ":mod:" + line.substr(module + 2, close - module - 2);
    }
    words.push_back(line + "\n");
  }
  return words;
}

std::vector<std::string> words_of_functions(const std::vector<std::string>& functions) {
  std::vector<std::string> words;
  // The blank behind a word ends it: without one it is looked up when the file is closed, and an
  // error is lost.
  for (const std::string& function : functions) words.push_back(function + "\n");
  return words;
}

// "local [mono] boot" -> "mono"
std::string chosen_of(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', std::min(open, text.size()));
  if (close == std::string::npos) return trimmed(text);
  return text.substr(open + 1, close - open - 1);
}

// Processes that read the top buffer: "NAME (PID)", separated by commas.
std::string readers_of(const fs::path& folder) {
  const std::string pipe = (folder / "trace_pipe").string();
  const std::string per_cpu = (folder / "per_cpu/").string();
  std::string readers;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string pid = process.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    for (const auto& file : fs::directory_iterator(process.path() / "fd", gone)) {
      std::error_code closed;
      const std::string target = fs::read_symlink(file.path(), closed).string();
      if (target != pipe && !target.starts_with(per_cpu)) continue;
      const Result<std::string> name = read_whole(process.path() / "comm");
      readers += fmt::format("{}{} ({})", readers.empty() ? "" : ", ",
                             name ? trimmed(*name) : "process", pid);
      break;
    }
  }
  return readers;
}

tl::unexpected<Error> in_use(const std::string& what, const std::string& readers) {
  return fail(ErrorKind::failed,
              "this kernel has function_graph only in the top buffer, and that is in use: {}{}\n"
              "end that first, or record without --graph",
              what, readers.empty() ? "" : "; read by " + readers);
}

// The top buffer is free when it has no tracer, records no event, and nobody reads it: the kernel
// changes no tracer while a pipe is open (trace_ref in tracing_set_tracer()).
Result<void> check_top_is_free(const fs::path& folder) {
  const fs::path tracer_file = folder / "current_tracer";
  const fs::path events_file = folder / "set_event";
  Result<std::string> tracer = read_whole(tracer_file);
  if (!tracer) return pass(tracer);
  Result<std::string> events = read_whole(events_file);
  if (!events) return pass(events);
  const std::string readers = readers_of(folder);
  if (trimmed(*tracer) != "nop") {
    return in_use(fmt::format("{} is {}", tracer_file.string(), trimmed(*tracer)), readers);
  }
  if (!trimmed(*events).empty()) {
    const std::string first = events->substr(0, events->find('\n'));
    return in_use(fmt::format("{} names {}", events_file.string(), first), readers);
  }
  if (!readers.empty()) return in_use((folder / "trace_pipe").string() + " is open", readers);
  return {};
}

// "1408", or "7 (expanded: 1408)" until something is recorded for the first time: that cannot come
// back, and the size is then the second one. "X" when the CPUs differ.
Result<void> change_buffer_size(const fs::path& folder, std::uint64_t kb, Saved& saved) {
  constexpr std::string_view kExpanded = "expanded: ";
  const auto change = [&](const fs::path& file) -> Result<void> {
    Result<std::string> text = read_whole(file);
    if (!text) return pass(text);
    const std::size_t at = text->find(kExpanded);
    if (at != std::string::npos) text->erase(0, at + kExpanded.size());
    const std::string value = std::to_string(kb);
    return saved.change(file, {text->substr(0, text->find_first_not_of("0123456789"))},
                        {&value, 1});
  };
  const fs::path all = folder / "buffer_size_kb";
  Result<std::string> text = read_whole(all);
  if (!text) return pass(text);
  if (trimmed(*text) != "X") return change(all);
  std::error_code error;
  for (const auto& cpu : fs::directory_iterator(folder / "per_cpu", error)) {
    Result<void> done = change(cpu.path() / "buffer_size_kb");
    if (!done) return done;
  }
  return {};
}

Result<void> change_clock(const fs::path& folder, const std::string& clock, Saved& saved) {
  Result<std::string> text = read_whole(folder / "trace_clock");
  if (!text) return pass(text);
  return saved.change(folder / "trace_clock", {chosen_of(*text)}, {&clock, 1});
}

// Some machines let not even root choose functions.
Result<void> explained(Result<void> done, const fs::path& file) {
  if (done || done.error().kind != ErrorKind::not_permitted || ::geteuid() != 0) return done;
  return fail(ErrorKind::not_permitted,
              "this machine does not let root write {}, which chooses the functions to trace\n"
              "record without --graph",
              file.string());
}

Result<void> change_filter(const fs::path& folder, const GraphOptions& options, Saved& saved) {
  Result<std::string> text = read_whole(folder / kFilterFile);
  if (!text) return pass(text);
  const fs::path file = folder / kFilterFile;
  return explained(
      saved.change(file, words_of_filter(*text), words_of_functions(options.functions)), file);
}

// Without it nothing called in a hard interrupt is in the graph. Until 6.16 the options of a tracer
// are the whole kernel's, also in the folder of an instance.
Result<void> trace_interrupts(const fs::path& folder, Saved& saved) {
  const fs::path file = folder / "options/funcgraph-irqs";
  if (::access(file.c_str(), F_OK) != 0) return {};
  Result<std::string> text = read_whole(file);
  if (!text) return pass(text);
  return trimmed(*text) == "1" ? Result<void>() : saved.change(file, "1");
}

Result<void> take_top_buffer(const fs::path& folder, const GraphOptions& options, Saved& saved) {
  Result<void> done = check_top_is_free(folder);
  if (done) done = saved.change(folder / "tracing_on", "0");
  if (done) done = saved.change(folder / "options/overwrite", "1");
  if (done) done = change_buffer_size(folder, options.buffer_kb, saved);
  // Setting the clock empties the buffer, here and when it is put back.
  if (done) done = change_clock(folder, options.clock, saved);
  if (done) done = change_filter(folder, options, saved);
  if (done) done = trace_interrupts(folder, saved);
  if (done) done = saved.change(folder / "current_tracer", kTracer);
  return done;
}

// 0, or errno.
int try_tracer(const fs::path& folder) {
  const Fd fd(::open((folder / "current_tracer").c_str(), O_WRONLY | O_CLOEXEC));
  const std::string_view name = kTracer;
  return fd && ::write(fd.get(), name.data(), name.size()) >= 0 ? 0 : errno;
}

}  // namespace

Result<void> check_graph(const fs::path& tracing_folder, std::span<const std::string> functions) {
  const fs::path tracers_file = tracing_folder / "available_tracers";
  Result<std::string> tracers = read_whole(tracers_file);
  if (!tracers) return pass(tracers);
  if ((" " + trimmed(*tracers) + " ").find(fmt::format(" {} ", kTracer)) == std::string::npos) {
    return fail(ErrorKind::unsupported,
                "this kernel has no tracer {}: {} has only: {}\n"
                "it needs CONFIG_FUNCTION_GRAPH_TRACER; record without --graph",
                kTracer, tracers_file.string(), trimmed(*tracers));
  }
  if (::access((tracing_folder / kFilterFile).c_str(), F_OK) != 0) {
    return fail(ErrorKind::unsupported,
                "this kernel cannot choose functions: {} is not there, it needs "
                "CONFIG_DYNAMIC_FTRACE",
                (tracing_folder / kFilterFile).string());
  }
  const fs::path known = tracing_folder / "available_filter_functions";
  std::set<std::string> unknown(functions.begin(), functions.end());
  Result<void> read = each_function(known, [&](const std::string& name) { unknown.erase(name); });
  if (!read) return read;
  if (unknown.empty()) return {};
  const std::string& first = *unknown.begin();
  return fail(ErrorKind::unsupported, "this kernel cannot trace a function '{}'{}\n{} lists them",
              first, suggestion(known, first), known.string());
}

Result<GraphPlace> set_graph(const fs::path& tracing_folder, const fs::path& instance,
                             const GraphOptions& options, Saved& saved) {
  // First the filter: without one the tracer takes every function of the kernel.
  const fs::path filter = instance / kFilterFile;
  Result<void> done =
      explained(write_values(filter, words_of_functions(options.functions)), filter);
  if (!done) return pass(done);
  const int refused = try_tracer(instance);
  if (refused == 0) {
    done = trace_interrupts(instance, saved);
    if (!done) return pass(done);
    return GraphPlace::instance;
  }
  if (refused != EINVAL && refused != ENODEV) {
    return tl::unexpected(access_error(refused, instance / "current_tracer"));
  }
  done = take_top_buffer(tracing_folder, options, saved);
  if (!done) return pass(done);
  return GraphPlace::top_buffer;
}

std::vector<std::string> limits_of_graph(const fs::path& tracing_folder,
                                         const fs::path& ftrace_enabled) {
  std::vector<std::string> limits;
  // Then no function is patched, and none is traced (ftrace_startup_enable(),
  // kernel/trace/ftrace.c).
  const Result<std::string> enabled = read_whole(ftrace_enabled);
  if (enabled && trimmed(*enabled) == "0") {
    limits.push_back(
        fmt::format("{} is 0: the graph will be empty; sudo sysctl "
                    "kernel.ftrace_enabled=1 switches function tracing on",
                    ftrace_enabled.string()));
  }
  const Result<std::string> within = read_whole(tracing_folder / "set_graph_function");
  if (within && !trimmed(*within).empty() && within->front() != '#') {
    limits.push_back(fmt::format("{} is set: the graph has only what these functions call",
                                 (tracing_folder / "set_graph_function").string()));
  }
  const Result<std::string> without = read_whole(tracing_folder / "set_graph_notrace");
  if (without && !trimmed(*without).empty() && without->front() != '#') {
    limits.push_back(fmt::format("{} is set: the graph has not what these functions call",
                                 (tracing_folder / "set_graph_notrace").string()));
  }
  // Then the entries are not recorded (trace_graph_entry(), kernel/trace/trace_functions_graph.c).
  const Result<std::string> shortest = read_whole(tracing_folder / "tracing_thresh");
  if (shortest && trimmed(*shortest) != "0") {
    limits.push_back(
        fmt::format("{} is {}: of the graph only long calls are recorded, by their end",
                    (tracing_folder / "tracing_thresh").string(), trimmed(*shortest)));
  }
  const Result<std::string> depth = read_whole(tracing_folder / "max_graph_depth");
  if (depth && trimmed(*depth) != "0") {
    limits.push_back(fmt::format("{} is {}: the graph has no deeper calls",
                                 (tracing_folder / "max_graph_depth").string(), trimmed(*depth)));
  }
  return limits;
}

}  // namespace skbtrail::tracefs
