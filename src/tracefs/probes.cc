#include "tracefs/probes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "base/error.h"
#include "tracefs/access.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "kprobe_events";

struct Probe {
  const char* function;   // gives the event its name
  const char* arguments;  // of the function, as fields of event/probe.h
  // The event that says it on newer kernels, and the field that does: then no probe is needed.
  const char* system;
  const char* event;
  const char* field;
};

// Signatures: net/ipv4/tcp_input.c, tcp_output.c, udp.c, net/core/sock.c, gro.c; 5.15 to 6.18.
constexpr std::array kProbes{
    Probe{"tcp_rcv_established", "skaddr=$arg1:x64 skbaddr=$arg2:x64", "tcp", "tcp_probe",
          "skbaddr"},
    Probe{"sock_def_readable", "skaddr=$arg1:x64", "sock", "sk_data_ready", "skaddr"},
    Probe{"__udp_enqueue_schedule_skb", "skaddr=$arg1:x64 skbaddr=$arg2:x64", "", "", ""},
    Probe{"__tcp_transmit_skb", "skaddr=$arg1:x64 skbaddr=$arg2:x64", "", "", ""},
    Probe{"skb_gro_receive", "held=$arg1:x64 skbaddr=$arg2:x64", "", "", ""},
};

bool is_needed(const Probe& probe, const KernelEvents& kernel) {
  if (*probe.system == '\0') return true;
  const auto fields = kernel.fields({probe.system, probe.event});
  return !fields || std::find(fields->begin(), fields->end(), probe.field) == fields->end();
}

// 0, or errno. Opened to be overwritten the file would remove everybody's events (probes_open(),
// kernel/trace/trace_kprobe.c).
int write_line(const fs::path& file, const std::string& line) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  return fd && ::write(fd.get(), line.data(), line.size()) >= 0 ? 0 : errno;
}

}  // namespace

Probes::~Probes() {
  if (!in_use_ || ::flock(in_use_.get(), LOCK_EX | LOCK_NB) != 0) return;
  for (const std::string& function : functions_) {
    (void)write_line(tracing_folder_ / kFile, fmt::format("-:{}/{}\n", kGroup, function));
  }
}

std::uint64_t misses_of(std::string_view kprobe_profile, std::string_view event) {
  std::istringstream lines{std::string(kprobe_profile)};
  std::uint64_t misses = 0;
  std::string name;
  std::uint64_t hits = 0;
  std::uint64_t missed = 0;
  while (lines >> name >> hits >> missed) misses += name == event ? missed : 0;
  return misses;
}

std::vector<ProbeMisses> Probes::misses() const {
  const Result<std::string> profile = read_whole(tracing_folder_ / "kprobe_profile");
  std::vector<ProbeMisses> all;
  for (const std::string& function : functions_) {
    all.push_back({function, profile ? misses_of(*profile, function) : 0});
  }
  return all;
}

Result<Probes> Probes::create(const fs::path& tracing_folder, const KernelEvents& kernel) {
  const fs::path file = tracing_folder / kFile;
  Fd in_use(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in_use && errno == ENOENT) {
    return fail(ErrorKind::unsupported,
                "this kernel has no kprobe events (CONFIG_KPROBE_EVENTS): record without --probes");
  }
  if (!in_use) return tl::unexpected(access_error(errno, file));
  (void)::flock(in_use.get(), LOCK_SH);  // waits while the last one of others removes them
  Probes probes(tracing_folder, std::move(in_use));
  for (const Probe& probe : kProbes) {
    if (!is_needed(probe, kernel)) continue;
    const int error = write_line(file, fmt::format("p:{}/{} {} {}\n", kGroup, probe.function,
                                                   probe.function, probe.arguments));
    if (error == EACCES || error == EPERM) return tl::unexpected(access_error(error, file));
    // EEXIST: another recording has made it, or one that was killed has left it.
    const bool is_there = error == 0 || error == EEXIST;
    (is_there ? probes.functions_ : probes.missing_).emplace_back(probe.function);
  }
  return probes;
}

}  // namespace skbtrail::tracefs
