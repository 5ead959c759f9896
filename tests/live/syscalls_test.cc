// What `skbtrail syscalls` says of a TCP forwarder of our own: with larger buffers it makes fewer
// calls of more bytes, and it made the calls that strace counted in the same run.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "base/fd.h"
#include "event/sched.h"
#include "skbtrail/units.h"
#include "stream/trace.h"
#include "stream/walk.h"
#include "support/background.h"
#include "support/ends.h"
#include "support/files.h"
#include "support/recording.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

constexpr std::uint16_t kPortIn = 7101, kPortOut = 7102;
constexpr std::uint64_t kBytes = 16 << 20;

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(what);
}

sockaddr_in at(const End& end, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  check(inet_pton(AF_INET, end.address.c_str(), &address.sin_addr) == 1, "address");
  return address;
}

// Takes one connection and all its bytes.
class Sink {
 public:
  explicit Sink(const End& end) : listener_(socket_in(end.space, AF_INET, SOCK_STREAM)) {
    const sockaddr_in address = at(end, kPortOut);
    const int on = 1;
    const timeval patience{20, 0};
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(listener_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    check(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              listen(listener_.get(), 1) == 0,
          "listen");
    bytes_ = std::async(std::launch::async, [this] {
      const Fd peer(accept(listener_.get(), nullptr, nullptr));
      check(static_cast<bool>(peer), "accept");
      std::vector<char> buffer(1 << 20);
      std::uint64_t sum = 0;
      for (ssize_t got = 1; got > 0; sum += static_cast<std::uint64_t>(got)) {
        got = recv(peer.get(), buffer.data(), buffer.size(), 0);
        check(got >= 0, "recv");
      }
      return sum;
    });
  }
  std::uint64_t bytes() { return bytes_.get(); }

 private:
  Fd listener_;
  std::future<std::uint64_t> bytes_;
};

void send_all(const End& from, const End& to) {
  const Fd fd = socket_in(from.space, AF_INET, SOCK_STREAM);
  const sockaddr_in address = at(to, kPortIn);
  check(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
        "connect");
  const std::vector<char> block(1 << 16, 'x');
  for (std::uint64_t sent = 0; sent < kBytes;) {
    const ssize_t put = send(fd.get(), block.data(), block.size(), MSG_NOSIGNAL);
    check(put > 0, "send");
    sent += static_cast<std::uint64_t>(put);
  }
}

struct Call {
  std::uint64_t count = 0, errors = 0, restarted = 0, bytes = 0, moving = 0;
  Nanoseconds wall = 0, parts = 0;
  std::uint64_t open_at_start = 0, timeouts = 0, empty = 0;
};
using Calls = std::map<std::string, Call>;

class LiveSyscalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }

  // Records all calls and what the scheduler does into `file` while `work` goes on.
  template <class Work>
  void record(Work work) {
    Background recorder({SKBTRAIL_BINARY,
                         "record",
                         "-o",
                         file,
                         "--buffer-size",
                         "65536",
                         "-e",
                         "raw_syscalls:sys_enter",
                         "-e",
                         "raw_syscalls:sys_exit",
                         "-e",
                         "sched:sched_switch",
                         "-e",
                         "sched:sched_waking",
                         "-e",
                         "sched:sched_process_fork",
                         "-e",
                         "sched:sched_process_exec",
                         "-e",
                         "sched:sched_wakeup_new"});
    check(recorder.wait_for("recording"), "recording");
    work();
    recorder.signal(SIGINT);
    const RunResult recorded = recorder.finish();
    EXPECT_EQ(recorded.status, 0) << recorded.err;
  }

  // The forwarder copies kBytes with this buffer; `before` stands before its name.
  void forward(std::size_t buffer, const std::vector<std::string>& before = {}) {
    const VethEnds ends;
    Sink sink(ends.server);
    std::vector<std::string> words = before;
    for (const std::string& word :
         {std::string(FORWARDER_BINARY), ends.server.space, ends.server.address,
          std::to_string(kPortIn), ends.client.space, ends.server.address, std::to_string(kPortOut),
          std::to_string(buffer)}) {
      words.push_back(word);
    }
    Background forwarder(words);
    check(forwarder.wait_for("ready"), "forwarder");
    send_all(ends.client, ends.server);
    EXPECT_EQ(sink.bytes(), kBytes);
    EXPECT_EQ(forwarder.finish().status, 0);
  }

  // Of all tasks with one of these names; `more` are options.
  Calls calls(const std::set<std::string>& comms, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"syscalls", "--format", "json", file};
    words.insert(words.end(), more.begin(), more.end());
    const RunResult result = skbtrail(words);
    EXPECT_EQ(result.status, 0) << result.err;
    const json::value document = json::parse(result.out);
    EXPECT_EQ(document.at("lost_events").to_number<std::uint64_t>(), 0U);
    Calls calls;
    for (const json::value& task : document.at("tasks").as_array()) {
      if (!comms.contains(std::string(task.at("comm").as_string()))) continue;
      for (const json::value& row : task.at("calls").as_array()) {
        add(calls[std::string(row.at("name").as_string())], row.as_object());
      }
    }
    return calls;
  }

  static void add(Call& call, const json::object& row) {
    const auto number = [&row](const char* key) {
      return row.contains(key) ? row.at(key).to_number<std::uint64_t>() : 0;
    };
    call.count += number("count");
    call.errors += number("errors");
    call.restarted += number("restarted");
    call.bytes += number("bytes");
    call.moving += number("moving");
    call.wall += number("wall_ns");
    call.parts += number("on_cpu_ns") + number("blocked_ns") + number("runnable_ns");
    call.open_at_start += number("open_at_start");
    call.timeouts += number("timeouts");
    call.empty += number("empty");
  }

  // `ours` begins with the exec. strace's own child makes a few calls before it becomes the
  // program: of these strace counts the execve() alone, whose return is the first thing after the
  // exec.
  void expect_what_strace_counted(const Calls& theirs, const Calls& ours) const {
    for (const auto& [name, call] : theirs) {
      ASSERT_TRUE(ours.contains(name)) << name;
      EXPECT_EQ(ours.at(name).count + ours.at(name).open_at_start, call.count) << name;
      // Its result is a register of the interrupted code, which strace takes for an error.
      const std::uint64_t errors = name == "rt_sigreturn" ? 0 : call.errors;
      EXPECT_EQ(ours.at(name).errors, errors) << name;
    }
    for (const auto& [name, call] : ours) {
      EXPECT_TRUE(theirs.contains(name) || name == "exit_group") << name;
    }
  }

  TemporaryFolder folder;
  std::string file = folder / "forward.dat";
};

TEST_F(LiveSyscalls, larger_buffers_make_fewer_calls_of_more_bytes) {
  std::uint64_t fewer = ~std::uint64_t{0};
  double more = 0;
  for (const std::size_t buffer : {8 << 10, 16 << 10, 64 << 10}) {
    record([&] { forward(buffer); });
    const Calls calls = this->calls({"forwarder"});
    for (const char* name : {"read", "write"}) {
      const Call& call = calls.at(name);
      std::printf("%5zu bytes: %s %llu calls, %llu bytes each\n", buffer, name,
                  static_cast<unsigned long long>(call.count),
                  static_cast<unsigned long long>(call.bytes / call.moving));
      EXPECT_EQ(call.wall, call.parts);
    }
    // A program also reads the libraries it is linked with, and says that it is ready.
    EXPECT_GE(calls.at("read").bytes, kBytes);
    EXPECT_LT(calls.at("read").bytes, kBytes + (64 << 10));
    EXPECT_EQ(calls.at("write").bytes, kBytes + 6);
    const Call& read = calls.at("read");
    const double each = static_cast<double>(read.bytes) / static_cast<double>(read.moving);
    EXPECT_LT(read.count, fewer);
    EXPECT_GT(each, more);
    EXPECT_LE(each, static_cast<double>(buffer));
    fewer = read.count;
    more = each;
  }
}

// "% time seconds usecs/call calls errors syscall", errors only where there are any.
Calls strace_counts(const std::string& text) {
  Calls calls;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const bool row =
        all.size() >= 5 && all[0].find_first_not_of("0123456789.") == std::string::npos;
    if (!row || all.back() == "total") continue;
    Call& call = calls[all.back()];
    call.count = std::stoull(all[3]);
    call.errors = all.size() > 5 ? std::stoull(all[4]) : 0;
  }
  return calls;
}

// When the program `name` was started, on the capture's clock.
class ExecTime {
 public:
  ExecTime(const std::string& file, std::string_view name) : name_(name) {
    auto trace = stream::Trace::open(file);
    if (!trace) throw std::runtime_error(trace.error().message);
    stream::Dispatcher events(trace->catalog());
    events.subscribe<SchedProcessExec>(*this);
    stream::walk(*trace, events);
  }
  void on(const EventHeader& header, const SchedProcessExec& event) {
    if (event.filename.view().ends_with(name_)) time_ = header.time;
  }
  std::string seconds() const {
    return fmt::format("{}.{:09}", time_ / 1'000'000'000, time_ % 1'000'000'000);
  }

 private:
  std::string_view name_;
  Nanoseconds time_ = 0;
};

TEST_F(LiveSyscalls, strace_counts_the_same_calls_in_the_same_run) {
  if (run({"strace", "-V"}).status != 0) GTEST_SKIP() << "strace is not installed";
  const std::string table = folder / "strace.txt";
  record([&] { forward(16 << 10, {"strace", "-c", "-f", "-o", table}); });
  const Calls theirs = strace_counts(read_file(table));
  ASSERT_TRUE(theirs.contains("read"));
  EXPECT_GT(theirs.at("read").count, kBytes / (16 << 10));
  expect_what_strace_counted(
      theirs, calls({"forwarder"}, {"--time", ExecTime(file, "/forwarder").seconds() + ","}));
}

TEST_F(LiveSyscalls, calls_that_signals_interrupt_are_counted_as_strace_does) {
  if (run({"strace", "-V"}).status != 0) GTEST_SKIP() << "strace is not installed";
  const std::string table = folder / "strace.txt";
  record([&] {
    EXPECT_EQ(run({"strace", "-c", "-f", "-o", table, INTERRUPTED_BINARY}).status, 0);
  });
  const Calls ours =
      calls({"interrupted", "true"}, {"--time", ExecTime(file, "/interrupted").seconds() + ","});
  expect_what_strace_counted(strace_counts(read_file(table)), ours);
  EXPECT_GT(ours.at("read").restarted, 1U);
  EXPECT_EQ(ours.at("read").errors, ours.at("read").restarted + 1);  // and EBADF
  EXPECT_EQ(ours.at("poll").restarted, 1U);
  EXPECT_EQ(ours.at("poll").timeouts, 2U);
  EXPECT_EQ(ours.at("poll").empty, 3U);
}

}  // namespace
}  // namespace skbtrail::test
