#include "record/metadata.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace skbtrail::record {
namespace fs = std::filesystem;
using tracedat::OptionId;
using tracefs::read_whole;
namespace {

Result<std::string> read_either(const tracefs::Session& session, const std::string& file) {
  return session.has(file) ? session.read(file) : read_whole(session.tracing_folder() / file);
}

// Files that a kernel may lack and a capture can do without.
std::string read_optional(const fs::path& path) {
  Result<std::string> text = read_whole(path);
  return text ? std::move(*text) : std::string();
}

// Those of the tracers and of trace_printk(): they have no place in available_events.
std::vector<std::string> ftrace_formats(const fs::path& tracing_folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(tracing_folder / "events/ftrace", error)) {
    if (entry.is_directory()) paths.push_back(entry.path() / "format");
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> formats;
  for (const fs::path& path : paths) {
    std::string text = read_optional(path);
    if (!text.empty()) formats.push_back(std::move(text));
  }
  return formats;
}

Result<void> add_event_formats(tracedat::CaptureText& text, const tracefs::KernelEvents& kernel,
                               const tracefs::Plan& plan) {
  for (const tracefs::PlannedEvent& event : plan.events) {
    Result<std::string> format = kernel.format(event.name);
    if (!format) return pass(format);
    const auto system =
        std::find_if(text.systems.begin(), text.systems.end(),
                     [&](const auto& known) { return known.system == event.name.system; });
    if (system == text.systems.end()) {
      text.systems.push_back({event.name.system, {std::move(*format)}});
    } else {
      system->formats.push_back(std::move(*format));
    }
  }
  return {};
}

std::string uname_text() {
  utsname name{};
  ::uname(&name);
  return fmt::format("{} {} {} {}", name.sysname, name.nodename, name.release, name.machine);
}

constexpr const char* kGraphBuffer = "graph";  // name of the top buffer in the capture

std::string loss_lines(std::string_view when, const AllStats& all) {
  std::string text;
  for (const tracefs::CpuStats& one : all) {
    text += fmt::format("{} {} {} {} {} {} {}\n", when, one.cpu, one.overrun, one.commit_overrun,
                        one.dropped, one.entries, one.read);
  }
  return text;
}

std::string all_loss_lines(const Course& course) {
  std::string text = loss_lines("before", course.before[0]) + loss_lines("after", course.after[0]);
  for (std::size_t i = 1; i < course.after.size(); ++i) {
    text += loss_lines("graph_before", course.before[i]);
    text += loss_lines("graph_after", course.after[i]);
  }
  for (const tracefs::ProbeMisses& probe : course.missed_probes) {
    text += fmt::format("missed_probe {} {}\n", probe.function, probe.count);
  }
  return text;
}

// As trace-cmd has it: the name of a named buffer, then its CPUs (add_buffer_stat()).
void add_cpu_stats(tracedat::CaptureText& text, std::size_t buffer, const AllStats& all) {
  if (buffer > 0) {
    text.options.push_back({OptionId::cpustat, fmt::format("\nBuffer: {}\n\n", kGraphBuffer)});
  }
  for (const tracefs::CpuStats& stats : all) {
    text.options.push_back({OptionId::cpustat, fmt::format("CPU: {}\n{}", stats.cpu, stats.text)});
  }
}

std::string profile_lines(const tracefs::Plan& plan, const Request& request) {
  std::string text;
  for (const std::string& name : request.profiles) text += "profile " + name + "\n";
  for (const std::string& device : request.selection.devices) text += "device " + device + "\n";
  for (const Pid pid : request.selection.pids) text += fmt::format("pid {}\n", pid);
  for (const std::string& name : request.session.graph) text += "graph " + name + "\n";
  for (const tracefs::PlannedEvent& event : plan.events) {
    const std::string blank = event.filter.empty() ? "" : " ";
    text += "event " + event.name.text() + blank + event.filter + "\n";
  }
  for (const std::string& name : plan.missing) text += "missing " + name + "\n";
  return text;
}

std::string recorder_lines(const tracefs::Session& session, const Request& request,
                           const Course& course, StopReason stopped_by) {
  std::string text = fmt::format("version {}\n", SKBTRAIL_VERSION);
  std::string command;
  for (const std::string& word : request.command) command += (command.empty() ? "" : " ") + word;
  std::replace(command.begin(), command.end(), '\n', ' ');
  if (!command.empty()) text += "command " + command + "\n";
  text += fmt::format("clock {}\nbuffer_kb {}\npage_size {}\ncpus {}\n", request.session.clock,
                      request.session.buffer_kb, session.buffers().front().page_size(),
                      session.buffers().front().cpus().size());
  text += fmt::format("start_ns {}\nstop_ns {}\nrealtime_offset_ns {}\n", course.start, course.stop,
                      course.realtime_offset);
  text +=
      fmt::format("cpu_time_ns {}\nstopped_by {}\n", course.reader_cpu_time, name_of(stopped_by));
  if (course.switched_off) text += fmt::format("{}\n", tracedat::kSwitchedOff);
  return text + fmt::format("{}\n", tracedat::kFinished);
}

}  // namespace

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::command_ended:
      return "command";
    case StopReason::duration_over:
      return "duration";
    case StopReason::signal:
      return "signal";
    case StopReason::trouble:
      return "trouble";
  }
  return "";
}

Result<tracedat::CaptureText> describe_kernel(const tracefs::Session& session,
                                              const tracefs::KernelEvents& kernel,
                                              const tracefs::Plan& plan, const std::string& clock) {
  tracedat::CaptureText text;
  text.page_size = session.buffers().front().page_size();
  text.cpu_count = session.buffers().front().cpus().back() + 1;
  for (std::size_t i = 1; i < session.buffers().size(); ++i) {
    text.named_buffers.push_back({kGraphBuffer, session.buffers()[i].page_size()});
  }
  text.clock = clock;
  Result<std::string> page = read_either(session, "events/header_page");
  if (!page) return pass(page);
  text.header_page = std::move(*page);
  Result<std::string> event = read_either(session, "events/header_event");
  if (!event) return pass(event);
  text.header_event = std::move(*event);
  Result<std::string> clocks = session.read("trace_clock");
  if (!clocks) return pass(clocks);
  text.trace_clock = std::move(*clocks);
  text.ftrace_formats = ftrace_formats(session.tracing_folder());
  Result<void> added = add_event_formats(text, kernel, plan);
  if (!added) return pass(added);
  text.kallsyms = read_optional("/proc/kallsyms");
  text.printk_formats = read_optional(session.tracing_folder() / "printk_formats");
  return text;
}

std::vector<tracedat::TextOption> describe_unfinished(const Request& request) {
  return {{OptionId::uname, uname_text()},
          {OptionId::version, "skbtrail " SKBTRAIL_VERSION},
          {OptionId::skbtrail_recorder, fmt::format("version {}\nclock {}\n{}\n", SKBTRAIL_VERSION,
                                                    request.session.clock, tracedat::kUnfinished)}};
}

void describe_course(tracedat::CaptureText& text, const tracefs::Session& session,
                     const tracefs::Plan& plan, const Request& request, const Course& course,
                     StopReason stopped_by) {
  text.cmdlines = read_optional(session.tracing_folder() / "saved_cmdlines");
  text.options.push_back({OptionId::uname, uname_text()});
  text.options.push_back({OptionId::version, "skbtrail " SKBTRAIL_VERSION});
  for (std::size_t i = 0; i < course.after.size(); ++i) add_cpu_stats(text, i, course.after[i]);
  text.options.push_back(
      {OptionId::skbtrail_tgids, read_optional(session.tracing_folder() / "saved_tgids")});
  text.options.push_back({OptionId::skbtrail_loss, all_loss_lines(course)});
  text.options.push_back({OptionId::skbtrail_profile, profile_lines(plan, request)});
  text.options.push_back(
      {OptionId::skbtrail_recorder, recorder_lines(session, request, course, stopped_by)});
  text.options.push_back({OptionId::skbtrail_switches, course.switches});
}

}  // namespace skbtrail::record
