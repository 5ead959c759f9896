#include "tracefs/probes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "tracefs/access.h"

namespace skbtrail::tracefs {
namespace {

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

}  // namespace

void Probes::Remove::operator()(tracefs_dynevent* event) const {
  tracefs_dynevent_destroy(event, false);  // busy: somebody else's recording still needs it
  tracefs_dynevent_free(event);
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
  const std::filesystem::path folder = tracefs_tracing_dir();
  const Result<std::string> profile = read_whole(folder / "kprobe_profile");
  std::vector<ProbeMisses> all;
  for (const std::string& function : functions_) {
    all.push_back({function, profile ? misses_of(*profile, function) : 0});
  }
  return all;
}

Result<Probes> Probes::create(const KernelEvents& kernel) {
  if (!tracefs_file_exists(nullptr, "kprobe_events")) {
    return fail(ErrorKind::unsupported,
                "this kernel has no kprobe events (CONFIG_KPROBE_EVENTS): record without --probes");
  }
  Probes probes;
  for (const Probe& probe : kProbes) {
    if (!is_needed(probe, kernel)) continue;
    std::unique_ptr<tracefs_dynevent, Remove> event(
        tracefs_kprobe_alloc(kGroup, probe.function, probe.function, probe.arguments));
    if (event == nullptr) return fail(ErrorKind::failed, "no memory for a kprobe event");
    errno = 0;
    const bool made = tracefs_dynevent_create(event.get()) == 0;
    // EEXIST: another recording has made it, or one that was killed has left it.
    if (!made && errno != EEXIST) {
      const int error = errno;
      tracefs_dynevent_free(event.release());
      if (error == EACCES || error == EPERM) {
        return tl::unexpected(access_error(error, "kprobe_events"));
      }
      probes.missing_.emplace_back(probe.function);
      continue;
    }
    probes.events_.push_back(std::move(event));
    probes.functions_.emplace_back(probe.function);
  }
  return probes;
}

}  // namespace skbtrail::tracefs
