// The table of verbs, and nothing a verb does.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/verb.h"

namespace skbtrail::cli {
namespace {

constexpr std::array kVerbs{
    Verb{"record", "capture what the kernel does with network packets", record},
    Verb{"report", "the first look at a capture: loss, packets, stages, drops, the slowest",
         report},
    Verb{"netdev-times", "receive trees and transmit chart, as perf's script prints them",
         netdev_times},
    Verb{"packets", "one line per packet, from the wire or send() to the return of recv()",
         packets},
    Verb{"drops", "dropped packets by reason, place, device and flow", drops},
    Verb{"flows", "TCP connections: packets, retransmits, windows, round-trip times", flows},
    Verb{"sched", "tasks: why they left their CPU, how long they ran, waited, slept", sched},
    Verb{"cpu", "what each CPU did with its time, interrupts and calls included", cpu},
    Verb{"syscalls", "system calls per task: on a CPU, asleep, queued; errors, bytes", syscalls},
    Verb{"list", "profiles, events and devices to record", list},
};

const Verb* find_verb(const std::string& name) {
  const auto* verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&name](const Verb& candidate) {
    return candidate.name == name;
  });
  return verb == kVerbs.end() ? nullptr : verb;
}

int unknown_verb(const std::string& name) {
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) known.emplace_back(verb.name);
  fmt::print(stderr, "skbtrail: there is no verb '{}'{}\nsee: skbtrail help\n", name,
             did_you_mean(name, known));
  return kUsage;
}

void print_overview(std::FILE* out) {
  fmt::print(out,
             "usage: skbtrail VERB [OPTION]...\n\n"
             "One packet, one line: from the wire to the return of recv(), from plain ftrace.\n\n"
             "Verbs:\n");
  for (const Verb& verb : kVerbs) fmt::print(out, "  {:<14}{}\n", verb.name, verb.about);
  fmt::print(out, "\n'skbtrail help VERB' explains a verb and shows an example.\n");
}

int help(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_overview(stdout);
    return kOk;
  }
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr) return unknown_verb(words[0]);
  return verb->run(std::vector<std::string>{"--help"});
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_overview(stderr);
    return kUsage;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  const std::string& name = words[0];
  if (name == "help" || name == "--help" || name == "-h") return help(rest);
  if (name == "--version" || name == "-V") {
    fmt::print("skbtrail {}\n", SKBTRAIL_VERSION);
    return kOk;
  }
  const Verb* verb = find_verb(name);
  return verb == nullptr ? unknown_verb(name) : verb->run(rest);
}

// What was printed with stdio is in its buffer until now: help on a full disk fails as a report
// does.
int flushed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int error = errno;
  say(fmt::format("skbtrail: cannot write the output: {}\n", errno_text(error)));
  return status == kOk ? kFailed : status;
}

// Where one of them is closed the next file that is opened would get its number: messages would go
// into a capture. Standard output stays one that cannot be written, which a report complains of.
void open_standard_files() {
  constexpr std::array kModes{O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < static_cast<int>(kModes.size()); ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)!::open("/dev/null", kModes[static_cast<std::size_t>(fd)]);  // the lowest number is `fd`
  }
}

}  // namespace
}  // namespace skbtrail::cli

int main(int argc, char** argv) {
  using namespace skbtrail::cli;
  // Nothing of ours throws, but memory can end and standard output can go away. Caught, so that the
  // way out passes all destructors: an instance of tracefs outlives the process otherwise.
  open_standard_files();
  try {
    return flushed(run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "skbtrail: %s\n", error.what());
    return kFailed;
  }
}
