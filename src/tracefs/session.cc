#include "tracefs/session.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "tracefs/access.h"
#include "tracefs/graph.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "skbtrail-";  // of an instance's name; the pid follows
constexpr std::string_view kTaskNamesFile = "saved_cmdlines_size";
// The kernel keeps 128 names by default (SAVED_CMDLINES_DEFAULT), and a busy server has more tasks.
constexpr std::uint64_t kTaskNames = 16384;

// Its pid may be one of another pid namespace: who records has a file of the instance open, and the
// kernel removes none that is. Before it has, no event is enabled.
bool was_left(const fs::path& instance, std::string_view pid) {
  pid = pid.substr(0, pid.find_first_not_of("0123456789"));
  std::error_code error;
  if (pid.empty() || fs::exists(fs::path("/proc") / pid, error) || error) return false;
  const Result<std::string> events = read_whole(instance / "set_event");
  return events && !trimmed(*events).empty();
}

}  // namespace

std::vector<std::string> remove_left_behind(const fs::path& tracing_folder) {
  std::vector<std::string> lines;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(tracing_folder / "instances", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    if (!was_left(entry.path(), std::string_view(name).substr(kPrefix.size()))) continue;
    // The kernel refuses while anybody has a file of it open (instance_rmdir(), kernel/trace/
    // trace.c, 5.4 to 6.18).
    if (::rmdir(entry.path().c_str()) == 0) {
      lines.push_back(fmt::format("removed {}: its recorder was killed", entry.path().string()));
    }
  }
  return lines;
}

void Session::Remove::operator()(tracefs_instance* instance) const {
  tracefs_instance_destroy(instance);
  tracefs_instance_free(instance);
}

Session::Session(fs::path root, Instance instance)
    : root_(std::move(root)), instance_(std::move(instance)) {}

Result<Session> Session::create(const fs::path& tracing_folder, const SessionOptions& options) {
  const std::string base = std::string(kPrefix) + std::to_string(getpid());
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
    session.in_use_ = Fd(::open(session.path("tracing_on").c_str(), O_RDONLY | O_CLOEXEC));
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
  // Before the buffer's size, which is counted in sub-buffers.
  if (options.sub_buffer_kb != 0) done = set_sub_buffer_size(options.sub_buffer_kb);
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
  Result<Buffer> own = Buffer::look_at(path(""), root_);
  if (!own) return pass(own);
  buffers_.push_back(std::move(*own));
  return options.graph.empty() ? Result<void>() : set_graph(options);
}

Result<void> Session::set_graph(const SessionOptions& options) {
  Result<GraphPlace> place = tracefs::set_graph(
      root_, path(""), {options.graph, options.clock, options.buffer_kb}, saved_);
  if (!place) return pass(place);
  if (*place == GraphPlace::instance) return {};
  Result<Buffer> top = Buffer::look_at(root_, root_);
  if (!top) return pass(top);
  buffers_.push_back(std::move(*top));
  return {};
}

// The table of task names belongs to the whole kernel, not to an instance. Enlarging empties it, so
// it is done only when it is too small, and undone at the end; without it tasks have no names.
void Session::enlarge_task_names() {
  Result<std::string> before = read_whole(root_ / kTaskNamesFile);
  if (!before || std::strtoull(before->c_str(), nullptr, 10) >= kTaskNames) return;
  (void)task_names_.change(root_ / kTaskNamesFile, std::to_string(kTaskNames));
}

bool Session::others_record() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_ / "instances", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name != tracefs_instance_get_name(instance_.get())) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> Session::put_back() {
  std::vector<std::string> lines = saved_.put_back();
  if (task_names_.empty()) return lines;
  if (others_record()) {
    // To make the table smaller empties it: of what they record no task would have a name.
    task_names_.keep();
    lines.push_back(fmt::format("{} stays at {}: another recording needs it",
                                (root_ / kTaskNamesFile).string(), kTaskNames));
    return lines;
  }
  for (std::string& line : task_names_.put_back()) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> Session::remove() {
  std::vector<std::string> lines = put_back();
  in_use_.reset();
  if (tracefs_instance_destroy(instance_.get()) != 0) {
    const std::string reason = errno_text(errno);
    // What it costs while it is there: nothing is recorded, and its buffers are small.
    (void)write("tracing_on", "0");
    (void)write("events/enable", "0");
    (void)write("buffer_size_kb", "1");
    lines.push_back(fmt::format("{} could not be removed: {}; somebody has it open: rmdir it later",
                                path("").parent_path().string(), reason));
  }
  tracefs_instance_free(instance_.release());
  return lines;
}

// Since 6.8 (buffer_subbuf_size_write in kernel/trace/trace.c); up to 128 pages.
Result<void> Session::set_sub_buffer_size(std::uint64_t kb) {
  constexpr const char* kSubBufferSize = "buffer_subbuf_size_kb";
  if (!has(kSubBufferSize)) {
    return fail(ErrorKind::unsupported,
                "this kernel has sub-buffers of one page only: {} came with Linux 6.8",
                kSubBufferSize);
  }
  return write(kSubBufferSize, std::to_string(kb));
}

// "7 (expanded: 1408)" in the top folder is a buffer that grows when it is first used. Kernels
// where that is one flag for all buffers (ring_buffer_expanded, seen on 6.1) forget it as soon as
// any is resized, and the top one would stay tiny for whoever uses it next: then it grows now.
Result<void> Session::set_buffer_size(std::uint64_t kb) {
  constexpr std::string_view kExpanded = "expanded: ";
  const fs::path top = root_ / "buffer_size_kb";
  const Result<std::string> before = read_whole(top);
  Result<void> done = write("buffer_size_kb", std::to_string(kb));
  const Result<std::string> after = read_whole(top);
  if (!done || !before || !after) return done;
  const std::size_t at = before->find(kExpanded);
  if (at != std::string::npos && after->find(kExpanded) == std::string::npos) {
    const std::string size = before->substr(at + kExpanded.size());
    (void)write_file(top, size.substr(0, size.find_first_not_of("0123456789")));
  }
  return done;
}

Result<void> Session::set_clock(const std::string& clock) {
  Result<std::string> clocks = read("trace_clock");
  if (!clocks) return pass(clocks);
  // "[local] global counter ..." with the one in use in brackets.
  std::string known = " " + trimmed(*clocks) + " ";
  std::replace(known.begin(), known.end(), '[', ' ');
  std::replace(known.begin(), known.end(), ']', ' ');
  if (clock.empty() || known.find(" " + clock + " ") == std::string::npos) {
    return fail(ErrorKind::usage, "this kernel has no trace clock '{}': it has {}", clock,
                trimmed(*clocks));
  }
  return write("trace_clock", clock);
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

Result<void> Session::program(Plan& plan) {
  std::vector<PlannedEvent> events;
  std::optional<Error> rejected;
  for (PlannedEvent& event : plan.events) {
    Result<void> done = event.filter.empty() ? Result<void>() : set_filter(event);
    if (done) {
      events.push_back(std::move(event));
    } else if (event.by_pattern) {
      plan.left_out.push_back(event.name.text());
      rejected = done.error();
    } else {
      return done;
    }
  }
  if (events.empty() && rejected) return tl::unexpected(*rejected);
  plan.events = std::move(events);
  for (const PlannedEvent& event : plan.events) {
    Result<void> done =
        write("events/" + event.name.system + "/" + event.name.event + "/enable", "1");
    if (!done) return done;
  }
  return {};
}

Result<void> Session::start() {
  return switch_to("1");
}
// Who was writing an event when tracing went off may still be at it, as on a virtual CPU that has
// to wait: read before that, the event is never read. Writers have preemption switched off
// (ring_buffer_lock_reserve(), kernel/trace/ring_buffer.c, 5.4 to 6.18), and membarrier() waits for
// all who have: it calls synchronize_rcu() (kernel/sched/membarrier.c). It refuses where CPUs have
// no tick (nohz_full); then the event is counted as one that was not read, as before.
Result<void> Session::stop() {
  Result<void> off = switch_to("0");
  (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
  return off;
}

Result<void> Session::switch_to(const std::string& state) const {
  for (const Buffer& buffer : buffers_) {
    Result<void> done = write_file(buffer.folder() / "tracing_on", state);
    if (!done) return done;
  }
  return {};
}

std::vector<fs::path> Session::switched_off() const {
  std::vector<fs::path> folders;
  for (const Buffer& buffer : buffers_) {
    const Result<std::string> state = read_whole(buffer.folder() / "tracing_on");
    if (state && trimmed(*state) == "0") folders.push_back(buffer.folder());
  }
  return folders;
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

}  // namespace skbtrail::tracefs
