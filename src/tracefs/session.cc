#include "tracefs/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/fd.h"
#include "tracefs/access.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kTaskNamesFile = "saved_cmdlines_size";
// The kernel keeps 128 names by default (SAVED_CMDLINES_DEFAULT), and a busy server has more tasks.
constexpr std::uint64_t kTaskNames = 16384;

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return text;
}

// One write() for the whole text: tracefs takes each write as one value.
Result<void> write_file(const fs::path& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0) {
    return tl::unexpected(access_error(errno, path));
  }
  return {};
}

// The number after "NAME: " at the start of a line.
std::uint64_t number_after(const std::string& text, const std::string& name) {
  const std::string key = name + ": ";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') {
      return std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
    }
  }
  return 0;
}

// "field: char data;  offset:16;  size:4080;": where events start and how much room they have.
std::uint32_t page_size_of(const std::string& header_page) {
  const std::size_t data = header_page.find(" data;");
  if (data == std::string::npos) return 0;
  const auto value = [&](const char* key) {
    const std::size_t at = header_page.find(key, data);
    if (at == std::string::npos) return 0UL;
    return std::strtoul(header_page.c_str() + at + std::string_view(key).size(), nullptr, 10);
  };
  return static_cast<std::uint32_t>(value("offset:") + value("size:"));
}

}  // namespace

CpuStats parse_cpu_stats(CpuId cpu, std::string text) {
  CpuStats stats;
  stats.cpu = cpu;
  stats.entries = number_after(text, "entries");
  stats.overrun = number_after(text, "overrun");
  stats.commit_overrun = number_after(text, "commit overrun");
  stats.dropped = number_after(text, "dropped events");
  stats.read = number_after(text, "read events");
  stats.text = std::move(text);
  return stats;
}

void Session::Remove::operator()(tracefs_instance* instance) const {
  tracefs_instance_destroy(instance);
  tracefs_instance_free(instance);
}

Session::Session(fs::path root, Instance instance)
    : root_(std::move(root)), instance_(std::move(instance)) {}

Session::Restore::~Restore() {
  (void)write_file(path, text);
}

Result<Session> Session::create(const fs::path& tracing_folder, const SessionOptions& options) {
  const std::string base = "skbtrail-" + std::to_string(getpid());
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = attempt == 0 ? base : base + "-" + std::to_string(attempt);
    // A process in another pid namespace may hold the name.
    if (tracefs_instance_exists(name.c_str())) continue;
    // A null instance means the top buffer to every function of libtracefs: never go on with it.
    tracefs_instance* raw = tracefs_instance_create(name.c_str());
    if (raw == nullptr) {
      return tl::unexpected(access_error(errno, tracing_folder / "instances" / name));
    }
    Session session(tracing_folder, Instance(raw));
    Result<void> done = session.setup(options);
    if (!done) return pass(done);
    return session;
  }
  return fail(ErrorKind::failed, "the names {} to {}-{} in {} are taken", base, base, kAttempts - 1,
              (tracing_folder / "instances").string());
}

Result<void> Session::setup(const SessionOptions& options) {
  // A new instance records as soon as an event is enabled.
  Result<void> done = write("tracing_on", "0");
  if (!done) return done;
  // Setting the clock empties the buffers, so it comes before anything is recorded.
  done = set_clock(options.clock);
  if (!done) return done;
  done = set_buffer_size(options.buffer_kb);
  if (!done) return done;
  // Overwrite mode: a page that follows lost ones says so itself, at the place of the gap
  // (RB_MISSED_EVENTS). Without it the kernel drops new events and only counts them.
  done = write("options/overwrite", "1");
  if (!done) return done;
  if (has("options/record-tgid")) done = write("options/record-tgid", "1");
  if (!done) return done;
  enlarge_task_names();
  return read_layout();
}

// The table of task names belongs to the whole kernel, not to an instance. Enlarging empties it, so
// it is done only when it is too small, and undone at the end; without it tasks have no names.
void Session::enlarge_task_names() {
  Result<std::string> before = read_whole(root_ / kTaskNamesFile);
  if (!before || std::strtoull(before->c_str(), nullptr, 10) >= kTaskNames) return;
  if (write_file(root_ / kTaskNamesFile, std::to_string(kTaskNames))) {
    task_names_.reset(new Restore{root_ / kTaskNamesFile, trimmed(*before)});
  }
}

Result<void> Session::set_buffer_size(std::uint64_t kb) {
  return write("buffer_size_kb", std::to_string(kb));
}

Result<void> Session::set_clock(const std::string& clock) {
  Result<std::string> clocks = read("trace_clock");
  if (!clocks) return pass(clocks);
  // "[local] global counter ..." with the one in use in brackets.
  std::string known = " " + trimmed(*clocks) + " ";
  std::replace(known.begin(), known.end(), '[', ' ');
  std::replace(known.begin(), known.end(), ']', ' ');
  if (known.find(" " + clock + " ") == std::string::npos) {
    return fail(ErrorKind::usage, "this kernel has no trace clock '{}': it has {}", clock,
                trimmed(*clocks));
  }
  return write("trace_clock", clock);
}

Result<void> Session::read_layout() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path("per_cpu"), error)) {
    const std::string name = entry.path().filename();
    if (name.rfind("cpu", 0) != 0) continue;
    cpus_.push_back(static_cast<CpuId>(std::strtoul(name.c_str() + 3, nullptr, 10)));
  }
  if (error || cpus_.empty()) {
    return fail(ErrorKind::failed, "no buffers in {}", path("per_cpu").string());
  }
  std::sort(cpus_.begin(), cpus_.end());
  // Since 6.8 an instance has its own sub-buffer size and says so in its own header_page.
  Result<std::string> header = has("events/header_page") ? read("events/header_page")
                                                         : read_whole(root_ / "events/header_page");
  if (!header) return pass(header);
  page_size_ = page_size_of(*header);
  if (page_size_ < 4096 || page_size_ % 4096 != 0) {
    return fail(ErrorKind::unsupported, "header_page of this kernel is not understood:\n{}",
                *header);
  }
  return {};
}

Result<void> Session::set_filter(const PlannedEvent& event) {
  const std::string file = "events/" + event.name.system + "/" + event.name.event + "/filter";
  if (write(file, event.filter)) return {};
  // The kernel's words, with a caret under what it did not understand. The instance has its own
  // log.
  char* log = tracefs_error_last(instance_.get());
  std::string reason = log != nullptr ? trimmed(log) : "the kernel does not say why";
  std::free(log);
  return fail(ErrorKind::usage, "{}: the kernel rejects the filter '{}'\n{}", event.name.text(),
              event.filter, reason);
}

Result<void> Session::program(const Plan& plan) {
  for (const PlannedEvent& event : plan.events) {
    if (event.filter.empty()) continue;
    Result<void> done = set_filter(event);
    if (!done) return done;
  }
  for (const PlannedEvent& event : plan.events) {
    Result<void> done =
        write("events/" + event.name.system + "/" + event.name.event + "/enable", "1");
    if (!done) return done;
  }
  return {};
}

Result<void> Session::start() {
  return write("tracing_on", "1");
}
Result<void> Session::stop() {
  return write("tracing_on", "0");
}

fs::path Session::path(const std::string& file) const {
  return root_ / "instances" / tracefs_instance_get_name(instance_.get()) / file;
}

Result<std::string> Session::read(const std::string& file) const {
  return read_whole(path(file));
}

bool Session::has(const std::string& file) const {
  return tracefs_file_exists(instance_.get(), file.c_str());
}

Result<void> Session::write(const std::string& file, const std::string& text) const {
  return write_file(path(file), text);
}

Result<std::vector<CpuStats>> Session::stats() const {
  std::vector<CpuStats> all;
  for (const CpuId cpu : cpus_) {
    Result<std::string> text = read("per_cpu/cpu" + std::to_string(cpu) + "/stats");
    if (!text) return pass(text);
    all.push_back(parse_cpu_stats(cpu, std::move(*text)));
  }
  return all;
}

}  // namespace skbtrail::tracefs
