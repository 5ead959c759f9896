// nginx under wrk: the workers' switches are those of /proc, also with a program beside them that
// wants all of one CPU, and what the CPUs did is what /proc/stat says.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/fd.h"
#include "skbtrail/units.h"
#include "support/background.h"
#include "support/cpu_times.h"
#include "support/files.h"
#include "support/json.h"
#include "support/proc_switches.h"
#include "support/recording.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

// A port of 127.0.0.1 that nobody had a moment ago.
int free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

// Sockets of 127.0.0.1:port, by the kernel's number of their state.
std::map<int, int> sockets_of(int port) {
  std::map<int, int> states;
  std::istringstream in(read_file("/proc/net/tcp"));
  const std::string local = fmt::format("0100007F:{:04X}", port);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string number, its_local, remote;
    int state = 0;
    if (fields >> number >> its_local >> remote >> std::hex >> state && its_local == local) {
      ++states[state];
    }
  }
  return states;
}
constexpr int kEstablished = 1, kCloseWait = 8, kListen = 10;  // include/net/tcp_states.h

// What the CPUs do that nginx leaves alone.
enum class Others { hog, idle };

class LiveNginx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (run({"nginx", "-v"}).status != 0) GTEST_SKIP() << "there is no nginx";
    if (run({"wrk", "-v"}).status > 1) GTEST_SKIP() << "there is no wrk";
    const std::string folder = folder_.path().string();
    write_file(folder_ / "nginx.conf",
               fmt::format("worker_processes 2;\ndaemon off;\npid {0}/pid;\nerror_log {0}/log;\n"
                           "events {{ worker_connections 64; }}\n"
                           "http {{\n  access_log off;\n  client_body_temp_path {0}/body;\n"
                           "  proxy_temp_path {0}/proxy;\n  fastcgi_temp_path {0}/fastcgi;\n"
                           "  uwsgi_temp_path {0}/uwsgi;\n  scgi_temp_path {0}/scgi;\n"
                           "  server {{ listen 127.0.0.1:{1} reuseport;\n"
                           "    location / {{ return 200 \"hello\\n\"; }} }}\n}}\n",
                           folder, port_));
    nginx_.emplace(
        std::vector<std::string>{"nginx", "-e", folder_ / "log", "-c", folder_ / "nginx.conf"});
    while (sockets_of(port_)[kListen] < 2 && running()) sched_yield();
    ASSERT_TRUE(running()) << read_file(folder_ / "log");
    while (workers_.size() < 2) find_workers();
  }
  void TearDown() override {
    if (!nginx_) return;
    nginx_->signal(SIGTERM);  // the workers, too
    nginx_->finish();
  }

  bool running() const { return kill(nginx_->pid(), 0) == 0; }
  void find_workers() {
    workers_.clear();
    std::istringstream in(read_file(fmt::format("/proc/{0}/task/{0}/children", nginx_->pid())));
    for (pid_t pid = 0; in >> pid;) workers_.push_back(pid);
  }

  // Under wrk, until nothing of it is left.
  void serve(const std::vector<std::string>& before_wrk) {
    for (const pid_t pid : workers_) before_[pid] = switches_asleep(pid);
    std::vector<std::string> wrk = before_wrk;
    for (const char* word : {"wrk", "-t", "1", "-c", "8", "-d", "1s"}) wrk.emplace_back(word);
    wrk.push_back(fmt::format("http://127.0.0.1:{}/", port_));
    const RunResult result = run(wrk);
    EXPECT_EQ(result.status, 0) << result.err;
    for (;; sched_yield()) {
      auto states = sockets_of(port_);
      if (states[kEstablished] + states[kCloseWait] == 0) break;
    }
    for (const pid_t pid : workers_) after_[pid] = switches_asleep(pid);
  }

  void serve_beside_a_hog() {
    const Background hog({"taskset", "-c", "0", "sh", "-c", "while :; do :; done"});
    serve({});
  }
  // The others idle.
  void serve_on_one_cpu() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    for (const pid_t pid : workers_) sched_setaffinity(pid, sizeof cpus, &cpus);
    serve({"taskset", "-c", "0"});
  }

  void record_serving(const char* profile, Others others) {
    const Nanoseconds outside = cpu_times().idle;
    Background recorder(
        {SKBTRAIL_BINARY, "record", "-o", file_, "--profile", profile, "--buffer-size", "65536"});
    ASSERT_TRUE(recorder.wait_for("recording"));
    const Nanoseconds inside = cpu_times().idle;
    others == Others::hog ? serve_beside_a_hog() : serve_on_one_cpu();
    least_idle_ = cpu_times().idle - inside;
    recorder.signal(SIGINT);
    const RunResult result = recorder.finish();
    ASSERT_EQ(result.status, 0) << result.err;
    most_idle_ = cpu_times().idle - outside;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "trace.dat";
  int port_ = free_port();
  std::optional<Background> nginx_;
  std::vector<pid_t> workers_;
  std::map<pid_t, ProcSwitches> before_, after_;
  Nanoseconds least_idle_ = 0, most_idle_ = 0;
};

TEST_F(LiveNginx, switches_of_each_worker_are_those_of_proc) {
  ASSERT_NO_FATAL_FAILURE(record_serving("sched", Others::hog));
  const RunResult result =
      skbtrail({"sched", "--strict", "--format", "json", "--comm", "nginx", file_});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  std::map<pid_t, json::value> tasks;
  for (const json::value& task : document.at("tasks").as_array()) {
    tasks[static_cast<pid_t>(number(task, "/pid"))] = task;
  }
  std::uint64_t switches = 0;
  for (const pid_t pid : workers_) {
    SCOPED_TRACE(pid);
    ASSERT_EQ(tasks.count(pid), 1U);
    const json::value& task = tasks[pid];
    const std::uint64_t voluntary = after_[pid].voluntary - before_[pid].voluntary;
    const std::uint64_t involuntary = after_[pid].involuntary - before_[pid].involuntary;
    EXPECT_EQ(number(task, "/voluntary"), voluntary);
    EXPECT_EQ(number(task, "/involuntary"), involuntary);
    EXPECT_EQ(number(task, "/proc/voluntary"), voluntary);
    EXPECT_EQ(number(task, "/proc/involuntary"), involuntary);
    EXPECT_EQ(number(task, "/run_ns") + number(task, "/runnable_ns") + number(task, "/blocked_ns"),
              number(task, "/end_ns") - number(task, "/begin_ns"));
    switches += voluntary + involuntary;
    std::printf("nginx worker: %llu voluntary, %llu involuntary, as in /proc\n",
                static_cast<unsigned long long>(voluntary),
                static_cast<unsigned long long>(involuntary));
  }
  EXPECT_GT(switches, 100U) << "wrk gave them work";
}

TEST_F(LiveNginx, contexts_add_up_and_idle_is_what_proc_stat_says) {
  ASSERT_NO_FATAL_FAILURE(record_serving("net", Others::idle));
  const RunResult result = skbtrail({"cpu", "--strict", "--format", "json", file_});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  Nanoseconds idle = 0, unknown = 0;
  for (const json::value& cpu : document.at("cpus").as_array()) {
    Nanoseconds sum = 0;
    for (const auto& [name, time] : cpu.at("contexts").as_object()) {
      sum += time.to_number<std::uint64_t>();
      if (name == "idle") idle += time.to_number<std::uint64_t>();
      if (name == "unknown") unknown += time.to_number<std::uint64_t>();
    }
    EXPECT_EQ(sum, number(cpu, "/wall_ns"));
  }
  // Where the kernel wrote no switch away from the idle task, its time is partly unknown to us.
  constexpr Nanoseconds kTicks = 40'000'000;  // two readings of two CPUs
  EXPECT_GE(idle + unknown + kTicks, least_idle_);
  EXPECT_LE(idle, most_idle_ + kTicks);
  std::printf("idle: ours %.3f s, /proc/stat between %.3f and %.3f s; unknown %.3f s\n",
              static_cast<double>(idle) / 1e9, static_cast<double>(least_idle_) / 1e9,
              static_cast<double>(most_idle_) / 1e9, static_cast<double>(unknown) / 1e9);
}

}  // namespace
}  // namespace skbtrail::test
