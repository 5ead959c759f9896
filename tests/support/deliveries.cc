#include "support/deliveries.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include "support/event_log.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kUdpHeaders = 20 + 8;
constexpr std::uint32_t kTcpHeaders = 20 + 32;  // with time stamps
constexpr std::uint32_t kSyn = 60;
constexpr std::size_t kNone = ~std::size_t{0};

std::vector<std::string> record_command(const std::string& file,
                                        const std::vector<std::string>& options) {
  std::vector<std::string> words{SKBTRAIL_BINARY, "record", "-o", file, "--profile", "net"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::uint64_t number_if_there(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

std::string text_if_there(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

pid_t pid_of(const json::object& leg) {
  const json::value* task = leg.if_contains("task");
  return task != nullptr && task->is_object()
             ? static_cast<pid_t>(number_if_there(task->as_object(), "pid"))
             : 0;
}

std::optional<Arrival> arrival(const json::object& packet) {
  const json::array& legs = packet.at("legs").as_array();
  const json::object& first = legs.front().as_object();
  const json::object& last = legs.back().as_object();
  if (text_if_there(last, "direction") != "rx") return std::nullopt;
  Arrival arrival;
  arrival.id = number_if_there(packet, "id");
  arrival.len = static_cast<std::uint32_t>(number_if_there(last, "len"));
  arrival.outcome = text_if_there(packet, "outcome");
  arrival.confidence = text_if_there(packet, "confidence");
  arrival.call = text_if_there(last, "call");
  arrival.merged_into = number_if_there(packet, "merged_into");
  arrival.parent = number_if_there(packet, "parent");
  arrival.crossed_loss = packet.at("crossed_loss").as_bool();
  arrival.pid = pid_of(last);
  arrival.legs = legs.size();
  for (const auto& [name, time] : last.at("stages").as_object()) {
    arrival.stages[name] = time.to_number<Nanoseconds>();
  }
  if (legs.size() > 1) {
    arrival.sender = pid_of(first);
    arrival.send = number_if_there(first.at("stages").as_object(), "send");
  }
  // A packet that was forwarded within the softirq it came in has that in an earlier leg.
  for (const auto& [name, time] : packet.at("stages").as_object()) {
    if (name == "irq" || name == "softirq") {
      arrival.stages.try_emplace(std::string(name), time.to_number<Nanoseconds>());
    }
  }
  arrival.birth = number_if_there(last, "birth_ns");
  arrival.begin = number_if_there(packet, "begin_ns");
  arrival.total = number_if_there(packet, "total_ns");
  return arrival;
}

// In the order in which the protocol got them; where GRO or a socket's backlog joined some, in the
// order in which those came.
void sort_by_arrival(std::vector<Arrival>& arrivals) {
  std::map<std::uint64_t, Nanoseconds> reached;
  for (const Arrival& arrival : arrivals) {
    Nanoseconds time = arrival.at("proto");
    if (time == 0) time = arrival.has("stack") ? arrival.at("stack") : arrival.birth;
    reached[arrival.id] = time;
  }
  const auto key = [&](const Arrival& arrival) {
    const auto head = reached.find(arrival.merged_into);
    const Nanoseconds time = head == reached.end() ? reached.at(arrival.id) : head->second;
    return std::pair(time, arrival.birth);
  };
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [&](const Arrival& a, const Arrival& b) { return key(a) < key(b); });
}

// Is `arrival` what it must be, when `call` took its last byte?
std::string difference(const Arrival& arrival, const LoggedCall* call) {
  if (call == nullptr) {
    return arrival.outcome == "delivered" ? "delivered, but nobody read it" : "";
  }
  if (arrival.outcome != "delivered") return "is " + arrival.outcome;
  if (arrival.pid != call->tid) return fmt::format("read by {}, not {}", arrival.pid, call->tid);
  if (arrival.call != call->call) {
    return fmt::format("read by {}, not {}", arrival.call, call->call);
  }
  for (const char* stage : {"copy", "return"}) {
    if (call->contains(arrival.at(stage))) continue;
    return fmt::format("{} at {}, the call went from {} to {}", stage, arrival.at(stage),
                       call->before, call->after);
  }
  return "";
}

void judge(const Arrival& arrival, const Arrival& judged_by, const LoggedCall* call,
           Compared& compared) {
  const std::string wrong = difference(judged_by, call);
  if (wrong.empty()) {
    ++compared.right;
    if (judged_by.confidence == "socket") ++compared.socket_level;
  } else if (judged_by.outcome == "unknown") {
    ++compared.unknown;
  } else if (judged_by.outcome == "delivered" && judged_by.confidence != "exact") {
    ++compared.inferred;
  } else {
    ++compared.wrong;
  }
  if (!wrong.empty() && compared.first_wrong.empty()) {
    compared.first_wrong = fmt::format("packet {} ({} bytes, {}): {}", arrival.id, arrival.payload,
                                       judged_by.confidence, wrong);
  }
}

}  // namespace

Recording::Recording(const std::vector<std::string>& options)
    : recorder_(record_command(file_, options)) {
  if (!recorder_.wait_for("recording")) throw std::runtime_error("no recording");
}

void Recording::stop(bool may_lose) {
  recorder_.signal(SIGINT);
  const RunResult recorded = recorder_.finish();
  if (recorded.status != 0) throw std::runtime_error(recorded.err);
  std::vector<std::string> words{"packets", "--format", "json", file_};
  if (!may_lose) words.insert(words.begin() + 1, "--strict");
  const RunResult printed = skbtrail(words);
  // For a look at what went wrong; never committed.
  if (const char* keep = std::getenv("SKBTRAIL_KEEP_CAPTURE"); keep != nullptr) {
    std::filesystem::copy_file(file_, keep, std::filesystem::copy_options::overwrite_existing);
  }
  if (printed.status != 0) throw std::runtime_error("skbtrail packets: " + printed.err);
  std::istringstream lines(printed.out);
  for (std::string line; std::getline(lines, line);) {
    packets_.push_back(json::parse(line).as_object());
  }
  for (const LoggedEvent& event : load_packet_events(file_).events) {
    if (event.kind == Kind::sched_switch) switches_[event.pid].push_back(event.header.time);
  }
}

std::vector<Arrival> tcp_arrivals(const Recording& recording, const End& end,
                                  const std::string& flow) {
  // What GRO merged is of the flow of the packet that it was merged into, which has another id.
  std::set<std::uint64_t> of_flow;
  for (const json::object& packet : recording.packets()) {
    if (text_if_there(packet, "flow") == flow) of_flow.insert(number_if_there(packet, "id"));
  }
  std::vector<Arrival> arrivals;
  for (const json::object& packet : recording.packets()) {
    if (!of_flow.contains(number_if_there(packet, "id")) &&
        !of_flow.contains(number_if_there(packet, "merged_into"))) {
      continue;
    }
    const json::object& last = packet.at("legs").as_array().back().as_object();
    if (text_if_there(last, "device") != end.device) continue;
    std::optional<Arrival> found = arrival(packet);
    if (!found || found->len <= end.outer_headers + kTcpHeaders) continue;
    const bool handshake = !found->has("proto") && found->merged_into == 0;
    if (handshake && found->len == end.outer_headers + kSyn) continue;
    found->payload = found->len - end.outer_headers - kTcpHeaders;
    const auto switches = recording.switches().find(found->pid);
    if (switches != recording.switches().end()) {
      const auto next = std::lower_bound(switches->second.begin(), switches->second.end(),
                                         std::max(found->at("ready"), found->at("wake")));
      found->reader_switched_to = next != switches->second.end() && *next <= found->at("copy");
    }
    arrivals.push_back(std::move(*found));
  }
  sort_by_arrival(arrivals);
  return arrivals;
}

std::vector<Arrival> udp_arrivals(const Recording& recording, const End& end,
                                  std::uint32_t payload) {
  std::vector<Arrival> arrivals;
  for (const json::object& packet : recording.packets()) {
    const json::object& last = packet.at("legs").as_array().back().as_object();
    if (text_if_there(last, "device") != end.device) continue;
    std::optional<Arrival> found = arrival(packet);
    if (!found || found->len < end.outer_headers + kUdpHeaders + payload) continue;
    found->payload = found->len - end.outer_headers - kUdpHeaders;
    arrivals.push_back(std::move(*found));
  }
  sort_by_arrival(arrivals);
  return arrivals;
}

std::string Compared::text() const {
  return fmt::format(
      "{} packets ({} without news) with {} bytes, {} bytes read: {} right ({} at socket level), "
      "{} unknown, {} inferred but wrong, {} wrong{}{}",
      packets, brought_nothing, bytes, read, right, socket_level, unknown, inferred, wrong,
      first_wrong.empty() ? "" : "; ", first_wrong);
}

Compared compare_stream(const std::vector<Arrival>& arrivals, const std::vector<LoggedCall>& log,
                        const std::vector<ByteRange>& ranges) {
  Compared compared;
  std::vector<std::size_t> taker;  // of each byte of the stream
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (!log[i].takes) continue;
    for (std::int64_t byte = 0; byte < log[i].ret; ++byte) taker.push_back(i);
  }
  compared.read = taker.size();

  // A byte is brought by the first packet that carries it: the socket throws away what comes twice.
  std::vector<bool> brought(taker.size());
  std::vector<std::optional<std::uint64_t>> last_byte;
  std::map<std::uint64_t, std::size_t> by_id;
  std::uint64_t in_order = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const ByteRange range =
        ranges.empty() ? ByteRange{in_order, arrivals[i].payload} : ranges.at(i);
    in_order += range.count;
    last_byte.emplace_back();
    for (std::uint64_t byte = range.first; byte < range.first + range.count; ++byte) {
      if (byte >= taker.size() || brought[byte]) continue;
      brought[byte] = true;
      ++compared.bytes;
      last_byte.back() = byte;
    }
    // GRO puts packets into one that arrived before: what is said of their bytes is said there.
    by_id[arrivals[i].id] = i;
    const auto head = by_id.find(arrivals[i].merged_into);
    if (head != by_id.end()) last_byte[head->second] = last_byte[i];
  }
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const auto head = by_id.find(arrivals[i].merged_into);
    const std::size_t judged_by = head == by_id.end() ? i : head->second;
    const std::optional<std::uint64_t> byte = last_byte[judged_by];
    const std::size_t call = byte ? taker[*byte] : kNone;
    compared.call.push_back(call);
    ++compared.packets;
    if (!byte) ++compared.brought_nothing;
    judge(arrivals[i], arrivals[judged_by], byte ? &log[call] : nullptr, compared);
  }
  return compared;
}

Compared compare_datagrams(const std::vector<Arrival>& arrivals, const std::vector<LoggedCall>& log,
                           const std::vector<std::uint32_t>& counts) {
  Compared compared;
  std::map<std::size_t, std::size_t> taker;  // of each datagram
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (!log[i].takes) continue;
    for (const std::uint32_t number : log[i].datagrams) taker[number] = i;
    compared.read += log[i].datagrams.size();
  }
  std::size_t number = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    std::size_t call = 0;
    for (std::size_t left = counts.empty() ? 1 : counts.at(i); left > 0; --left, ++number) {
      const auto found = taker.find(number);
      call = call == kNone || found == taker.end() ? kNone : found->second;
    }
    compared.call.push_back(call);
    ++compared.packets;
    compared.bytes += arrivals[i].payload;
    judge(arrivals[i], arrivals[i], call == kNone ? nullptr : &log[call], compared);
  }
  return compared;
}

void expect_all_right(const std::string& what, const Compared& compared, std::uint64_t bytes) {
  std::printf("%s: %s\n", what.c_str(), compared.text().c_str());
  EXPECT_EQ(compared.bytes, bytes) << compared.text();
  EXPECT_EQ(compared.read, bytes) << compared.text();
  EXPECT_GT(compared.packets, 0U);
  EXPECT_EQ(compared.right + compared.unknown, compared.packets) << compared.text();
  EXPECT_LE(compared.unknown * 200, compared.packets) << compared.text();
}

}  // namespace skbtrail::test
