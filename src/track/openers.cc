#include "track/openers.h"

#include <algorithm>

#include "track/tcp_headers.h"

namespace skbtrail::track {

bool Openers::remember(const InetSockSetState& event, LiveLeg* segment) {
  std::erase_if(openers_, [&](const Opener& opener) { return opener.socket == event.skaddr; });
  const bool opens = event.oldstate == kTcpSynRecv && event.newstate == kTcpEstablished;
  if (!opens || segment == nullptr || segment->rx.stack_len <= kMostTcpHeaders) return false;
  if (openers_.size() == kMaxOpeners) openers_.erase(openers_.begin());
  openers_.push_back({event.skaddr, flow_of(flows_, event), segment});
  return true;
}

void Openers::ready(SockAddr sk, Nanoseconds time) {
  for (Opener& opener : openers_) {
    if (opener.socket == sk && opener.ready == 0) opener.ready = time;
  }
}

void Openers::answered(std::uint64_t socket, std::uint32_t len) {
  for (Opener& opener : openers_) {
    if (Sockets::key(opener.socket) == socket) opener.answer = len;
  }
}

void Openers::has_cookie(SockAddr sk, std::uint64_t cookie) {
  for (Opener& opener : openers_) {
    if (opener.socket == sk) opener.cookie = cookie;
  }
}

bool Openers::is_of(const Opener& opener, const Socket& socket) {
  const std::uint64_t key = Sockets::key(opener.socket);
  return key == socket.key || key == socket.address ||
         (opener.cookie != 0 && opener.cookie == socket.key) ||
         (opener.flow != kNoFlow && opener.flow == socket.flow);
}

Openers::Opener Openers::take_opener(const Socket& socket) {
  const auto found = std::find_if(openers_.begin(), openers_.end(),
                                  [&](const Opener& opener) { return is_of(opener, socket); });
  if (found == openers_.end()) return {};
  const Opener opener = *found;
  openers_.erase(found);
  const LiveLeg* leg = opener.leg.get();
  if (leg == nullptr || !leg->rx.control || leg->rx.has_data) return {};
  const bool is_it = leg->confidence == Confidence::exact || opener.answer != 0;
  return is_it ? opener : Opener();
}

LiveLeg* Openers::take(const Socket& socket) {
  return take_opener(socket).leg.get();
}

void Openers::probed(Socket& socket, const Protocol::Probed& probed, bool announced) {
  const Opener opener = take_opener(socket);
  LiveLeg* leg = opener.leg.get();
  if (leg == nullptr || probed.leg == nullptr) return;
  const std::uint32_t headers =
      probed.coalesced.empty() ? probed.leg->rx.stack_len - probed.data_len : probed.headers;
  if (!are_headers(headers)) return;
  queue(socket, *leg, socket.flow, headers);
  if (opener.ready != 0) {
    leg->stages.set_first(Stage::ready, opener.ready);
    leg->rx.ready = true;
    socket.bytes.announce(leg, 0);
  } else if (opener.answer != 0) {
    announced ? socket.bytes.answered_early(opener.answer)
              : socket.bytes.answered_unannounced(opener.answer);
  }
}

void Openers::read(Socket& socket, LiveLeg& opener, FlowId flow, std::uint32_t copied) {
  constexpr std::uint32_t kUsualHeaders = 52;  // IPv4 + TCP with time stamps
  const std::uint32_t rest = opener.rx.stack_len - copied;
  std::uint32_t headers = socket.headers;  // of those that came later
  if (!are_headers(headers) || headers > rest) {
    opener.infer();
    headers = are_headers(rest) ? rest : kUsualHeaders;
  }
  queue(socket, opener, flow, headers);
}

void Openers::queue(Socket& socket, LiveLeg& leg, FlowId flow, std::uint32_t headers) {
  leg.rx.control = false;
  leg.rx.has_data = leg.rx.queued = true;
  leg.rx.socket = socket.key;
  leg.rx.data_len = leg.rx.stack_len - headers;
  leg.flow = flow;
  socket.bytes.push_first(leg, leg.rx.data_len);
}

}  // namespace skbtrail::track
