#include "support/event_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "skbtrail/decoder.h"
#include "support/files.h"

namespace skbtrail::test {
namespace {

// Records name an event by its place here: what is added comes last, or the corpus means something
// else.
struct Name {
  std::string_view system, event;
};
constexpr std::array kEvents = std::to_array<Name>({
    {"irq", "irq_handler_entry"},
    {"irq", "irq_handler_exit"},
    {"irq", "softirq_raise"},
    {"irq", "softirq_entry"},
    {"irq", "softirq_exit"},
    {"napi", "napi_poll"},
    {"net", "napi_gro_receive_entry"},
    {"net", "napi_gro_receive_exit"},
    {"net", "napi_gro_frags_entry"},
    {"net", "napi_gro_frags_exit"},
    {"net", "netif_rx"},
    {"net", "netif_receive_skb_entry"},
    {"net", "netif_receive_skb_list_entry"},
    {"net", "netif_receive_skb"},
    {"net", "net_dev_queue"},
    {"net", "net_dev_start_xmit"},
    {"net", "net_dev_xmit"},
    {"qdisc", "qdisc_enqueue"},
    {"qdisc", "qdisc_dequeue"},
    {"skb", "consume_skb"},
    {"skb", "kfree_skb"},
    {"skb", "skb_copy_datagram_iovec"},
    {"tcp", "tcp_probe"},
    {"tcp", "tcp_retransmit_skb"},
    {"tcp", "tcp_rcv_space_adjust"},
    {"tcp", "tcp_send_reset"},
    {"tcp", "tcp_receive_reset"},
    {"sock", "sk_data_ready"},
    {"sock", "sock_send_length"},
    {"sock", "sock_recv_length"},
    {"sock", "inet_sock_set_state"},
    {"sched", "sched_switch"},
    {"sched", "sched_waking"},
    {"sched", "sched_wakeup"},
    {"sched", "sched_wakeup_new"},
    {"sched", "sched_process_fork"},
    {"sched", "sched_process_exec"},
    {"sched", "sched_process_exit"},
    {"syscalls", "sys_enter_read"},
    {"syscalls", "sys_exit_read"},
    {"syscalls", "sys_enter_write"},
    {"syscalls", "sys_exit_write"},
    {"syscalls", "sys_enter_recvfrom"},
    {"syscalls", "sys_exit_recvfrom"},
    {"syscalls", "sys_enter_recvmsg"},
    {"syscalls", "sys_exit_recvmsg"},
    {"syscalls", "sys_enter_sendto"},
    {"syscalls", "sys_exit_sendto"},
    {"syscalls", "sys_enter_sendmsg"},
    {"syscalls", "sys_exit_sendmsg"},
    {"syscalls", "sys_enter_epoll_wait"},
    {"syscalls", "sys_exit_epoll_wait"},
    {"syscalls", "sys_enter_splice"},
    {"syscalls", "sys_exit_splice"},
    {"syscalls", "sys_enter_close"},
    {"syscalls", "sys_exit_close"},
    {"raw_syscalls", "sys_enter"},
    {"raw_syscalls", "sys_exit"},
    {"irq_vectors", "local_timer_entry"},
    {"irq_vectors", "local_timer_exit"},
    {"irq_vectors", "reschedule_entry"},
    {"irq_vectors", "reschedule_exit"},
    {"skbtrail", "tcp_rcv_established"},
    {"skbtrail", "sock_def_readable"},
    {"skbtrail", "__udp_enqueue_schedule_skb"},
    {"skbtrail", "skb_gro_receive"},
    {"skbtrail", "__tcp_transmit_skb"},
});
constexpr std::size_t kFields = 8;  // of a record
constexpr std::size_t kFieldsAt = EventScript::kRecord - kFields;

// ------------------------------------------------------------------------------ the kernel

constexpr std::array<std::string_view, 3> kKernels{"6.1", "6.12", "6.18"};

// Bits of the first byte.
constexpr std::uint8_t kKernelBits = 0x03;  // modulo 3
constexpr unsigned kStartBit = 2;           // and the next one
constexpr std::uint8_t kRunsBack = 0x10;
constexpr std::uint8_t kNoStartXmit = 0x20;
constexpr std::uint8_t kNoWaking = 0x40;
constexpr std::uint8_t kNoWakeup = 0x80;

// Formats that tests/data/formats does not have: all kernels have the same.
constexpr std::uint16_t kFirstOwnId = 60000;
constexpr std::string_view kCommonFields =
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

std::string own_format(const Name& name, std::size_t number) {
  std::string fields;
  auto add = [&, offset = 8](std::string_view type, std::string_view field, int size,
                             bool is_signed) mutable {
    fields += fmt::format("\tfield:{} {};\toffset:{};\tsize:{};\tsigned:{};\n", type, field, offset,
                          size, is_signed ? 1 : 0);
    offset += size;
  };
  if (name.system == "raw_syscalls") {
    add("long", "id", 8, true);
    if (name.event == "sys_enter") add("unsigned long", "args[6]", 48, false);
    if (name.event == "sys_exit") add("long", "ret", 8, true);
  } else if (name.system == "irq_vectors") {
    add("int", "vector", 4, true);
  } else if (name.system == "skbtrail") {
    add("unsigned long", "__probe_ip", 8, false);
    const bool gro = name.event == "skb_gro_receive";
    add("u64", gro ? "held" : "skaddr", 8, false);
    if (name.event != "sock_def_readable") add("u64", "skbaddr", 8, false);
  } else {
    return {};
  }
  return fmt::format("name: {}\nID: {}\nformat:\n{}{}", name.event, kFirstOwnId + number,
                     kCommonFields, fields);
}

std::string text_of(std::string_view kernel, const Name& name, std::size_t number) {
  std::string own = own_format(name, number);
  if (!own.empty()) return own;
  const auto file =
      data_file(fmt::format("formats/{}/{}/{}.format", kernel, name.system, name.event));
  return std::filesystem::exists(file) ? read_file(file) : std::string();
}

bool is_left_out(std::uint8_t choice, std::string_view event) {
  return ((choice & kNoStartXmit) != 0 && event == "net_dev_start_xmit") ||
         ((choice & kNoWaking) != 0 && event == "sched_waking") ||
         ((choice & kNoWakeup) != 0 && (event == "sched_wakeup" || event == "sched_wakeup_new"));
}

// ------------------------------------------------------------------------------ values

// What a field's name says of its values.
enum class Rule : std::uint8_t {
  nothing,  // stays 0 and takes no byte
  skb,
  socket,
  napi,
  flow,    // both ends of a connection: one byte for all its fields
  window,  // the same for what tcp_probe says of a connection's windows
  device,
  comm,
  pid,
  len,
  data_len,
  ret,
  call,
  args,
  state,
  place,
  protocol,
  family,    // takes no byte: that of the protocol
  small,     // the number itself
  own_call,  // the number of the call that the event is of
};

Rule rule_of(const FieldFormat& field, std::string_view event) {
  static const std::map<std::string_view, Rule> kRules{
      {"skbaddr", Rule::skb},
      {"held", Rule::skb},
      {"skaddr", Rule::socket},
      {"sk", Rule::socket},
      {"sock_cookie", Rule::socket},
      {"napi", Rule::napi},
      {"saddr", Rule::flow},
      {"daddr", Rule::flow},
      {"sport", Rule::flow},
      {"dport", Rule::flow},
      {"saddr_v6", Rule::flow},
      {"daddr_v6", Rule::flow},
      {"snd_cwnd", Rule::window},
      {"ssthresh", Rule::window},
      {"snd_wnd", Rule::window},
      {"srtt", Rule::window},
      {"rcv_wnd", Rule::window},
      {"name", Rule::device},
      {"dev_name", Rule::device},
      {"prev_comm", Rule::comm},
      {"next_comm", Rule::comm},
      {"comm", Rule::comm},
      {"child_comm", Rule::comm},
      {"filename", Rule::comm},
      {"prev_pid", Rule::pid},
      {"next_pid", Rule::pid},
      {"pid", Rule::pid},
      {"old_pid", Rule::pid},
      {"parent_pid", Rule::pid},
      {"child_pid", Rule::pid},
      {"len", Rule::len},
      {"data_len", Rule::data_len},
      {"ret", Rule::ret},
      {"rc", Rule::small},
      {"id", Rule::call},
      {"args", Rule::args},
      {"prev_state", Rule::state},
      {"location", Rule::place},
      {"protocol", Rule::protocol},
      {"family", Rule::family},
      {"irq", Rule::small},
      {"vec", Rule::small},
      {"work", Rule::small},
      {"budget", Rule::small},
      {"packets", Rule::small},
      {"reason", Rule::small},
      {"oldstate", Rule::small},
      {"newstate", Rule::small},
      {"flags", Rule::small},
      {"vlan_tagged", Rule::small},
      {"err", Rule::ret},
      {"__syscall_nr", Rule::own_call},
  };
  if (field.name.starts_with("common_")) return Rule::nothing;
  if (event.starts_with("napi_gro_") && field.name == "ret") return Rule::small;
  const auto found = kRules.find(field.name);
  return found == kRules.end() ? Rule::nothing : found->second;
}

// Several fields that one byte is for.
bool is_shared(Rule rule) {
  return rule == Rule::flow || rule == Rule::window || rule == Rule::socket;
}

template <class Table>
auto choose(const Table& table, std::uint8_t choice) {
  return table[choice % table.size()];
}

constexpr std::uint8_t kSkbs = 32, kSockets = 8, kFlows = 8;
// The last one has the first one's place in a table of 2^22.
constexpr std::array<Pid, 15> kPids{1,   17,  27,  33,  55, 100,           200,          201,
                                    202, 300, 301, 302, 0,  (1 << 22) - 1, 1 + (1 << 22)};
constexpr std::array<std::string_view, 8> kDevices{"eth0", "eth1",   "lo",          "veth0",
                                                   "br0",  "vxlan0", "(no_device)", ""};
constexpr std::array<std::string_view, 8> kComms{
    "nginx",     "wrk", "ksoftirqd/0",    "napi/eth0-8193", "kworker/1:2",
    "swapper/0", "",    "a-name-of-15-xx"};
constexpr std::array<std::uint32_t, 16> kData{0,    1,    10,   52,    100,   536,   1000,  1448,
                                              1460, 2896, 4344, 14480, 32768, 65483, 65535, 65536};
constexpr std::array<std::uint32_t, 8> kHeaders{52, 0, 20, 28, 40, 60, 66, 72};
constexpr std::array<std::int64_t, 24> kReturns{
    0,  1,  10,  100,  536,  1000, 1448, 1460, 2896,  4344,  14480, 65535,
    -1, -4, -11, -104, -512, -513, -514, -516, -4095, -4096, 200,   1LL << 40};
constexpr std::array<std::int64_t, 18> kCalls{0,  1,  3,  7,  15,  20,  40,  44,   45,
                                              46, 47, 56, 57, 202, 232, 275, 1023, 1024};
constexpr std::array<std::int64_t, 12> kStates{0,    1,    2,    4,     8,     0x10,
                                               0x20, 0x40, 0x80, 0x100, 0x101, 0x402};
constexpr std::array<std::uint16_t, 10> kProtocols{0x0800, 0,      6,      17,     262,
                                                   0x86dd, 0x8100, 0x88a8, 0x0806, 1};
constexpr std::array<std::uint16_t, 4> kFamilies{2, 10, 17, 16};
constexpr std::array<std::uint64_t, 10> kPlaces{0xffffffff81000010,
                                                0xffffffff81001010,
                                                0xffffffff81002010,
                                                0xffffffff81003010,
                                                0xffffffff81004010,
                                                0xffffffff81006010,
                                                0,
                                                0xffffffff81005010,
                                                0xffffffff81007010,
                                                0xffffffff81008010};
constexpr std::array<std::uint8_t, 8> kFlags{
    0, kFlagSoftirq, kFlagHardirq, kFlagHardirq | kFlagSoftirq, kFlagNmi, kFlagBhOff, 5, 0xff};

constexpr std::uint8_t kAllOnes = 0xff, kLowest = 0xfe;

Pid pid_of(std::uint8_t choice, Pid usual) {
  return choice % 16 == 0 ? usual : kPids[choice % 16 - 1U];
}

std::uint64_t number_of(Rule rule, std::uint8_t choice, Pid usual) {
  switch (rule) {
    case Rule::skb:
      return choice == 0 ? 0 : 0xffff888100000000 + 256U * (choice % kSkbs);
    case Rule::socket:
      return choice % kSockets == 0 ? 0 : 0xffff888200000000 + 2048U * (choice % kSockets);
    case Rule::napi:
      return 0xffff888300000000 + 512U * (choice % 4);
    case Rule::window:
      return choice * 37U;
    case Rule::pid:
      return static_cast<std::uint64_t>(pid_of(choice, usual));
    case Rule::len:
      return choose(kData, choice) + choose(kHeaders, choice >> 4);
    case Rule::data_len:
      return choose(kData, choice);
    case Rule::ret:
      return static_cast<std::uint64_t>(choose(kReturns, choice));
    case Rule::call:
      return static_cast<std::uint64_t>(choose(kCalls, choice));
    case Rule::state:
      return static_cast<std::uint64_t>(choose(kStates, choice));
    case Rule::place:
      return choose(kPlaces, choice);
    case Rule::protocol:
      return choose(kProtocols, choice);
    case Rule::family:
      return choose(kFamilies, static_cast<std::uint8_t>(choice / kProtocols.size()));
    default:
      return choice;
  }
}

// 0: as x86-64 has it.
std::uint64_t call_number(std::string_view event, std::uint8_t choice) {
  static const std::map<std::string_view, std::uint64_t> kNumbers{
      {"read", 0},     {"write", 1},    {"close", 3},        {"sendto", 44},  {"recvfrom", 45},
      {"sendmsg", 46}, {"recvmsg", 47}, {"epoll_wait", 232}, {"splice", 275},
  };
  if (choice != 0) return number_of(Rule::call, choice, 0);
  const auto found = kNumbers.find(event.substr(event.find('_', sizeof "sys_" - 1) + 1));
  return found == kNumbers.end() ? 0 : found->second;
}

std::string_view comm_of(Pid pid) {
  switch (pid) {
    case 0:
      return "swapper/0";
    case 17:
      return "ksoftirqd/0";
    case 27:
      return "ksoftirqd/1";
    case 33:
      return "napi/eth0-8193";
    case 55:
      return "kworker/1:2";
    case 100:
      return "wrk";
    default:
      return "nginx";
  }
}

// One end of a connection, as a struct sockaddr_in, an IPv6 address or an IPv4 one.
void put_end(std::uint8_t* at, std::size_t size, std::uint8_t host, std::uint16_t port) {
  const std::array<std::uint8_t, 4> address{10, 0, 0, host};
  if (size == 4) {
    std::copy(address.begin(), address.end(), at);
  } else if (size == 16) {
    at[10] = at[11] = 0xff;
    std::copy(address.begin(), address.end(), at + 12);
  } else if (size >= 28) {
    at[0] = 2;  // AF_INET
    at[2] = static_cast<std::uint8_t>(port >> 8);
    at[3] = static_cast<std::uint8_t>(port & 0xff);
    std::copy(address.begin(), address.end(), at + 4);
  }
}

// The first bit says which end is the local one.
void put_flow(std::uint8_t* at, const FieldFormat& field, std::uint8_t choice) {
  const bool source = (field.name.front() == 's') == ((choice & 1) == 0);
  const auto port = static_cast<std::uint16_t>(source ? 80 : 50000 + choice % kFlows / 2);
  if (field.name.ends_with("port")) {
    std::memcpy(at, &port, std::min<std::size_t>(sizeof port, field.size));
  } else {
    put_end(at, field.size, source ? 1 : 2, port);
  }
}

void put_number(std::uint8_t* at, std::size_t size, std::uint64_t value, std::uint8_t choice) {
  if (choice == kAllOnes) value = ~std::uint64_t{0};
  if (choice == kLowest) value = std::uint64_t{1} << (8 * size - 1);
  std::memcpy(at, &value, std::min(size, sizeof value));
}

// Times from one event to the next: a power of two, and where between it and the next one.
constexpr unsigned kLastStep = 31;
Nanoseconds step(unsigned power, std::uint8_t part) {
  if (power == 0) return part;
  return (Nanoseconds{256} + part) << power >> 8;
}

void put_text(std::vector<std::uint8_t>& data, const FieldFormat& field, std::string_view text) {
  if (!field.is_data_loc && !field.is_rel_loc) {
    std::memcpy(data.data() + field.offset, text.data(),
                std::min<std::size_t>(text.size(), field.size - 1));
    return;
  }
  const std::size_t base = field.is_rel_loc ? field.offset + 4 : 0;
  const auto where = static_cast<std::uint32_t>((data.size() - base) | (text.size() + 1) << 16);
  std::memcpy(data.data() + field.offset, &where, sizeof where);
  data.insert(data.end(), text.begin(), text.end());
  data.push_back(0);
}

// The task that a name is of: prev_comm and prev_pid, next_comm and next_pid ...
Pid whose(const FieldFormat& comm, const EventFormat& format, const std::vector<std::uint8_t>& data,
          Pid writer) {
  if (!comm.name.ends_with("comm")) return writer;
  const FieldFormat* field = format.find(comm.name.substr(0, comm.name.size() - 4) + "pid");
  Pid pid = writer;
  if (field != nullptr) std::memcpy(&pid, data.data() + field->offset, sizeof pid);
  return pid;
}

// Of each field; 0 for those that take no byte, or that find none left.
std::vector<std::uint8_t> choices_of(std::span<const std::uint8_t> record,
                                     const EventFormat& format) {
  std::vector<std::uint8_t> choices;
  std::map<Rule, std::uint8_t> shared;
  std::size_t used = kFieldsAt;
  for (const FieldFormat& field : format.fields) {
    const Rule rule = rule_of(field, format.name);
    const auto known = shared.find(rule);
    std::uint8_t choice = 0;
    if (is_shared(rule) && known != shared.end()) {
      choice = known->second;
    } else if (rule != Rule::nothing && rule != Rule::family && used < record.size()) {
      choice = record[used++];
      shared.emplace(rule, choice);
    }
    choices.push_back(choice);
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (rule_of(format.fields[i], format.name) == Rule::family) choices[i] = shared[Rule::protocol];
  }
  return choices;
}

// Without the fields that no record chooses: trackers read it anew for every script.
std::string shorter(std::string_view system, std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("print fmt:")) break;
    if (line.starts_with("\tfield:")) {
      const EventFormat one =
          parse_event_format(system, fmt::format("name: one\nID: 1\n{}", line)).value();
      const std::string& field = one.fields.front().name;
      const bool common = field == "common_flags" || field == "common_pid";
      if (!common && rule_of(one.fields.front(), "") == Rule::nothing) continue;
    }
    kept += fmt::format("{}\n", line);
  }
  return kept;
}

}  // namespace

ScriptedKernel::ScriptedKernel(std::uint8_t choice) : formats_(kEvents.size()) {
  const std::string_view kernel = kKernels[(choice & kKernelBits) % kKernels.size()];
  for (std::size_t number = 0; number < kEvents.size(); ++number) {
    const Name& name = kEvents[number];
    std::string text = text_of(kernel, name, number);
    if (text.empty() || is_left_out(choice, name.event)) continue;
    if (name.event == "kfree_skb") {
      reasons_ = track::DropReasons(
          symbolic_names(parse_event_format(name.system, text).value(), "reason"));
    }
    texts_.push_back(shorter(name.system, text));
    formats_[number] = parse_event_format(name.system, texts_.back()).value();
    list_.push_back({name.system, texts_.back()});
  }
  catalog_.emplace(list_);
}

const ScriptedKernel& ScriptedKernel::of(std::uint8_t choice) {
  static std::array<std::unique_ptr<ScriptedKernel>, 256> known;
  const auto its = static_cast<std::uint8_t>(choice & ~(3U << kStartBit | kRunsBack));
  if (known[its] == nullptr) known[its].reset(new ScriptedKernel(its));
  return *known[its];
}

std::string_view ScriptedKernel::cmdlines() {
  return "17 ksoftirqd/0\n27 ksoftirqd/1\n33 napi/eth0-8193\n55 kworker/1:2\n100 wrk\n200 nginx\n";
}

std::string_view ScriptedKernel::kallsyms() {
  return "ffffffff81000000 T tcp_v4_rcv\n"
         "ffffffff81001000 t inet_frag_reasm_prepare\n"
         "ffffffff81002000 t skb_release_data\n"
         "ffffffff81003000 t udp_recvmsg\n"
         "ffffffff81004000 t skb_consume_udp\n"
         "ffffffff81005000 t tcp_rcv_established\n"
         "ffffffff81006000 t unix_stream_read_generic\n"
         "ffffffff81007000 t tbf_enqueue\n"
         "ffffffff81008000 t net_rx_action\n";
}

std::string_view ScriptedKernel::uname() {
  return "Linux host 6.12 x86_64";
}

// ------------------------------------------------------------------------------ reading

EventScript::EventScript(std::span<const std::uint8_t> bytes)
    : kernel_(ScriptedKernel::of(bytes.empty() ? 0 : bytes[0])),
      rest_(bytes.subspan(bytes.empty() ? 0 : 1)) {
  constexpr std::array<Nanoseconds, 4> kStarts{1'000'000'000'000, 1, 3'000'000'000, 1ULL << 62};
  const std::uint8_t choice = bytes.empty() ? 0 : bytes[0];
  now_ = kStarts[choice >> kStartBit & 3U];
  may_run_back_ = (choice & kRunsBack) != 0;
}

bool EventScript::next(RawEvent& event, std::optional<LossWindow>& lost) {
  for (; rest_.size() >= kRecord; rest_ = rest_.subspan(kRecord)) {
    const auto record = rest_.first(kRecord);
    Cpu& cpu = cpus_[record[1] % kScriptedCpus];
    if (record[0] >= kEvents.size()) {
      constexpr std::array<std::uint64_t, 4> kCounts{kLostUnknown, 1, 100, kLostUnknown - 1};
      cpu.lost = choose(kCounts, record[kFieldsAt]);
      continue;
    }
    const EventFormat* format = kernel_.format(record[0]);
    if (format == nullptr) continue;
    const unsigned power = record[2] >> 3;
    const Nanoseconds time = step(power, record[3]);
    if (power == kLastStep && may_run_back_) {
      now_ -= std::min(now_ - 1, time >> 12);
    } else {
      now_ += time;
    }
    first_ = any_ ? std::min(first_, now_) : now_;
    last_ = std::max(last_, now_);
    any_ = true;
    const auto number = static_cast<CpuId>(record[1] % kScriptedCpus);
    fill(record, *format, number);
    event = {now_,
             data_.data(),
             static_cast<std::uint32_t>(data_.size()),
             format->id,
             static_cast<std::uint16_t>(number),
             cpu.lost};
    lost.reset();
    if (cpu.lost != 0) lost = {number, cpu.last, now_, cpu.lost};
    cpu.lost = 0;
    cpu.last = now_;
    rest_ = rest_.subspan(kRecord);
    return true;
  }
  return false;
}

void EventScript::fill(std::span<const std::uint8_t> record, const EventFormat& format, CpuId cpu) {
  std::uint32_t size = 8;
  for (const FieldFormat& field : format.fields) size = std::max(size, field.offset + field.size);
  std::vector<std::uint8_t> data(size);
  const Pid pid = pid_of(record[1] >> 2 & 15, cpus_[cpu].runs);
  std::memcpy(data.data(), &format.id, sizeof format.id);
  data[2] = choose(kFlags, record[2] & 7);
  std::memcpy(data.data() + 4, &pid, sizeof pid);
  const std::vector<std::uint8_t> choices = choices_of(record, format);
  for (std::size_t i = 0; i < format.fields.size(); ++i) {
    const FieldFormat& field = format.fields[i];
    const Rule rule = rule_of(field, format.name);
    std::uint8_t* at = data.data() + field.offset;
    if (rule == Rule::flow) {
      put_flow(at, field, choices[i]);
    } else if (rule == Rule::args) {
      for (std::size_t byte = 0; byte + 8 <= field.size; byte += 8) at[byte] = choices[i];
    } else if (rule == Rule::device) {
      put_text(data, field, choose(kDevices, choices[i]));
    } else if (rule == Rule::own_call) {
      put_number(at, field.size, call_number(format.name, choices[i]), choices[i]);
    } else if (rule != Rule::nothing && rule != Rule::comm) {
      put_number(at, field.size, number_of(rule, choices[i], pid), choices[i]);
    }
    if (field.name == "next_pid") std::memcpy(&cpus_[cpu].runs, at, sizeof(Pid));
  }
  for (std::size_t i = 0; i < format.fields.size(); ++i) {  // their tasks are known now
    const FieldFormat& field = format.fields[i];
    if (rule_of(field, format.name) != Rule::comm) continue;
    std::string_view text = choose(kComms, choices[i]);
    if (choices[i] == 0) text = comm_of(whose(field, format, data, pid));
    put_text(data, field, text);
  }
  data_ = std::move(data);
  data_.shrink_to_fit();
}

std::vector<CpuId> EventScript::cpus() const {
  return {0, 1, 2, 3};
}

std::vector<LossWindow> EventScript::lost_at_end() const {
  std::vector<LossWindow> lost;
  for (CpuId cpu = 0; cpu < kScriptedCpus; ++cpu) {
    const Cpu& its = cpus_[cpu];
    if (its.lost != 0) lost.push_back({cpu, its.last, last_, its.lost});
  }
  return lost;
}

// ------------------------------------------------------------------------------ writing

namespace {

std::uint64_t load_field(const FieldFormat& field, const RawEvent& event) {
  return load_number({field.offset, field.size, field.is_signed, false, false, true}, event.data);
}

std::string load_text(const FieldFormat& field, const RawEvent& event) {
  const auto bytes = load_bytes(
      {field.offset, field.size, false, field.is_data_loc, field.is_rel_loc, true}, event);
  const std::string text(bytes.begin(), bytes.end());
  return text.substr(0, text.find('\0'));
}

// The choice that comes nearest.
std::uint8_t nearest(Rule rule, std::uint64_t value) {
  std::uint8_t best = 0;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (unsigned choice = 0; choice < kLowest; ++choice) {
    const std::uint64_t its = number_of(rule, static_cast<std::uint8_t>(choice), 0);
    const std::uint64_t distance = std::min(its - value, value - its);
    if (distance >= least) continue;
    least = distance;
    best = static_cast<std::uint8_t>(choice);
  }
  return best;
}

// A number for each that is new, from 1 to `count`, and from the start again.
std::uint8_t numbered(std::map<std::uint64_t, std::uint8_t>& known, std::uint64_t value,
                      std::size_t count) {
  return known.emplace(value, static_cast<std::uint8_t>(1 + known.size() % count)).first->second;
}

}  // namespace

ScriptWriter::ScriptWriter(std::string_view kernel, const track::Comms& comms, Symbols& symbols)
    : comms_(comms), symbols_(symbols) {
  const auto at = std::find(kKernels.begin(), kKernels.end(), kernel);
  kernel_ = static_cast<std::uint8_t>((at - kKernels.begin()) % kKernels.size());
  script_.push_back(static_cast<char>(kernel_));
}

// As pid_of() has them: threads of the kernel keep their names.
std::uint8_t ScriptWriter::pid(Pid pid) {
  if (pid == 0) return 13;
  const std::string_view comm = comms_.name(pid);
  if (comm.starts_with("ksoftirqd/")) return comm.back() == '0' ? 2 : 3;
  if (comm.starts_with("napi/")) return 4;
  if (comm.starts_with("kworker/")) return 5;
  constexpr std::array<std::uint8_t, 8> kOthers{7, 6, 8, 9, 10, 11, 12, 1};
  return choose(kOthers, static_cast<std::uint8_t>(numbered(pids_, pid, 200) - 1));
}

std::uint8_t ScriptWriter::place(std::uint64_t location) {
  constexpr std::array<std::string_view, 6> kNames{
      "tcp_v4_rcv+",  "inet_frag_reasm_prepare+", "skb_release_data+",
      "udp_recvmsg+", "skb_consume_udp+",         "unix_stream_read_generic+"};
  const std::string name = symbols_.name(location);
  if (name.starts_with("tbf_enqueue+")) return 8;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name.starts_with(kNames[i])) return static_cast<std::uint8_t>(i);
  }
  return 0;
}

std::uint8_t ScriptWriter::choice(const FieldFormat& field, const EventFormat& format,
                                  const RawEvent& event) {
  const Rule rule = rule_of(field, format.name);
  const auto device_number = [&] {
    const std::string name = load_text(field, event);
    const auto at = std::find(kDevices.begin(), kDevices.end(), name);
    if (at != kDevices.end()) return static_cast<std::uint8_t>(at - kDevices.begin());
    return static_cast<std::uint8_t>(numbered(devices_, std::hash<std::string>()(name), 6) - 1);
  };
  switch (rule) {
    case Rule::comm:
    case Rule::args:
    case Rule::nothing:
    case Rule::own_call:
      return 0;
    case Rule::device:
      return device_number();
    case Rule::flow: {
      const FieldFormat* from = format.find("sport");
      const FieldFormat* to = format.find("dport");
      if (from == nullptr || to == nullptr) return 0;
      const std::uint64_t source = load_field(*from, event), target = load_field(*to, event);
      const bool served = source < target;
      const std::uint64_t client = served ? target : source;
      return static_cast<std::uint8_t>((numbered(flows_, client, kFlows / 2) - 1) * 2 +
                                       (served ? 0 : 1));
    }
    default:
      break;
  }
  const std::uint64_t value = load_field(field, event);
  switch (rule) {
    case Rule::skb:
      return value == 0 ? 0 : numbered(skbs_, value, kSkbs - 1);
    case Rule::socket:
      return value == 0 ? 0 : numbered(sockets_, value, kSockets - 1);
    case Rule::napi:
      return static_cast<std::uint8_t>(value >> 9);
    case Rule::pid:
      return pid(static_cast<Pid>(value));
    case Rule::place:
      return place(value);
    case Rule::small:
      return static_cast<std::uint8_t>(std::min<std::uint64_t>(value, kLowest - 1));
    default:
      return nearest(rule, value);
  }
}

bool ScriptWriter::add(const EventFormat& source, const EventHeader& header,
                       const RawEvent& event) {
  const auto known = std::find_if(kEvents.begin(), kEvents.end(), [&](const Name& name) {
    return name.system == source.system && name.event == source.name;
  });
  if (known == kEvents.end()) return false;
  const auto number = static_cast<std::size_t>(known - kEvents.begin());
  const EventFormat* format = ScriptedKernel::of(kernel_).format(number);
  if (format == nullptr) return false;
  std::array<std::uint8_t, EventScript::kRecord> record{};
  record[0] = static_cast<std::uint8_t>(number);
  record[1] = static_cast<std::uint8_t>(header.cpu % kScriptedCpus | pid(header.pid) << 2);
  const bool hard = (header.flags & kFlagHardirq) != 0, soft = (header.flags & kFlagSoftirq) != 0;
  record[2] = static_cast<std::uint8_t>(hard ? 2 + soft : soft);
  const Nanoseconds passed = before_ == 0 ? 0 : header.time - before_;
  before_ = header.time;
  unsigned power = 0;
  while (power + 1 < kLastStep && step(power, 255) < passed) ++power;
  unsigned part = 0;
  while (part < 255 && step(power, static_cast<std::uint8_t>(part)) < passed) ++part;
  record[2] = static_cast<std::uint8_t>(record[2] | power << 3);
  record[3] = static_cast<std::uint8_t>(part);
  std::size_t used = kFieldsAt;
  std::vector<Rule> shared;
  for (const FieldFormat& field : format->fields) {
    const Rule rule = rule_of(field, format->name);
    if (rule == Rule::nothing || used == record.size()) continue;
    if (is_shared(rule) && std::find(shared.begin(), shared.end(), rule) != shared.end()) continue;
    shared.push_back(rule);
    const FieldFormat* its = source.find(field.name);
    record[used++] = its == nullptr ? 0 : choice(*its, source, event);
  }
  script_.append(record.begin(), record.end());
  return true;
}

void ScriptWriter::add_gap(CpuId cpu) {
  std::array<std::uint8_t, EventScript::kRecord> record{};
  record[0] = kEvents.size();
  record[1] = static_cast<std::uint8_t>(cpu % kScriptedCpus);
  script_.append(record.begin(), record.end());
}

}  // namespace skbtrail::test
