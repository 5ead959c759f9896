#include "record/recorder.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"
#include "record/assemble.h"
#include "record/clocks.h"
#include "record/command.h"
#include "record/devices.h"
#include "record/limits.h"
#include "record/metadata.h"
#include "record/output.h"
#include "record/signals.h"
#include "record/switch_counters.h"
#include "tracedat/text.h"
#include "tracefs/access.h"
#include "tracefs/graph.h"
#include "tracefs/probes.h"

namespace skbtrail::record {
namespace {

// As many as this process may have, for its readers open five for each CPU: 1,024, what a shell
// allows, are too few for 200 CPUs. The command was made before and has what it would have.
void allow_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// The steps of record(), and what must live from one to the next.
class Recording {
 public:
  Recording(Request request, Signals& signals)
      : request_(std::move(request)), signals_(signals), alarm_(::eventfd(0, EFD_CLOEXEC)) {}
  ~Recording() { (void)leave_kernel(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Result<void> make_output() {
    for (const std::filesystem::path& left : OutputFile::left_behind(request_.file)) {
      summary_.notes.push_back(
          fmt::format("a recorder that was killed left {0}: 'skbtrail report {0}' reads it, "
                      "'rm {0}*' removes it",
                      left.string()));
    }
    Result<OutputFile> output = OutputFile::create(request_.file);
    if (!output) return pass(output);
    output_.emplace(std::move(*output));
    return {};
  }

  Result<void> make_plan(const std::filesystem::path& folder) {
    Result<void> known = check_devices(request_.selection.devices, find_devices());
    if (known && !request_.session.graph.empty()) {
      known = tracefs::check_graph(folder, request_.session.graph);
      for (std::string& limit : tracefs::limits_of_graph(folder)) {
        summary_.notes.push_back(std::move(limit));
      }
    }
    if (!known) return known;
    Result<std::vector<Pid>> threads = threads_of(request_.selection.pids);
    if (!threads) return pass(threads);
    request_.selection.pids = std::move(*threads);
    Result<tracefs::KernelEvents> kernel = tracefs::KernelEvents::read(folder);
    if (kernel && request_.probes) {
      Result<void> probed = add_probes(folder, *kernel);
      if (!probed) return probed;
      kernel = tracefs::KernelEvents::read(folder);
    }
    if (!kernel) return pass(kernel);
    Result<tracefs::Plan> plan = tracefs::make_plan(request_.rules, *kernel, request_.selection);
    if (!plan) return pass(plan);
    plan_ = std::move(*plan);
    kernel_.emplace(std::move(*kernel));
    return {};
  }

  // Before the session and the threads: the waiting child inherits neither files nor locks of
  // theirs.
  Result<void> prepare_command() {
    if (request_.command.empty()) return {};
    Result<Command> command = Command::prepare(request_.command, signals_.mask_before());
    if (!command) return pass(command);
    command_.emplace(std::move(*command));
    return {};
  }

  Result<void> program(const std::filesystem::path& folder) {
    size_buffers();
    check_clock();
    for (std::string& line : tracefs::remove_left_behind(folder)) {
      summary_.notes.push_back(std::move(line));
    }
    Result<tracefs::Session> session = tracefs::Session::create(folder, request_.session);
    if (!session) return pass(session);
    session_.emplace(std::move(*session));
    if (session_->buffers().size() > 1) {
      summary_.notes.push_back(
          "this kernel has function_graph only in the top buffer: its events are in the buffer "
          "'graph' of the capture");
    }
    Result<void> done = session_->program(plan_);
    if (!done) return done;
    if (!plan_.left_out.empty()) {
      summary_.notes.push_back(
          fmt::format("left out, for they have not what the filter asks for: {}",
                      fmt::join(plan_.left_out, ", ")));
    }
    Result<tracedat::CaptureText> text =
        describe_kernel(*session_, *kernel_, plan_, request_.session.clock);
    if (!text) return pass(text);
    text_ = std::move(*text);
    return {};
  }

  // All that is known by now: if this process is killed, it is what the pages are read with.
  Result<void> write_start() {
    text_.options = describe_unfinished(request_);
    Result<void> written = write_head(text_, request_.version, output_->fd());
    text_.options.clear();
    return written;
  }

  Result<void> start_readers() {
    allow_open_files();
    for (std::size_t buffer = 0; buffer < session_->buffers().size(); ++buffer) {
      for (const CpuId cpu : session_->buffers()[buffer].cpus()) {
        Result<void> started = start_reader(buffer, cpu);
        if (!started) return started;
      }
    }
    return {};
  }

  // From the return of this function on, events are recorded.
  Result<void> start() {
    Result<void> counted = read_stats(course_.before);
    if (!counted) return counted;
    if (probes_) misses_before_ = probes_->misses();
    course_.start = now(CLOCK_MONOTONIC);
    course_.realtime_offset = now(CLOCK_REALTIME) - course_.start;
    Result<void> on = session_->start();
    if (!on) return on;
    note_switches("start");
    if (request_.started) request_.started();
    return command_ ? command_->go() : Result<void>();
  }

  void wait() {
    const Nanoseconds begin = now(CLOCK_MONOTONIC);
    for (;;) {
      int timeout_ms = -1;
      if (request_.seconds) {
        const double over = static_cast<double>(now(CLOCK_MONOTONIC) - begin) / 1e9;
        // An hour at most, for poll() takes an int; rounded up, so that it does not spin.
        timeout_ms = static_cast<int>(std::clamp(*request_.seconds - over, 0.0, 3600.0) * 1000 + 1);
        if (over >= *request_.seconds) return stopped(StopReason::duration_over);
      }
      const int ended = command_ ? command_->ended_fd() : -1;
      std::array<pollfd, 3> files{pollfd{signals_.fd(), POLLIN, 0}, pollfd{alarm_.get(), POLLIN, 0},
                                  pollfd{ended, POLLIN, 0}};
      ::poll(files.data(), files.size(), timeout_ms);
      if (signals_.take() != 0) return stopped(StopReason::signal);
      if (files[1].revents != 0) return stopped(StopReason::trouble);
      if (files[2].revents != 0) return stopped(StopReason::command_ended);
    }
  }

  // From the return of this function on, no event is recorded and all pages are read.
  Result<void> stop() {
    // A ring buffer that finds itself inconsistent takes no more events (RB_WARN_ON(),
    // kernel/trace/ring_buffer.c). Then tracing_on is 0, too (tracer_tracing_is_on(),
    // kernel/trace/trace.c, 5.4 to 6.1).
    for (const std::filesystem::path& folder : session_->switched_off()) {
      course_.switched_off = summary_.switched_off = true;
      summary_.notes.push_back(
          fmt::format("tracing was switched off in {} before the end, by somebody else or by the "
                      "kernel (see dmesg): what came then is missing",
                      folder.string()));
    }
    note_switches("stop");
    Result<void> off = session_->stop();
    if (!off) return off;
    off_ = true;
    course_.stop = now(CLOCK_MONOTONIC);
    if (probes_) count_misses();
    end_command();
    for (const auto& reader : readers_) {
      Result<void> finished = reader->finish();
      if (!finished && summary_.trouble.empty()) summary_.trouble = finished.error().message;
      course_.reader_cpu_time += reader->cpu_time();
    }
    return read_stats(course_.after);
  }

  Result<void> write() {
    describe_course(text_, *session_, plan_, request_, course_, summary_.stopped_by);
    // Before what may take minutes: who is killed then leaves nothing in the kernel.
    for (std::string& line : leave_kernel()) summary_.notes.push_back(std::move(line));
    // Only a Ctrl-C from here on gives it up: not one that was pressed twice, nor the SIGHUP that a
    // service manager sends behind its SIGTERM.
    while (signals_.take() != 0) {
    }
    const auto aborted = [this] { return aborted_ = aborted_ || signals_.takes(SIGINT); };
    Result<std::uint64_t> size =
        assemble(text_, request_.version, readers_, output_->fd(), aborted);
    if (!size) return pass(size);
    summary_.file_size = *size;
    Result<bool> kept = output_->commit();
    if (!kept) return pass(kept);
    summary_.kept_old = *kept;
    return {};
  }

  tl::unexpected<Error> failed(Error error) {
    for (const std::string& line : leave_kernel()) error.message += "\n" + line;
    return tl::unexpected(std::move(error));
  }

  // The same when events had been recorded: nobody but the user throws them away.
  tl::unexpected<Error> keep(Error error) {
    const std::vector<std::string> lines = leave_kernel();
    if (!aborted_) {
      for (const auto& reader : readers_) reader->save_tail();
      const std::filesystem::path kept = output_->keep();
      if (!kept.empty()) {
        error.message += fmt::format(
            "\nwhat was recorded is in {0}: 'skbtrail report {0}' reads it", kept.string());
      }
    }
    for (const std::string& line : lines) error.message += "\n" + line;
    return tl::unexpected(std::move(error));
  }

  Summary summarise() {
    for (const AllStats& buffer : course_.after) {
      for (const tracefs::CpuStats& cpu : buffer) count(cpu);
    }
    summary_.seconds = static_cast<double>(course_.stop - course_.start) / 1e9;
    summary_.reader_cpu_time = course_.reader_cpu_time;
    summary_.missing = plan_.missing;
    summary_.missed_probes = course_.missed_probes;
    return std::move(summary_);
  }

 private:
  // Nothing of ours is left in the kernel, but for what the lines tell. Readers read to the end,
  // and there is none while tracing is on.
  std::vector<std::string> leave_kernel() {
    if (!session_) return {};
    if (!off_) (void)session_->stop();
    for (const auto& reader : readers_) (void)reader->finish();
    std::vector<std::string> lines = session_->remove();
    session_.reset();
    probes_.reset();
    return lines;
  }

  Result<void> add_probes(const std::filesystem::path& folder,
                          const tracefs::KernelEvents& kernel) {
    Result<tracefs::Probes> probes = tracefs::Probes::create(folder, kernel);
    if (!probes) return pass(probes);
    probes_.emplace(std::move(*probes));
    for (const std::string& function : probes_->missing()) {
      summary_.notes.push_back(fmt::format(
          "this kernel has no function {}() to probe: what it tells stays inferred", function));
    }
    request_.rules.push_back({tracefs::Probes::kGroup, "*", "", false});
    return {};
  }

  void count_misses() {
    const std::vector<tracefs::ProbeMisses> after = probes_->misses();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::uint64_t missed =
          after[i].count - std::min(after[i].count, misses_before_[i].count);
      if (missed > 0) course_.missed_probes.push_back({after[i].function, missed});
    }
  }

  Result<void> start_reader(std::size_t buffer, CpuId cpu) {
    const tracefs::Buffer& source = session_->buffers()[buffer];
    const std::string name = buffer == 0 ? "" : text_.named_buffers[buffer - 1].name;
    Result<Fd> spool = output_->spool(tracedat::spool_suffix(name, cpu));
    if (!spool) return pass(spool);
    const std::filesystem::path file =
        source.folder() / "per_cpu" / ("cpu" + std::to_string(cpu)) / "trace_pipe_raw";
    Result<std::unique_ptr<CpuReader>> reader =
        CpuReader::start({cpu, file, source.page_size(), buffer}, std::move(*spool), alarm_.get());
    if (!reader) return pass(reader);
    readers_.push_back(std::move(*reader));
    return {};
  }

  Result<void> read_stats(std::vector<AllStats>& all) {
    for (const tracefs::Buffer& buffer : session_->buffers()) {
      Result<AllStats> stats = buffer.stats();
      if (!stats) return pass(stats);
      all.push_back(std::move(*stats));
    }
    return {};
  }

  // While events are being recorded: what happens between is in the capture.
  void note_switches(std::string_view when) {
    course_.switches += switch_counter_lines(when, clock_of(request_.session.clock));
  }

  void count(const tracefs::CpuStats& cpu) {
    // What is still in the buffer of a reader that failed is lost as well.
    const std::uint64_t lost = cpu.lost() + cpu.entries;
    summary_.events += cpu.read;
    summary_.lost += lost;
    for (CpuSummary& known : summary_.cpus) {
      if (known.cpu != cpu.cpu) continue;
      known.events += cpu.read;
      known.lost += lost;
      return;
    }
    summary_.cpus.push_back({cpu.cpu, cpu.read, lost});
  }

  void stopped(StopReason reason) { summary_.stopped_by = reason; }

  void size_buffers() {
    if (request_.session.buffer_kb != 0) return;
    const Result<std::string> meminfo = tracefs::read_whole("/proc/meminfo");
    const auto cpus = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_CONF));
    const std::uint64_t kb = sane_buffer_kb(meminfo ? *meminfo : "", cpus);
    request_.session.buffer_kb = kb;
    if (kb < kDefaultBufferKb) {
      summary_.notes.push_back(fmt::format("memory is short: buffers of {} KB per CPU", kb));
    }
  }

  // Cycles and counts: right in order, and no time.
  void check_clock() {
    const std::string& clock = request_.session.clock;
    if (clock != "x86-tsc" && clock != "counter") return;
    summary_.notes.push_back(fmt::format(
        "the clock {} does not count nanoseconds: reports of times will be wrong", clock));
  }

  void end_command() {
    if (!command_) return;
    if (summary_.stopped_by == StopReason::command_ended) {
      summary_.command_status = command_->status();
    } else if (!command_->terminate()) {
      summary_.notes.push_back(
          fmt::format("the command still runs after SIGTERM: pid {}", command_->pid()));
    }
  }

  Request request_;
  Signals& signals_;
  Fd alarm_;
  std::optional<OutputFile> output_;
  std::optional<tracefs::KernelEvents> kernel_;
  tracefs::Plan plan_;
  std::optional<Command> command_;
  std::vector<tracefs::ProbeMisses> misses_before_;
  std::optional<tracefs::Probes> probes_;  // outlive the session, which has them enabled
  std::optional<tracefs::Session> session_;
  bool off_ = false;      // tracing, by stop()
  bool aborted_ = false;  // by the user, while the file was being written
  Readers readers_;
  tracedat::CaptureText text_;
  Course course_;
  Summary summary_;
};

}  // namespace

Result<Summary> record(const Request& request) {
  Result<std::filesystem::path> folder = tracefs::tracing_folder();
  if (!folder) return pass(folder);
  Result<void> done = tracefs::check_access(*folder);
  if (!done) return pass(done);
  Result<Signals> signals = Signals::block();
  if (!signals) return pass(signals);
  Recording recording(request, *signals);
  done = recording.make_output();
  if (done) done = recording.make_plan(*folder);
  if (done) done = recording.prepare_command();
  if (done) done = recording.program(*folder);
  if (done) done = recording.write_start();
  if (done) done = recording.start_readers();
  if (done) done = recording.start();
  if (!done) return recording.failed(done.error());
  recording.wait();
  done = recording.stop();
  if (done) done = recording.write();
  if (!done) return recording.keep(done.error());
  return recording.summarise();
}

}  // namespace skbtrail::record
