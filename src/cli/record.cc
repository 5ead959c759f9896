// skbtrail record: from the words of the command line to a request, and from the summary to lines.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/human.h"
#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/verb.h"
#include "profile/search.h"
#include "record/recorder.h"

namespace skbtrail::cli {
namespace {

constexpr const char* kDefaultFile = "trace.dat";
constexpr const char* kDefaultProfile = "net";

Arguments make_arguments() {
  Arguments arguments(
      {"record", "[OPTION]... [-- COMMAND [ARGUMENT]...]",
       "Captures what the kernel does with network packets into a trace.dat, until COMMAND ends,\n"
       "the duration is over, or Ctrl-C. The exit status is COMMAND's when it ended by itself.",
       "  # ten seconds of everything that concerns packets, then the first look at it\n"
       "  sudo skbtrail record --duration 10 -o web.dat\n"
       "  skbtrail report web.dat\n\n"
       "  # drops on one device while a command runs\n"
       "  sudo skbtrail record --profile drops -d eth0 -- curl -s http://server/"});
  arguments.value("output,o", "FILE",
                  "the capture to write [trace.dat]; one that is there is kept "
                  "as FILE.old");
  arguments.values("profile", "NAME", "what to record [net]; 'skbtrail list profiles' shows them");
  arguments.values("event,e", "SYS:EVENT[:FILTER]",
                   "record this event; alone, instead of a profile");
  arguments.values("dev,d", "DEVICE", "only packets of this device, in any network namespace");
  arguments.values("pid,p", "PID", "only scheduling and system calls of this process");
  arguments.values("graph", "FUNC[,FUNC...]",
                   "trace the calls of these kernel functions too, with function_graph");
  arguments.flag("probes",
                 "add kprobe events for what this kernel's own events do not tell of packets");
  arguments.value("duration", "SECONDS", "stop after this time");
  arguments.value("buffer-size", "KB", "ring buffer per CPU [32768]");
  arguments.value("sub-buffer-size", "KB", "what is read of it at once [a page]; Linux 6.8");
  arguments.value("clock", "NAME", "clock of the time stamps [mono]");
  arguments.value("file-version", "6|7", "version of the trace.dat format [7]");
  arguments.flag("strict", "exit with status 6 when events were lost");
  arguments.flag("quiet,q", "print errors only");
  arguments.command();
  return arguments;
}

Result<void> add_rules(const Parsed& parsed, record::Request& request) {
  request.profiles = parsed.all("profile");
  const std::vector<std::string> events = parsed.all("event");
  if (request.profiles.empty() && events.empty()) request.profiles.push_back(kDefaultProfile);
  const Folders folders = profile_folders();
  for (const std::string& name : request.profiles) {
    Result<Profile> profile = load_profile(name, folders);
    if (!profile) return pass(profile);
    request.rules.insert(request.rules.end(), profile->rules.begin(), profile->rules.end());
  }
  for (const std::string& word : events) {
    Result<EventRule> rule = parse_event_argument(word);
    if (!rule) return usage_error("record", rule.error().message);
    request.rules.push_back(std::move(*rule));
  }
  return {};
}

Result<void> add_selection(const Parsed& parsed, record::Request& request) {
  request.selection.devices = parsed.all("dev");
  for (const std::string& word : parsed.all("pid")) {
    const bool is_number = !word.empty() && word.size() <= 9 &&
                           word.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) return usage_error("record", fmt::format("--pid '{}': not a process id", word));
    request.selection.pids.push_back(std::stoi(word));
  }
  return {};
}

Result<void> add_graph(const Parsed& parsed, record::Request& request) {
  std::vector<std::string>& functions = request.session.graph;
  for (const std::string& word : parsed.all("graph")) {
    for (std::size_t at = 0; at <= word.size();) {
      const std::size_t end = std::min(word.find(',', at), word.size());
      const std::string name = word.substr(at, end - at);
      at = end + 1;
      if (name.empty()) {
        return usage_error("record", fmt::format("--graph '{}': a name is missing", word));
      }
      if (std::find(functions.begin(), functions.end(), name) == functions.end()) {
        functions.push_back(name);
      }
    }
  }
  return {};
}

Result<record::Request> make_request(const Parsed& parsed) {
  record::Request request;
  request.file = parsed.text("output").value_or(kDefaultFile);
  if (request.file == "-") {
    return usage_error("record",
                       "-o -: a capture is written by position, which a pipe does not have; name "
                       "a file (./- if it shall be called so)");
  }
  request.command = parsed.command();
  request.probes = parsed.has("probes");
  request.session.clock = parsed.text("clock").value_or("mono");
  Result<void> done = add_rules(parsed, request);
  if (done) done = add_selection(parsed, request);
  if (done) done = add_graph(parsed, request);
  if (!done) return pass(done);
  const Result<std::optional<double>> seconds = parsed.seconds("duration");
  if (!seconds) return tl::unexpected(seconds.error());
  request.seconds = *seconds;
  constexpr std::uint64_t kLeastKb = 64, kMostKb = 64 << 20;
  const auto buffer_kb = parsed.number("buffer-size", kLeastKb, kMostKb);
  if (!buffer_kb) return tl::unexpected(buffer_kb.error());
  request.session.buffer_kb = buffer_kb->value_or(0);  // 0 = what the memory allows
  constexpr std::uint64_t kMostSubKb = 512;            // 128 pages
  const auto sub_buffer_kb = parsed.number("sub-buffer-size", 4, kMostSubKb);
  if (!sub_buffer_kb) return tl::unexpected(sub_buffer_kb.error());
  request.session.sub_buffer_kb = sub_buffer_kb->value_or(0);
  const auto version = parsed.number("file-version", 6, 7);
  if (!version) return tl::unexpected(version.error());
  request.version = static_cast<tracedat::FileVersion>(version->value_or(7));
  return request;
}

void print_missing(const std::vector<std::string>& missing) {
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) names += " " + name;
  say(fmt::format("skbtrail: not in this kernel, skipped:{}\n", names));
}

void print_loss(const record::Summary& summary) {
  if (summary.lost == 0) {
    say("  lost      0\n");
    return;
  }
  std::string per_cpu;
  for (const record::CpuSummary& cpu : summary.cpus) {
    if (cpu.lost > 0)
      per_cpu +=
          fmt::format("{}cpu{} {}", per_cpu.empty() ? "" : ", ", cpu.cpu, human_count(cpu.lost));
  }
  say(fmt::format("  lost      {} ({})\n", human_count(summary.lost), per_cpu));
  say("            raise --buffer-size, or record less: --profile net-min, -d, -e\n");
}

void print_missed_probes(const record::Summary& summary) {
  for (const tracefs::ProbeMisses& probe : summary.missed_probes) {
    say(fmt::format("  missed    {} calls of {}(): the CPU was in another kprobe\n",
                    human_count(probe.count), probe.function));
  }
}

void print_summary(const record::Request& request, const record::Summary& summary) {
  print_missing(summary.missing);
  for (const std::string& note : summary.notes) say(fmt::format("skbtrail: {}\n", note));
  const std::string file = request.file.string();
  const double seconds = std::max(summary.seconds, 1e-9);
  const double cpu_seconds = static_cast<double>(summary.reader_cpu_time) / 1e9;
  say(fmt::format("skbtrail: recorded {:.3f} s into {}{}\n", summary.seconds, file,
                  summary.kept_old ? ", the earlier capture is now " + file + ".old" : ""));
  say(fmt::format("  events    {}, {}\n", human_count(summary.events),
                  human_rate(summary.events, static_cast<Nanoseconds>(seconds * 1e9))));
  print_loss(summary);
  print_missed_probes(summary);
  say(fmt::format("  cost      {:.3f} s of CPU time for reading, {:.1f} % of one CPU\n",
                  cpu_seconds, 100 * cpu_seconds / seconds));
  say(fmt::format("  file      {}\n", human_bytes(summary.file_size)));
  say(fmt::format("next: skbtrail report {}\n", file));
}

int outcome(const Parsed& parsed, const record::Summary& summary) {
  if (!summary.trouble.empty()) {
    return complain({ErrorKind::failed, summary.trouble + "\nrecording stopped early; what was "
                                                          "recorded until then is in the file"});
  }
  if (summary.command_status.value_or(0) != 0) return *summary.command_status;
  const bool complete = summary.lost == 0 && summary.missed_probes.empty() && !summary.switched_off;
  return !complete && parsed.has("strict") ? kEventsLost : kOk;
}

}  // namespace

int record(std::span<const std::string> words) {
  const Arguments arguments = make_arguments();
  const Result<Parsed> parsed = arguments.parse(words);
  if (!parsed) return complain(parsed.error());
  if (parsed->has("help")) return arguments.print_help();
  Result<record::Request> request = make_request(*parsed);
  if (!request) return complain(request.error());
  const bool quiet = parsed->has("quiet");
  if (!quiet && request->command.empty() && !request->seconds) {
    request->started = [] { say("skbtrail: recording, Ctrl-C stops\n"); };
  }
  const Result<record::Summary> summary = record::record(*request);
  if (!summary) return complain(summary.error());
  if (!quiet) print_summary(*request, *summary);
  return outcome(*parsed, *summary);
}

}  // namespace skbtrail::cli
