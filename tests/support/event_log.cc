#include "support/event_log.h"

#include <map>
#include <stdexcept>

#include "cli/pipeline.h"
#include "event/irq.h"
#include "event/net.h"
#include "event/probe.h"
#include "event/qdisc.h"
#include "event/sched.h"
#include "event/skb.h"
#include "event/sock.h"
#include "event/syscall.h"
#include "event/tcp.h"
#include "stream/dispatcher.h"
#include "stream/trace.h"
#include "track/syscall_names.h"

namespace skbtrail::test {
namespace {

class Recorder {
 public:
  Recorder(EventLog& log, const track::DropReasons& reasons, Symbols& symbols,
           std::string_view uname)
      : log_(log), reasons_(reasons), symbols_(symbols), names_(uname) {}

  void on(const EventHeader& h, const SoftirqEntry& e) { add(Kind::softirq_entry, h).vec = e.vec; }
  void on(const EventHeader& h, const SoftirqExit& e) { add(Kind::softirq_exit, h).vec = e.vec; }
  void on(const EventHeader& h, const NapiPoll& e) {
    LoggedEvent& event = add(Kind::napi_poll, h);
    event.device = e.device;
    event.work = e.work;
  }
  void on(const EventHeader& h, const NetifReceiveSkb& e) { add_net(Kind::receive, h, e); }
  void on(const EventHeader& h, const NetifRx& e) { add_net(Kind::netif_rx, h, e); }
  void on(const EventHeader& h, const NapiGroReceiveEntry& e) { add_rx(Kind::gro_receive, h, e); }
  void on(const EventHeader& h, const NetDevQueue& e) { add_net(Kind::queue, h, e); }
  void on(const EventHeader& h, const NetDevStartXmit& e) { add_net(Kind::start, h, e); }
  void on(const EventHeader& h, const NetDevXmit& e) { add_net(Kind::xmit, h, e).rc = e.rc; }
  void on(const EventHeader& h, const SkbCopyDatagramIovec& e) {
    LoggedEvent& event = add(Kind::copy, h);
    event.skb = e.skbaddr;
    event.len = static_cast<std::uint32_t>(e.len);
  }
  void on(const EventHeader& h, const ConsumeSkb& e) {
    LoggedEvent& event = add(Kind::consume, h);
    event.skb = e.skbaddr;
    if (e.location) event.place = function(*e.location);
  }
  void on(const EventHeader& h, const KfreeSkb& e) {
    LoggedEvent& event = add(Kind::kfree, h);
    event.skb = e.skbaddr;
    event.unspecified = reasons_.unspecified(e.reason);
    event.harmless = !reasons_.is_drop(e.reason);
    event.no_packet = e.protocol == 0;
    event.place = function(e.location);
  }
  void on(const EventHeader& h, const TcpProbe& e) {
    LoggedEvent& event = add(Kind::tcp_probe, h);
    event.skb = e.skbaddr;
    event.len = e.data_len;
    event.sock = static_cast<std::uint64_t>(e.skaddr.value_or(SockAddr{}));
    event.cookie = e.sock_cookie;
    Named& named = named_[h.cpu];
    if (!event.skb && named.tcp) {
      event.skb = named.tcp->skbaddr;
      event.sock = static_cast<std::uint64_t>(named.tcp->skaddr);
    }
    named.tcp.reset();
    named.tcp_socket = event.sock;
  }

  // Probes stand for what the event before or behind them does not tell.
  void on(const EventHeader& h, const ProbeTcpRcvEstablished& e) { named_[h.cpu].tcp = e; }
  void on(const EventHeader& h, const ProbeUdpEnqueue& e) { named_[h.cpu].udp = e; }
  void on(const EventHeader& h, const ProbeSockDefReadable& e) {
    const Named& named = named_[h.cpu];
    const bool udp = named.udp && named.udp->skaddr == e.skaddr;
    if (!udp && named.tcp_socket != static_cast<std::uint64_t>(e.skaddr)) return;
    add_ready(h, e.skaddr, udp ? kProtocolUdp : kProtocolTcp);
  }

  void on(const EventHeader& h, const IrqHandlerEntry&) { add(Kind::irq_entry, h); }
  void on(const EventHeader& h, const SoftirqRaise& e) { add(Kind::softirq_raise, h).vec = e.vec; }
  void on(const EventHeader& h, const NapiGroFragsEntry& e) { add_rx(Kind::gro_receive, h, e); }
  void on(const EventHeader& h, const NapiGroReceiveExit& e) { add(Kind::gro_exit, h).rc = e.ret; }
  void on(const EventHeader& h, const NapiGroFragsExit& e) { add(Kind::gro_exit, h).rc = e.ret; }
  void on(const EventHeader& h, const NetifReceiveSkbEntry& e) { add_rx(Kind::handed_over, h, e); }
  void on(const EventHeader& h, const NetifReceiveSkbListEntry& e) {
    add_rx(Kind::handed_over, h, e);
  }
  void on(const EventHeader& h, const QdiscEnqueue& e) { add(Kind::enqueue, h).skb = e.skbaddr; }
  void on(const EventHeader& h, const QdiscDequeue& e) { add(Kind::dequeue, h).skb = e.skbaddr; }
  void on(const EventHeader& h, const TcpRetransmitSkb& e) {
    add_socket(Kind::retransmit, h, e.skaddr);
  }
  void on(const EventHeader& h, const SkDataReady& e) {
    add_ready(h, e.skaddr, e.protocol).no_packet = !is_inet(e.family);
  }
  void on(const EventHeader& h, const SockRecvLength& e) {
    LoggedEvent& event = add_socket(Kind::recv_length, h, e.sk);
    event.protocol = inet_protocol(e);
    event.rc = e.ret;
    event.peek = (e.flags & kMsgPeek) != 0;
  }
  void on(const EventHeader& h, const TcpRcvSpaceAdjust& e) {
    add_socket(Kind::space_adjust, h, e.skaddr).cookie = e.sock_cookie;
  }
  void on(const EventHeader& h, const InetSockSetState& e) {
    LoggedEvent& event = add_socket(Kind::set_state, h, e.skaddr);
    event.old_state = e.oldstate;
    event.new_state = e.newstate;
    event.protocol = e.protocol;
  }
  void on(const EventHeader& h, const SchedWaking& e) { add(Kind::waking, h).pid = e.pid; }
  void on(const EventHeader& h, const SchedWakeup& e) { add(Kind::waking, h).pid = e.pid; }
  void on(const EventHeader& h, const SchedSwitch& e) {
    LoggedEvent& event = add(Kind::sched_switch, h);
    event.pid = e.next_pid;
    event.prev_pid = e.prev_pid;
    event.prev_sleeps = !still_runnable(e.prev_state);
  }
  void on(const EventHeader& h, const SysEnter& e) {
    if (is_twin(h, Told::enter, e.nr)) return;
    LoggedEvent& event = add(Kind::call_enter, h);
    event.call = e.family_member;
    const bool receives = event.call.starts_with("recv");
    event.peek = receives && (e.flags.value_or(0) & kMsgPeek) != 0;
  }
  void on(const EventHeader& h, const SysExit& e) {
    if (is_twin(h, Told::exit, e.nr)) return;
    LoggedEvent& event = add(Kind::call_exit, h);
    event.call = e.family_member;
    event.rc = static_cast<std::int32_t>(e.ret);
  }
  void on(const EventHeader& h, const RawSysEnter& e) {
    if (is_twin(h, Told::raw_enter, e.nr)) return;
    LoggedEvent& event = add(Kind::call_enter, h);
    event.call = names_.known(e.nr).empty() ? "?" : names_.known(e.nr);
    const int flags = event.call == "recvmsg" ? 2 : 3;
    const bool receives = event.call.starts_with("recv") && e.args->size() == 48;
    event.peek = receives && (e.args->data()[flags * 8] & kMsgPeek) != 0;
  }
  void on(const EventHeader& h, const RawSysExit& e) {
    if (is_twin(h, Told::raw_exit, e.nr)) return;
    LoggedEvent& event = add(Kind::call_exit, h);
    event.call = names_.known(e.nr).empty() ? "?" : names_.known(e.nr);
    event.rc = static_cast<std::int32_t>(e.ret);
  }

 private:
  // raw_syscalls and syscalls:* tell of the same call one behind the other: only the first is kept.
  enum class Told { nothing, enter, raw_enter, exit, raw_exit };
  bool is_twin(const EventHeader& h, Told how, std::int64_t nr) {
    auto& [before, number] = told_[h.pid];
    const bool same = number == nr && ((before == Told::enter && how == Told::raw_enter) ||
                                       (before == Told::raw_enter && how == Told::enter) ||
                                       (before == Told::exit && how == Told::raw_exit) ||
                                       (before == Told::raw_exit && how == Told::exit));
    before = same ? Told::nothing : how;
    number = nr;
    return same;
  }

  LoggedEvent& add_socket(Kind kind, const EventHeader& header, SockAddr sock) {
    LoggedEvent& event = add(kind, header);
    event.sock = static_cast<std::uint64_t>(sock);
    return event;
  }

  LoggedEvent& add_ready(const EventHeader& header, SockAddr sock, std::uint16_t protocol) {
    LoggedEvent& event = add_socket(Kind::ready, header, sock);
    event.protocol = protocol;
    std::optional<ProbeUdpEnqueue>& udp = named_[header.cpu].udp;
    if (udp && udp->skaddr == sock) event.skb = udp->skbaddr;
    udp.reset();
    return event;
  }

  LoggedEvent& add(Kind kind, const EventHeader& header) {
    LoggedEvent& event = log_.events.emplace_back();
    event.kind = kind;
    event.header = header;
    return event;
  }

  void add_rx(Kind kind, const EventHeader& header, const NetDevRxEvent& rx) {
    add_net(kind, header, rx).vlan = vlan_tag(rx);
  }
  template <class Event>
  LoggedEvent& add_net(Kind kind, const EventHeader& header, const Event& net) {
    LoggedEvent& event = add(kind, header);
    event.skb = net.skbaddr;
    event.len = net.len;
    event.device = net.device;
    return event;
  }

  // What probes said last on a CPU.
  struct Named {
    std::optional<ProbeTcpRcvEstablished> tcp;
    std::uint64_t tcp_socket = 0;
    std::optional<ProbeUdpEnqueue> udp;
  };

  std::string function(std::uint64_t location) {
    const std::string name = symbols_.name(location);
    return name.substr(0, name.find('+'));
  }

  EventLog& log_;
  const track::DropReasons& reasons_;
  Symbols& symbols_;
  track::SyscallNames names_;  // its table has a test of its own
  std::map<Pid, std::pair<Told, std::int64_t>> told_;
  std::map<CpuId, Named> named_;
};

template <class... Events>
void subscribe(stream::Dispatcher& dispatcher, Recorder& recorder) {
  (dispatcher.subscribe<Events>(recorder), ...);
}

EventLog load_log(const std::string& path, bool sockets_and_tasks) {
  auto trace = stream::Trace::open(path);
  if (!trace) throw std::runtime_error(trace.error().message);
  EventLog log;
  const track::DropReasons reasons = cli::drop_reasons(trace->catalog());
  Symbols symbols(trace->file().kallsyms());
  Recorder recorder(log, reasons, symbols, trace->file().uname());
  stream::Dispatcher dispatcher(trace->catalog());
  subscribe<SoftirqEntry, SoftirqExit, NapiPoll, NetifReceiveSkb, NetifRx, NapiGroReceiveEntry,
            NetDevQueue, NetDevStartXmit, NetDevXmit, SkbCopyDatagramIovec, ConsumeSkb, KfreeSkb,
            TcpProbe>(dispatcher, recorder);
  if (sockets_and_tasks) {
    subscribe<IrqHandlerEntry, SoftirqRaise, NapiGroFragsEntry, NapiGroReceiveExit,
              NapiGroFragsExit, NetifReceiveSkbEntry, NetifReceiveSkbListEntry, QdiscEnqueue,
              QdiscDequeue, TcpRetransmitSkb, SkDataReady, SockRecvLength, TcpRcvSpaceAdjust,
              InetSockSetState, SchedSwitch, RawSysEnter, RawSysExit>(dispatcher, recorder);
    dispatcher.subscribe_if_there<ProbeTcpRcvEstablished>(recorder);
    dispatcher.subscribe_if_there<ProbeSockDefReadable>(recorder);
    dispatcher.subscribe_if_there<ProbeUdpEnqueue>(recorder);
    dispatcher.subscribe_family<SysEnter>(recorder);
    dispatcher.subscribe_family<SysExit>(recorder);
    if (trace->catalog().find(SchedWaking::name) != nullptr) {
      subscribe<SchedWaking>(dispatcher, recorder);
    } else {
      subscribe<SchedWakeup>(dispatcher, recorder);
    }
  }
  track::CaptureFacts facts = cli::start_facts(*trace);
  cli::run_events(*trace, {&dispatcher}, facts);
  log.lossless = facts.lossless() && facts.damage.empty();
  return log;
}

}  // namespace

EventLog load_events(const std::string& path) {
  return load_log(path, false);
}

EventLog load_packet_events(const std::string& path) {
  return load_log(path, true);
}

}  // namespace skbtrail::test
