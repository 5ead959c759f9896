#include "base/mapping_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "base/printable.h"

namespace skbtrail {
namespace {

// Of the signal handler: written before `end` is set, read only when it is.
struct Watched {
  std::atomic<bool> taken = false;
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0;
  std::size_t size = 0;
  std::array<char, 4352> line{};  // PATH_MAX and what is said of it
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

std::array<Watched, kMostWatched> all_watched;
std::atomic<int> status_of_exit = 0;

std::uintptr_t address_of(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

void on_sigbus(int signal, siginfo_t* info, void*) {
  const bool is_fault = info->si_code > 0;  // not sent by somebody (sigaction(2))
  const std::uintptr_t at = address_of(info->si_addr);
  for (const Watched& watched : all_watched) {
    if (!is_fault || at < watched.begin || at >= watched.end) continue;
    (void)!::write(STDERR_FILENO, watched.line.data(), watched.size);
    ::_exit(status_of_exit);
  }
  // Blocked until this returns.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  raise(signal);
}

}  // namespace

void watch_mapping(std::span<const std::uint8_t> bytes, const std::string& path) {
  for (Watched& watched : all_watched) {
    if (watched.taken.exchange(true)) continue;
    const std::string line = fmt::format(
        "skbtrail: {} became shorter, or its disk failed, while it was read; what was printed is "
        "not complete\n",
        printable(path));
    watched.size = std::min(line.size(), watched.line.size());
    std::memcpy(watched.line.data(), line.data(), watched.size);
    watched.begin = address_of(bytes.data());
    watched.end = address_of(bytes.data() + bytes.size());
    return;
  }
}

void forget_mapping(std::span<const std::uint8_t> bytes) {
  for (Watched& watched : all_watched) {
    if (watched.begin != address_of(bytes.data())) continue;
    watched.end = 0;
    watched.begin = 0;
    watched.taken = false;
  }
}

void exit_when_a_file_shrinks(int status) {
  status_of_exit = status;
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace skbtrail
