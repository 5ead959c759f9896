#include "track/delivery.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "track/context.h"
#include "track/tcp_headers.h"
#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

// A task that makes no calls of its own (a kernel thread), or whose calls were not recorded, never
// returns: its copies count at once when so many wait.
constexpr std::size_t kMaxPendingCopies = 4096;

// Of a socket that has datagrams nobody has read for so long something is heard: more come, or its
// reader goes on. One of which nothing was is new, or empty.
constexpr Nanoseconds kSoonHeardOf = 100'000'000;

// What a socket has to forget, with its queue, may be the very packet that makes it forget: a skb
// that is told of once more. Its slot is the next packet's then.
bool has_not_ended(const LiveLeg* leg) {
  return leg != nullptr && leg->alive;
}

Taking taking(const Task& task, const EventHeader& header) {
  return {header.time, header.cpu, task.sleep};
}

// Calls that move bytes out of a socket without a copy to user space.
bool is_splice(std::string_view call) {
  return call.starts_with('s') &&  // asked of every call
         (call == "splice" || call == "sendfile64" || call == "sendfile");
}

bool closes_descriptors(std::string_view call) {
  constexpr std::string_view kCalls[] = {"close", "close_range", "dup2",   "dup3",
                                         "exit",  "exit_group",  "execve", "execveat"};
  return std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}
// Or disconnects them.
bool ends_sockets(std::string_view call) {
  return call == "connect" || closes_descriptors(call);
}

[[gnu::noinline]] std::uint64_t copied_bytes(const Task& task) {
  std::uint64_t bytes = 0;
  for (const PendingCopy& copy : task.copies) bytes += copy.len;
  return bytes;
}

}  // namespace

// After a gap nothing is known of what a task was doing. What it had read is delivered, whatever
// was lost since.
void Delivery::forget_doings(Task& task) {
  settle(task.acked);
  reads_.returned(task, 0);
  task.turned = kNoFlow;
  origins_.release_sent(task);
  task.in_call = task.called = task.peeking = task.discarding = task.slept = false;
  task.datagram_freed = task.another_freed = false;
  task.begins_receive();
  task.call = task.last_call = {};
  task.sleep = {};
  task.call_entered = task.woken_early_at = 0;
  task.early_socket = 0;
  task.woken_by.clear();
  task.copies.clear();
  task.gaps = legs_.gaps();
}

Socket& Delivery::new_datagram_socket(std::uint64_t key, Nanoseconds time) {
  if (hears_since_ == 0) hears_since_ = time;  // no call has been entered yet, or none is recorded
  Socket& socket = this->socket(key);
  socket.drained = !legs_.in_gap() && time >= hears_since_ + kSoonHeardOf;
  return socket;
}

// ------------------------------------------------------------------------------ into the socket

void Delivery::received(const EventHeader& header, const Protocol::Probed& probed,
                        const TcpProbe& event) {
  Socket& socket = probed_socket(event);
  if (socket.sport != event.sport || socket.dport != event.dport) [[unlikely]]
    connects(socket, probed, event);
  Cpu& cpu = this->cpu(header.cpu);
  // What a task's backlog is answered with leaves in the task's name; of that the softirqs that
  // follow know nothing.
  origins_.works_on(header.cpu, in_task(header) ? kNoFlow : socket.flow);
  if (probed.data_len == 0 && has_not_ended(probed.leg)) {
    arrives(header, socket, *probed.leg, 0);
    probed.leg->rx.acked = true;
    legs_.release_address(*probed.leg);
    (in_task(header) ? task(header).acked : cpu.acked) = probed.leg;
    cpu.coalesced[level(header)].clear();
    return;
  }
  queue_segments(header, socket, probed);
}

// The first segment of a connection of that socket.
void Delivery::connects(Socket& socket, const Protocol::Probed& probed, TcpProbe event) {
  const bool was_another = socket.sport != 0 || !socket.datagrams.empty();
  if (was_another) queues_.begin_anew(socket);
  socket.flow = track::flow_of(flows_, event);
  socket.closed = socket.half_closed = false;
  socket.device.reset();
  socket.headers = Socket::kNoHeaders;
  socket.sport = event.sport;
  socket.dport = event.dport;
  if (!openers_.empty()) openers_.probed(socket, probed, sees_ready_);
}

void Delivery::received_unprobed(const EventHeader& header, SockAddr sk,
                                 const Protocol::Probed& probed) {
  Socket& socket = this->socket(Sockets::key(sk));
  origins_.works_on(header.cpu, in_task(header) ? kNoFlow : socket.flow);
  queue_segments(header, socket, probed);
}

void Delivery::queue_segments(const EventHeader& header, Socket& socket,
                              const Protocol::Probed& probed) {
  Cpu& cpu = this->cpu(header.cpu);
  cpu.answer[level(header)] = {socket.key};
  cpu.coalesced[level(header)].assign(probed.coalesced.begin(), probed.coalesced.end());
  std::uint32_t behind = 0;
  for (const LiveLeg* leg : probed.coalesced) behind += leg->rx.stack_len - probed.headers;
  queue_bytes(header, socket, probed.leg, probed.data_len - behind);
  for (LiveLeg* leg : probed.coalesced) {
    queue_bytes(header, socket, leg, leg->rx.stack_len - probed.headers);
  }
  socket.doubtful = socket.doubtful || probed.doubtful;  // for them room may have been made
}

Socket& Delivery::probed_socket(const TcpProbe& event) {
  if (!event.skaddr) {
    sees_cookies_ = true;
    return socket(event.sock_cookie);
  }
  Socket* known = sockets_.find(*event.skaddr, event.sock_cookie);
  return known != nullptr ? queues_.heard_of(*known) : socket(Sockets::key(*event.skaddr));
}

// Before 6.12 tcp_probe tells a socket's cookie, and what its calls tell is its address: where that
// came first, nothing is known of the cookie's.
void Delivery::has_address(std::uint64_t cookie, SockAddr sk) {
  const Socket* its = sockets_.find(cookie);
  Socket* here = sockets_.find(Sockets::key(sk));
  if (its == nullptr || here == its) return;
  if (here != nullptr && Sockets::is_address(here->key)) queues_.end(*here);
  sockets_.find(sk, cookie);
}

void Delivery::arrives(const EventHeader& header, Socket& socket, LiveLeg& leg,
                       std::uint32_t bytes) {
  if (!socket.half_closed) leg.stages.set(Stage::proto, header.time);  // else it comes too late
  leg.flow = socket.flow;
  leg.rx.socket = socket.key;
  leg.rx.data_len = bytes;
  socket.headers = std::min(socket.headers, leg.rx.stack_len - bytes);
  if (leg.confidence == Confidence::exact) socket.device = leg.rx.last_device;
}

void Delivery::queue_bytes(const EventHeader& header, Socket& socket, LiveLeg* leg,
                           std::uint32_t bytes) {
  queues_.make_room(socket);
  if (!has_not_ended(leg)) leg = nullptr;
  if (leg != nullptr && leg->rx.has_data) [[unlikely]] {
    if (Socket* other = sockets_.find(leg->rx.socket)) other->bytes.erase(*leg);  // a wrong guess
  }
  if (leg != nullptr) {
    arrives(header, socket, *leg, bytes);
    if (bytes == 0) return legs_.close(*leg, Outcome::acked);  // it was coalesced
    leg->rx.has_data = leg->rx.queued = true;
  }
  if (bytes == 0) return;
  socket.bytes.push(leg, bytes);
}

void Delivery::ready(const EventHeader& header, LiveLeg* leg, bool sure, const SkDataReady& event) {
  sees_ready_ = true;
  cpu(header.cpu).ready = leg;
  if (leg == nullptr) {
    if (event.protocol != kProtocolTcp) return;
    Answer& answer = cpu(header.cpu).answer[level(header)];
    const bool of_another =  // a listener, of which the other has just come
        Sockets::is_address(answer.socket) && answer.socket != Sockets::key(event.skaddr);
    if (!of_another) {
      // It was received in a gap, or before the capture began.
      if (Socket* socket = sockets_.find(answer.socket)) socket->bytes.announce(nullptr, 0);
      answer = {};
    }
    openers_.ready(event.skaddr, header.time);
    return;
  }
  if (event.protocol == kProtocolMptcp) {
    Socket& socket = this->socket(Sockets::key(event.skaddr));
    return subflows_.add_and_gather(socket, leg->rx.socket, sees_ready_);
  }
  if (event.protocol != kProtocolTcp && leg->rx.queued) leave(*leg);
  if (event.protocol != kProtocolTcp) origins_.took_another(header.cpu);
  leg->stages.set_first(Stage::ready, header.time);
  leg->rx.ready = true;
  if (event.protocol == kProtocolTcp) {
    const std::vector<LegRef>& coalesced = cpu(header.cpu).coalesced[level(header)];
    for (const LegRef& ref : coalesced) {
      LiveLeg* behind = ref.get();
      if (behind == nullptr) continue;
      behind->stages.set_first(Stage::ready, header.time);
      behind->rx.ready = true;
    }
    Socket& socket = this->socket(leg->rx.socket);
    socket.bytes.announce(leg, coalesced.size());
    if (sees_cookies_ && socket.address == 0) [[unlikely]]
      has_address(socket.key, event.skaddr);
    Answer& answer = cpu(header.cpu).answer[level(header)];
    answer.announced = true;
    if (!socket.bytes.asks_for_answers()) answer = {};
    return;
  }
  if (!sure) leg->infer();
  leg->rx.socket = Sockets::key(event.skaddr);
  Socket& socket = this->socket(leg->rx.socket, header.time);
  queues_.make_room(socket);
  datagrams_.announced(socket, *leg, header.time);
}

void Delivery::part_ready(const EventHeader& header, const SkDataReady& event) {
  LiveLeg* leg = splits_.part_announced(header.cpu);
  sees_ready_ = true;
  cpu(header.cpu).ready = leg;
  origins_.took_another(header.cpu);
  Socket& socket = this->socket(Sockets::key(event.skaddr), header.time);
  queues_.make_room(socket);
  datagrams_.part_announced(socket, has_not_ended(leg) ? leg : nullptr, header.time);
}

// Only now: where nothing waits, tcp_rcv_established() answers before it announces.
void Delivery::tell_answer(const Answer& answer) {
  openers_.answered(answer.socket, answer.len);
  Socket* socket = sockets_.find(answer.socket);
  if (socket == nullptr) return;
  if (answer.announced) {
    socket->bytes.answered(answer.len);
  } else if (sees_ready_) {
    // But for ranges both directions have the same headers.
    has_only(answer.len, socket->headers) ? socket->bytes.answered_early_without_ranges(answer.len)
                                          : socket->bytes.answered_early(answer.len);
  } else {
    socket->bytes.answered_unannounced(answer.len);
  }
}

// It was a clone of it that the socket it was given to has got.
void Delivery::leave(LiveLeg& leg) {
  socket(leg.rx.socket).datagrams.erase(leg);
  for (const Stage stage : {Stage::ready, Stage::wake, Stage::run, Stage::blocked}) {
    leg.stages.clear(stage);
  }
  leg.blocked_call = {};
  leg.rx.woken = 0;
  leg.rx.queued = false;
}

// Duplicates and segments out of the window were counted by tcp_probe as if they were read later.
// What they are answered with has a range, too: theirs (tcp_dsack_set()).
void Delivery::withdrawn(const EventHeader& header, const LiveLeg& leg) {
  if (!leg.rx.has_data) return;
  cpu(header.cpu).answer[level(header)] = {};
  Socket* socket = sockets_.find(leg.rx.socket);
  if (socket != nullptr) socket->bytes.erase(leg);
}

// To make room for what was probed last (tcp_prune_ofo_queue(), net/ipv4/tcp_input.c, 5.4 to 6.18).
LiveLeg* Delivery::pruned(const EventHeader& header, const LiveLeg* named) {
  const Cpu& cpu = this->cpu(header.cpu);
  std::uint64_t key = cpu.answer[level(header)].socket;
  if (key == 0 && named != nullptr) key = named->rx.socket;
  Socket* socket = sockets_.find(key);
  if (socket == nullptr) return nullptr;
  return socket->bytes.prune(named, 1 + cpu.coalesced[level(header)].size());
}

LiveLeg* Delivery::last_acked(const EventHeader& header, SkbAddr address) {
  LiveLeg* leg = (in_task(header) ? task(header).acked : cpu(header.cpu).acked).get();
  return leg != nullptr && leg->skbaddr == address ? leg : nullptr;
}

void Delivery::state_changed(const EventHeader& header, const InetSockSetState& event,
                             LiveLeg* segment, std::string_view comm) {
  const FlowId flow = flow_of(event.skaddr);
  if (event.newstate == kTcpClose && flow != kNoFlow) origins_.closed(header, event.skaddr, flow);
  origins_.state_changed(header, task(header), event, segment);
  if (openers_.remember(event, segment)) {
    cpu(header.cpu).answer[level(header)] = {Sockets::key(event.skaddr)};
  }
  const bool mptcp = event.protocol == kProtocolMptcp;
  if (mptcp) reads_.mptcp_is_here();
  Socket* socket = sockets_.find(Sockets::key(event.skaddr));
  if (event.newstate != kTcpClose) {
    if (socket != nullptr && socket->closed) queues_.end(*socket);  // another connection has it
    return half_closes(event);
  }
  if (socket == nullptr) return;
  if (can_still_be_read(header, event, *socket, comm)) return queues_.keep_closed(*socket);
  queues_.end(*socket);
}

// It has sent its FIN, and may receive. Where it has received nothing so far but what opened it, no
// tcp_probe has told of it, and none will.
void Delivery::half_closes(const InetSockSetState& event) {
  Socket* socket = sockets_.find(Sockets::key(event.skaddr));
  const bool may_receive = event.newstate == kTcpFinWait1 || event.newstate == kTcpFinWait2;
  const bool is_new = may_receive && (socket == nullptr || socket->sport == 0);
  const Origins::Established* opened = is_new ? origins_.established(event.skaddr) : nullptr;
  if (opened != nullptr && opened->headers != 0) {
    socket = &this->socket(Sockets::key(event.skaddr));
    socket->flow = opened->flow;
    socket->device = opened->device;
    socket->headers = opened->headers;
    socket->sport = event.sport;
    socket->dport = event.dport;
    socket->bytes.begin_here();
  }
  if (socket != nullptr) socket->half_closed = may_receive;
}

// A reset, a timeout or the last FIN closes a socket, and what had come before can be read
// (tcp_recvmsg_locked() looks into the queue first, net/ipv4/tcp.c, 5.4 to 6.18): in a softirq, or
// in a task that works on what had waited for it. A worker closes an MPTCP socket when both sides
// have said their last word (mptcp_check_data_fin(), net/mptcp/protocol.c). But when the task that
// has it ends it, what nobody has read is freed without an event (__tcp_close()).
bool Delivery::can_still_be_read(const EventHeader& header, const InetSockSetState& event,
                                 const Socket& socket, std::string_view comm) {
  if (socket.bytes.empty()) return false;
  if (!in_task(header)) return true;
  if (thread_kind(comm) == ThreadKind::kernel) return event.protocol == kProtocolMptcp;
  const Task& task = this->task(header);
  return task.in_call && !ends_sockets(task.call);
}

// ------------------------------------------------------------------------------ out of the socket

void Delivery::copied(const EventHeader& header, const SkbCopyDatagramIovec& event, LiveLeg* leg) {
  if (event.len <= 0) return;
  sees_copies_ = true;
  Task& task = this->task(header);
  if (task.adjustments == 0) task.copied_first = true;
  task.woken_early_at = 0;  // it went on without sleeping
  const bool first = leg != nullptr && !std::exchange(leg->rx.copied, true);
  // An skb that was read may be anybody's by now: a copy of TCP's own is named right behind it
  // (tcp_recvmsg_locked(), net/ipv4/tcp.c, 5.4 to 6.18), but for MPTCP's.
  const bool will_be_named = sees_space_adjusts_ && task.in_call && !reads_.is_mptcp_here();
  std::uint64_t socket = 0;
  if (leg != nullptr) {
    socket = leg->rx.socket;
  } else if (!will_be_named) {
    socket = reads_.socket_of_read(event.skbaddr);
  }
  task.copies.push_back({taking(task, header), static_cast<std::uint32_t>(event.len), event.skbaddr,
                         leg, socket, first});
  const bool at_once = !(task.in_call || reads_.sockets_told());
  if (at_once || task.copies.size() >= kMaxPendingCopies) {
    task.peeking ? forget_peeked(task) : commit(task, 0);
  }
  if (at_once && !sees_calls_) reads_.returned(task, 0);  // no return will tell that it has
}

// A datagram is freed by the call that reads it. That it lies in a socket nothing tells before 6.3,
// and later only when a reader on another CPU may have taken it. A worker has decrypted it, or
// answered a handshake (wg_packet_handshake_receive_worker(), drivers/net/wireguard/receive.c).
bool Delivery::consumed_by_reader(const EventHeader& header, LiveLeg& leg, std::string_view comm) {
  Task& task = this->task(header);
  const bool may_read = task.makes_calls ? is_read(task.call)
                                         : !sees_ready_ && thread_kind(comm) != ThreadKind::kernel;
  if (!leg.rx.queued && !may_read) return false;
  legs_.release_address(leg);
  if (!may_read && was_read_unplaced(leg)) [[unlikely]]
    return true;  // without an event, and this is another skb at its address
  task.datagram_freed = true;
  Taking taking = track::taking(task, header);
  for (const PendingCopy& copy : task.copies) {
    if (copy.leg.get() == &leg) taking = copy.taking;
  }
  std::erase_if(task.copies, [&](const PendingCopy& copy) { return copy.leg.get() == &leg; });
  Socket* socket = leg.rx.queued ? sockets_.find(leg.rx.socket) : nullptr;
  if (socket != nullptr) alignment_.takes_named(*socket, task, leg);
  reads_.deliver(leg, task, taking);
  if (!task.in_call) reads_.returned(task, 0);
  return true;
}

void Delivery::forget_peeked(Task& task) {
  counters_.peeked_copies += task.copies.size();
  task.copies.clear();
}

void Delivery::recv_length(const EventHeader& header, const SockRecvLength& event) {
  reads_.sockets_are_told();
  Task& task = this->task(header);
  const bool takes_nothing = (event.flags & kTakesNothing) != 0;
  if (takes_nothing || event.ret < 0) {
    if (takes_nothing) forget_peeked(task);
    if (may_have_records(task, event)) [[unlikely]]
      keep_records(task, Sockets::key(event.sk));
    looks(header, task, event);
    task.datagram_freed = false;
    return;
  }
  const std::uint64_t key = Sockets::key(event.sk);
  task.discarding = false;  // told by this event
  const bool discards = (event.flags & kMsgTrunc) != 0;
  const std::uint64_t copied = discards ? copied_bytes(task) : 0;
  const std::uint16_t protocol = inet_protocol(event);
  if (protocol == kProtocolTcp) {
    if (!task.sent.empty()) [[unlikely]]
      name_acks(task, key, flow_of_call(task, event.sk));
    const bool may_be = may_have_records(task, event) && event.ret > 0;
    Socket* records = may_be ? with_records(task, key) : nullptr;
    if (records != nullptr) [[unlikely]] {
      take_records(*records, task, taking(task, header), event.ret);
    } else {
      commit(task, key);
    }
    // It has found the end; who asks for no bytes, and could have had some, adjusts
    // (tcp_recvmsg_locked(), net/ipv4/tcp.c, 5.4 to 6.18).
    const bool is_end =
        event.ret == 0 && task.in_call && sees_space_adjusts_ && task.adjustments == 0;
    if (is_end) [[unlikely]]
      alignment_.held_no_bytes(socket(key), task.call_entered);
    task.begins_receive();
  } else if (protocol == kProtocolMptcp) {
    take_from_subflows(task, key);
  } else if (protocol == kProtocolUdp) {
    datagrams_.read(socket(key, header.time), task, taking(task, header),
                    static_cast<std::uint32_t>(event.ret));
  } else {
    task.copies.clear();  // netlink, unix and their kind are no packets
  }
  const bool stream = protocol == kProtocolTcp || protocol == kProtocolMptcp;
  if (discards && stream) [[unlikely]]
    discard(task, header, event, copied);
  if (!task.in_call) reads_.returned(task, 0);
}

// A call that takes nothing may tell that there is nothing. Who peeks may do so behind what there
// is (SO_PEEK_OFF), and errors and urgent data lie beside it.
void Delivery::looks(const EventHeader& header, const Task& task, const SockRecvLength& event) {
  const std::uint16_t protocol = inet_protocol(event);
  if ((event.flags & (kMsgErrQueue | kMsgOob)) != 0) return;
  const bool peeks = (event.flags & kMsgPeek) != 0;
  const bool finds_none = event.ret == -EAGAIN && task.in_call && !peeks;
  const std::uint64_t key = Sockets::key(event.sk);
  if (protocol == kProtocolUdp) {
    Socket& socket = this->socket(key, header.time);
    if (event.ret >= 0) alignment_.may_have_slept_for(socket, task);
    if (finds_none) alignment_.found_no_datagram(socket, task);
  } else if (protocol == kProtocolTcp && finds_none) {
    alignment_.held_no_bytes(socket(key), task.call_entered);
  }
}

// Of a datagram MSG_TRUNC only tells the length. Urgent data lies beside it (tcp_recv_urg()).
void Delivery::discard(Task& task, const EventHeader& header, const SockRecvLength& event,
                       std::uint64_t copied) {
  const auto bytes = static_cast<std::uint64_t>(event.ret);
  if ((event.flags & kMsgOob) != 0 || bytes <= copied) return;
  const std::uint64_t key = Sockets::key(event.sk);
  subflows_.gather(socket(key), sees_ready_);
  take_uncopied(task, key, taking(task, header), bytes - copied);
}

// The reader moves what still lies with the subflows (mptcp_recvmsg()).
void Delivery::take_from_subflows(Task& task, std::uint64_t key) {
  if (task.copies.empty()) return;
  Socket& socket = this->socket(key);
  for (PendingCopy& copy : task.copies) {
    LiveLeg* leg = copy.leg.get();
    if (leg != nullptr && leg->rx.has_data) {
      leg->rx.ready = true;  // it is read before it was announced, or that was not recorded
      subflows_.add_and_gather(socket, leg->rx.socket, sees_ready_);
    }
    copy.socket = key;
  }
  subflows_.gather(socket, sees_ready_);
  commit(task, key);
}

void Delivery::early_reads_returned(Task& task, Nanoseconds time) {
  Socket* socket = sockets_.find(std::exchange(task.early_socket, 0));
  if (socket == nullptr) return;
  for (EarlyRead& read : socket->early_reads) {
    if (read.pid == task.pid && read.returned == 0) read.returned = time;
  }
  socket->unplaced.returned(task.pid, time);
}

// Has it, perhaps, been read already?
bool Delivery::was_read_unplaced(const LiveLeg& leg) {
  const Socket* socket = sockets_.find(leg.rx.socket);
  return socket != nullptr && !socket->unplaced.empty();
}

// What the task copied is read for good. `key`, a socket's, is 0 when no event named it: then the
// skbs did.
void Delivery::commit(Task& task, std::uint64_t key) {
  const Socket* told = key != 0 && sees_cookies_ ? sockets_.find(key) : nullptr;
  const bool has_cookie = told != nullptr && !Sockets::is_address(told->key);
  for (const PendingCopy& copy : task.copies) {
    // A socket known by its cookie only is better named by the skb.
    std::uint64_t from = copy.socket;
    if (key != 0 && (from == 0 || has_cookie || Sockets::is_address(from))) from = key;
    Socket* socket = from == 0 ? nullptr : &this->socket(from);
    // The kernel's own readers take some without an event, such as the headers of NVMe
    // (nvme_tcp_recv_pdu(), drivers/nvme/host/tcp.c, 5.4 to 6.18).
    if (socket != nullptr && key == 0 && !task.in_call) socket->bytes.set_read_unseen();
    LiveLeg* leg = copy.leg.get();
    // What opened the connection, or came too early to an end that has sent its FIN.
    const bool is_unprobed = leg != nullptr && !leg->rx.has_data &&
                             (leg->rx.control || (socket != nullptr && socket->half_closed));
    if (is_unprobed) [[unlikely]] {
      const bool has_room = copy.len + kLeastTcpHeaders <= leg->rx.stack_len;
      if (socket != nullptr && has_room) read_unprobed(*socket, *leg, copy.len);
      leg = nullptr;  // no datagram
    }
    if (socket == nullptr || socket->bytes.empty()) {
      if (leg != nullptr && !leg->rx.has_data) {
        // Of TCP it came to an end that had sent its FIN before the capture, and others of its
        // bytes may be read later.
        if (key != 0 && copy.len + kMostTcpHeaders < leg->rx.stack_len) leg->infer();
        reads_.deliver(*leg, task, copy.taking);  // a datagram
      } else if (from != 0) {                     // else of no packet: netlink, unix
        counters_.count_unmatched(copy.len);
      }
      continue;
    }
    if (!socket->bytes.aligned() && !alignment_.begins_with(*socket, task, copy)) continue;
    pop_bytes(*socket, task, copy);
  }
  task.copies.clear();
}

void Delivery::pop_bytes(Socket& socket, Task& task, const PendingCopy& copy) {
  LiveLeg* named = copy.leg.get();
  const bool is_unread = named != nullptr && named->rx.has_data && !named->rx.delivered;
  // It was taken for read, and its bytes are read only now: those were another's, which the queue
  // lacked.
  if (copy.first && named != nullptr && named->rx.delivered) [[unlikely]] {
    named->infer();
    socket.doubtful = true;
  }
  const std::uint64_t left =
      socket.bytes.copy(copy.skbaddr, is_unread ? named : nullptr, copy.len, read_);
  if (left > 0) counters_.count_unmatched(left);
  if (named != nullptr && !socket.bytes.empty()) reads_.may_hold_more(copy.skbaddr, socket.key);
  if (reads_.may_be_mixed(socket) || socket.doubtful) [[unlikely]] {
    for (LiveLeg* leg : read_) {
      if (leg != named) leg->infer();
    }
    if (socket.bytes.empty()) socket.doubtful = false;
  }
  deliver_read(socket, task, copy.taking);
}

void Delivery::deliver_read(const Socket& socket, Task& task, const Taking& taking) {
  const bool may_be_lost = alignment_.may_be_lost(socket);
  for (LiveLeg* leg : read_) {
    leg->crossed_loss = leg->crossed_loss || may_be_lost;
    reads_.deliver(*leg, task, taking);
  }
  read_.clear();
}

void Delivery::space_adjusted(const EventHeader& header, const TcpRcvSpaceAdjust& event) {
  sees_space_adjusts_ = true;
  Task& task = this->task(header);
  if (sees_cookies_) has_address(event.sock_cookie, event.skaddr);
  task.adjusted_socket = sockets_.key_of(event.skaddr, event.sock_cookie);
  openers_.has_cookie(event.skaddr, event.sock_cookie);
  task.adjusted = taking(task, header);
  if (in_task(header)) ++task.adjustments;
  if (task.call == "getsockopt") [[unlikely]]
    read_unseen(task.adjusted_socket);
  // Whoever had the address of what was copied right before (tcp_recvmsg_locked(), net/ipv4/tcp.c,
  // 5.4 to 6.18).
  if (!task.copies.empty()) task.copies.back().socket = task.adjusted_socket;
}

// TCP_ZEROCOPY_RECEIVE maps them (tcp_zerocopy_receive(), net/ipv4/tcp.c, 5.4 to 6.18): how many no
// event tells.
void Delivery::read_unseen(std::uint64_t key) {
  Socket* socket = sockets_.find(key);
  if (socket != nullptr) socket->bytes.set_read_unseen();
}

// The socket, if its records are read: then the task's call has had some, or text of them. That
// they are is known by a call that takes bytes before it copies any: tcp_recvmsg_locked() copies
// first (net/ipv4/tcp.c, 5.4 to 6.18). In one that was entered since the last gap no copy was
// missed.
Socket* Delivery::with_records(const Task& task, std::uint64_t key) {
  Socket* socket = sockets_.find(key);
  if (socket == nullptr || socket->tls.are_read()) return socket;
  if (!task.takes_uncopied() || !task.in_call || !sees_copies_) return nullptr;
  socket->tls.begin();
  sees_records_ = true;
  return socket;
}

// The call returns so much of their text.
void Delivery::take_records(Socket& socket, Task& task, const Taking& taking, std::int64_t text) {
  socket.tls.taken(std::exchange(task.adjustments, 0));
  task.copies.clear();
  const auto bytes = socket.tls.returned(static_cast<std::uint64_t>(text), socket.bytes);
  if (bytes) take_uncopied(task, socket.key, taking, *bytes);
}

// Who peeks at records takes them, and leaves their text to the next call.
void Delivery::keep_records(Task& task, std::uint64_t key) {
  Socket* socket = with_records(task, key);
  if (socket != nullptr) socket->tls.taken(std::exchange(task.adjustments, 0));
}

// Bytes of a stream that no copy event told of.
void Delivery::take_uncopied(Task& task, std::uint64_t key, const Taking& taking,
                             std::uint64_t bytes) {
  Socket& socket = this->socket(key);
  if (!openers_.empty() && socket.unplaced.empty()) [[unlikely]] {
    LiveLeg* opener = openers_.take(socket);
    if (opener != nullptr && bytes + kLeastTcpHeaders <= opener->rx.stack_len) {
      read_unprobed(socket, *opener, static_cast<std::uint32_t>(bytes));
      socket.bytes.begin_here();
    }
  }
  if (!socket.bytes.aligned() && !alignment_.slept_for_bytes(socket, task, taking)) {
    return alignment_.wait(socket, task, taking, bytes);
  }
  counters_.unmatched_bytes += socket.bytes.take_uncopied(bytes, read_);
  for (LiveLeg* leg : read_) leg->confidence = Confidence::socket;
  deliver_read(socket, task, taking);
}

// ------------------------------------------------------------------------------ tasks

void Delivery::waking(const EventHeader& header, Pid pid) {
  if ((header.flags & kFlagHardirq) != 0) {  // an interrupt's doing, whatever it interrupted
    task(pid).waking(header.time, nullptr);
    return;
  }
  LiveLeg* leg = cpu(header.cpu).ready.get();
  cpu(header.cpu).ready = LegRef();
  task(pid).waking(header.time, leg);
}

void Delivery::switched(const EventHeader& header, const SchedSwitch& event) {
  cpu(header.cpu).ready = LegRef();
  splits_.moves_on(header.cpu);
  forget_answer(cpu(header.cpu).answer[0]);
  origins_.transmits_no_more(header.cpu, 0);
  if (event.next_pid != 0) task(event.next_pid).runs(header.time);
  if (event.prev_pid == 0) return;
  if (is_dead(event.prev_state)) {
    settle(task(event.prev_pid).acked);
    reads_.returned(task(event.prev_pid), 0);
    origins_.release_sent(task(event.prev_pid));
    return tasks_.forget(event.prev_pid);
  }
  Task& leaving = task(event.prev_pid);
  const bool waits = !still_runnable(event.prev_state);
  if (waits) {  // who is preempted may still be at it
    settle(leaving.acked);
    leaving.turned = kNoFlow;
  }
  leaving.leaves_cpu(header.time, waits);
}

void Delivery::call_entered(const EventHeader& header, const EnteredCall& call) {
  if (hears_since_ == 0) [[unlikely]]
    hears_since_ = header.time;
  Task& task = this->task(header);
  // Two events of one call lie right behind each other, in the order in which they were switched on
  // (both are probes of the tracepoint sys_enter; kernel/trace/trace_syscalls.c, 5.4 to 6.18).
  const bool told = task.in_call && task.call_nr == call.nr && task.call_told_raw != call.raw;
  if (told) {
    if (!call.raw) task.call = call.name;  // the kernel's, as where it alone is recorded
    return;
  }
  task.call = call.name;
  task.call_nr = call.nr;
  task.call_told_raw = call.raw;
  task.call_entered = header.time;
  task.in_call = task.called = task.makes_calls = sees_calls_ = true;
  task.woken_early_at = 0;
  task.turned = kNoFlow;
  task.begins_receive();
  task.peeking = call.peeks;
  task.discarding = call.discards && !call.peeks;
  task.adjusted_socket = 0;
}

void Delivery::call_returned(const EventHeader& header, std::int64_t ret) {
  cpu(header.cpu).ready = LegRef();
  splits_.moves_on(header.cpu);
  forget_answer(cpu(header.cpu).answer[0]);
  origins_.transmits_no_more(header.cpu, 0);
  Task& task = this->task(header);
  settle(task.acked);
  if (task.peeking) forget_peeked(task);
  // Before 6.3 its return alone tells how much of the text of records it had; also of a peek,
  // behind which nothing tells whose text the next call returns.
  const bool may_be = task.takes_uncopied() && !reads_.sockets_told() && ret > 0;
  if (may_be && is_read(task.call) && !task.discarding) [[unlikely]] {
    Socket* records = with_records(task, task.adjusted_socket);
    if (records != nullptr) take_records(*records, task, task.adjusted, ret);
  }
  if (!task.copies.empty()) commit(task, 0);
  // In this order: what it returned, and from what, nobody can predict.
  if ((is_splice(task.call) || task.discarding) && ret > 0 && task.adjusted_socket != 0) {
    Socket* socket = sees_records_ ? sockets_.find(task.adjusted_socket) : nullptr;
    if (socket != nullptr && socket->tls.are_read()) {
      take_records(*socket, task, task.adjusted, ret);
    } else {
      take_uncopied(task, task.adjusted_socket, task.adjusted, static_cast<std::uint64_t>(ret));
    }
  }
  // tcp_read_sock() adjusts what it found empty, too (net/ipv4/tcp.c, 5.4 to 6.18). Behind a FIN
  // tcp_splice_read() returns 0 for it.
  if ((ret == -EAGAIN || ret == 0) && task.adjusted_socket != 0 && is_splice(task.call))
      [[unlikely]]
    alignment_.held_no_bytes(socket(task.adjusted_socket), task.adjusted.time);
  if (!reads_.sockets_told() && !task.sent.empty() && is_read(task.call)) {
    const Socket* socket = sockets_.find(task.adjusted_socket);
    if (socket != nullptr) name_acks(task, socket->key, socket->flow);
  }
  if (!task.read.empty()) reads_.returned(task, header.time);
  if (task.early_socket != 0) early_reads_returned(task, header.time);
  origins_.release_sent(task);
  task.in_call = task.peeking = task.discarding = false;
  task.datagram_freed = task.another_freed = false;
  task.last_call = std::exchange(task.call, {});
  task.last_call_entered = std::exchange(task.call_entered, 0);
  task.woken_early_at = 0;
  task.turned = kNoFlow;
}

// ------------------------------------------------------------------------------ what is known

// What a call sent that has read from that socket. But for ranges both directions have the same
// headers.
void Delivery::name_acks(Task& task, std::uint64_t key, FlowId flow) {
  const Socket* socket = sockets_.find(key);
  origins_.name_acks(task, flow, socket != nullptr ? socket->headers : Socket::kNoHeaders);
}

std::optional<Nanoseconds> Delivery::call_begun(const EventHeader& header) {
  if (!in_task(header)) return std::nullopt;
  const Task& task = this->task(header);
  return task.in_call ? std::optional(task.call_entered) : std::nullopt;
}

std::optional<Nanoseconds> Delivery::socket_held_since(const EventHeader& header) {
  if (!in_task(header)) return std::nullopt;
  const Task& task = this->task(header);
  const bool closes = !task.in_call && closes_descriptors(task.last_call);
  return closes ? std::optional(task.last_call_entered) : call_begun(header);
}

Protocol::Connected Delivery::connection(SockAddr sk) {
  const Socket* socket = sockets_.find(Sockets::key(sk));
  const Origins::Established* opened = nullptr;
  if (socket == nullptr || socket->flow == kNoFlow) opened = origins_.established(sk);
  const FlowId flow = opened != nullptr ? opened->flow : kNoFlow;
  if (socket == nullptr) return {flow, {}};
  return {socket->flow != kNoFlow ? socket->flow : flow, socket->device};
}

std::optional<Protocol::HalfClosed> Delivery::half_closed(SockAddr sk) {
  const Socket* socket = sockets_.find(Sockets::key(sk));
  if (socket == nullptr || !socket->half_closed || socket->headers == Socket::kNoHeaders) {
    return std::nullopt;
  }
  return Protocol::HalfClosed{sk, socket->flow, socket->device, socket->headers, socket->closed};
}

void Delivery::on_loss(CpuId id) {
  openers_.forget_all();
  splits_.moves_on(id);
  Cpu& cpu = this->cpu(id);
  cpu.ready = LegRef();
  for (Answer& answer : cpu.answer) answer = {};
  settle(cpu.acked);
}

void Delivery::finish() {
  splits_.finish();
  for (Cpu& cpu : cpus_) settle(cpu.acked);
  tasks_.each([this](Task& task) {
    settle(task.acked);
    if (!task.copies.empty() && !task.peeking) commit(task, 0);
  });
  queues_.finish();
  tasks_.each([this](Task& task) {
    reads_.returned(task, 0);
    origins_.release_sent(task);
  });
}

}  // namespace skbtrail::track
