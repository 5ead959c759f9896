#include "support/poorer_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "event/skb.h"
#include "event/sock.h"
#include "event/tcp.h"
#include "support/oracle.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Leg;
using track::Outcome;
using track::Stage;

bool is_known(const Leg& leg) {
  return leg.outcome != Outcome::unknown && leg.outcome != Outcome::open;
}

std::string end_of(const Leg& leg) {
  return fmt::format("{} by {} at {}", track::name(leg.outcome), leg.pid, leg.stages[Stage::ret]);
}

}  // namespace

const PoorerKernel& linux_6_8() {
  static const PoorerKernel kernel{
      "6.8", {{TcpProbe::name, "skbaddr"}, {TcpProbe::name, "skaddr"}, {KfreeSkb::name, "rx_sk"}}};
  return kernel;
}

const PoorerKernel& linux_6_1() {
  static const PoorerKernel kernel = [] {
    PoorerKernel poorer{"6.1",
                        {{SkDataReady::name, ""},
                         {SockRecvLength::name, ""},
                         {SockSendLength::name, ""},
                         {ConsumeSkb::name, "location"}}};
    const std::vector<Absent>& later = linux_6_8().absent;
    poorer.absent.insert(poorer.absent.end(), later.begin(), later.end());
    return poorer;
  }();
  return kernel;
}

bool is_richer(const std::filesystem::path& capture, const PoorerKernel& kernel) {
  const auto trace = stream::Trace::open(capture);
  return trace && std::all_of(kernel.absent.begin(), kernel.absent.end(),
                              [&](const Absent& one) { return has(trace->catalog(), one); });
}

std::vector<std::filesystem::path> captures_richer_than(const PoorerKernel& kernel) {
  std::vector<std::filesystem::path> richer = captures();
  std::erase_if(richer, [&](const auto& capture) { return !is_richer(capture, kernel); });
  return richer;
}

Poorer compare_poorer(const std::filesystem::path& capture, const PoorerKernel& kernel) {
  return compare_poorer(track_packets(capture), track_packets(capture, kernel.absent));
}

Poorer compare_poorer(const PacketLog& whole, const PacketLog& poorer) {
  // Two may share all of this: a clock that stepped back stands still for a while.
  using Key = std::tuple<Nanoseconds, SkbAddr, track::LegDirection>;
  const auto key = [](const Leg& leg) { return Key{leg.birth, leg.skbaddr, leg.direction}; };
  std::map<Key, std::deque<const Leg*>> truth;
  for (const LoggedPacket& packet : whole.packets) {
    for (const Leg& leg : packet.legs) truth[key(leg)].push_back(&leg);
  }
  Poorer found;
  for (const LoggedPacket& packet : poorer.packets) {
    for (const Leg& leg : packet.legs) {
      ++found.legs;
      std::deque<const Leg*>& same = truth[key(leg)];
      const Leg* other = same.empty() ? nullptr : same.front();
      if (other != nullptr) same.pop_front();
      const std::string told = other == nullptr ? "not there" : end_of(*other);
      if (told == end_of(leg)) continue;
      if (!is_known(leg)) {
        if (other == nullptr || !is_known(*other)) continue;
        ++found.unknown;
      } else {
        ++(leg.confidence == Confidence::exact ? found.exact : found.wrong);
      }
      found.text += fmt::format(
          "{} {:x} of {} bytes: {}{}, is {}\n", leg.birth, static_cast<std::uint64_t>(leg.skbaddr),
          leg.len, leg.confidence == Confidence::exact ? "" : "perhaps ", end_of(leg), told);
    }
  }
  return found;
}

}  // namespace skbtrail::test
