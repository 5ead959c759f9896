// The account of each CPU's time: how long it was in each context, and what it did for the network.
//
// CpuContexts says what a CPU is in; this adds up. Two things are known only afterwards: of which
// mode a task was before its first call (the next sys_enter or sys_exit tells), and whether a
// read() or write() was about a socket (what happens inside tells). That time is remembered per
// task and moved when it is known, so all sums hold at every moment.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "event/net.h"
#include "event/skb.h"
#include "event/sock.h"
#include "track/cpu_context.h"
#include "track/syscall_class.h"
#include "track/syscall_names.h"

namespace skbtrail::track {

inline constexpr std::size_t kSoftirqs = kSoftirqNames.size() + 1;  // the last: not seen which

struct CpuTimes {
  // By ContextKind, those without a number.
  std::array<Nanoseconds, static_cast<std::size_t>(ContextKind::ksoftirqd_softirq) + 1> plain{};
  std::array<Nanoseconds, kSoftirqs> softirq{};  // by vector
  std::array<Nanoseconds, kSoftirqs>
      ksoftirqd_softirq{};                        // of these, in ksoftirqd: not in the above
  std::vector<Nanoseconds> hardirq;               // by number of handler
  std::array<Nanoseconds, kCallClasses> calls{};  // by CallClass

  std::uint64_t rx_packets = 0;  // that the stack received there, after GRO (netif_receive_skb)
  std::uint64_t rx_bytes = 0;
  std::uint64_t net_rx_packets = 0;  // of these, those that NET_RX or a NAPI thread received
  std::uint64_t net_rx_bytes = 0;
  std::uint64_t tx_packets = 0;  // handed to a driver, which took them (net_dev_xmit, rc 0)
  std::uint64_t tx_bytes = 0;

  Nanoseconds in(ContextKind kind) const { return plain[static_cast<std::size_t>(kind)]; }
  // NET_RX in an interrupt's end, in ksoftirqd, and its work in NAPI threads.
  Nanoseconds net_rx() const {
    return softirq[kNetRxSoftirq] + ksoftirqd_softirq[kNetRxSoftirq] + in(ContextKind::napi_thread);
  }
  Nanoseconds wall() const;
  void add(const CpuTimes& other);
};

class CpuAccount : public ContextSink {
 public:
  // `names` must outlive the account.
  explicit CpuAccount(SyscallNames& names) : names_(names), traits_(SyscallNames::kMostCalls) {}
  CpuAccount(const CpuAccount&) = delete;
  CpuAccount& operator=(const CpuAccount&) = delete;

  // Whose sink this is. It must outlive the account, and see each event first.
  void watch(const CpuContexts& contexts) { contexts_ = &contexts; }
  void subscribe(stream::Dispatcher& dispatcher);

  void on_loss(const LossWindow& window);
  void spent(CpuId cpu, const Context& context, Nanoseconds from, Nanoseconds to) override;
  void gone(TaskSlot task) override {
    if (task < unsettled_.size()) unsettled_[task] = Unsettled();
  }
  void on(const EventHeader& header, const SysEnter& event);
  void on(const EventHeader& header, const SysExit& event);
  void on(const EventHeader& header, const RawSysEnter& event);
  void on(const EventHeader& header, const RawSysExit& event);
  void on(const EventHeader& header, const NetifReceiveSkb& event);
  void on(const EventHeader& header, const NetDevXmit& event);
  void on(const EventHeader& header, const NetDevQueue&) { socket_seen(header); }
  void on(const EventHeader& header, const SkbCopyDatagramIovec&) { socket_seen(header); }
  void on(const EventHeader& header, const SockSendLength&) { socket_seen(header); }
  void on(const EventHeader& header, const SockRecvLength&) { socket_seen(header); }

  // By CPU; complete after CpuContexts::finish().
  const std::vector<CpuTimes>& cpus() const { return cpus_; }
  bool calls_seen() const { return calls_seen_; }

 private:
  // Time of a task whose context is not settled, by CPU.
  struct Unsettled {
    Context context;
    bool socket = false;
    std::vector<std::pair<CpuId, Nanoseconds>> times;
  };

  CpuTimes& at(CpuId cpu) {
    if (cpu >= cpus_.size()) [[unlikely]]
      cpus_.resize(cpu + 1);
    return cpus_[cpu];
  }
  Unsettled& unsettled(TaskSlot task) {
    if (task >= unsettled_.size()) unsettled_.resize(task + 1);
    return unsettled_[task];
  }
  CallClass call_class(std::uint16_t nr);
  void remember(CpuId cpu, const Context& context, Nanoseconds time);
  void entered(const EventHeader& header);
  void returned(const EventHeader& header, std::int64_t nr);
  void socket_seen(const EventHeader& header);

  SyscallNames& names_;
  const CpuContexts* contexts_ = nullptr;
  std::vector<CpuTimes> cpus_;
  std::vector<Unsettled> unsettled_;       // by task
  std::vector<const CallTraits*> traits_;  // by number of the call; null: not looked up yet
  bool calls_seen_ = false;
};

}  // namespace skbtrail::track
