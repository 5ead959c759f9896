#include "track/oracle_places.h"

#include <map>
#include <set>

#include "event/irq.h"

namespace skbtrail::test::oracle {

std::vector<Place> places_of(const Events& events) {
  struct Count {
    std::uint32_t run = 0, poll = 0, batch = 0;
    bool processed = false;
  };
  std::map<CpuId, Count> cpus;
  std::set<SkbAddr> backlog;
  std::uint32_t runs = 0;
  std::vector<Place> places(events.size());
  for (Index i = 0; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    Count& cpu = cpus[event.header.cpu];
    if (event.kind == Kind::softirq_entry && event.vec == kNetRxSoftirq) cpu.run = ++runs;
    if (event.kind == Kind::netif_rx) backlog.insert(*event.skb);
    // The backlog's packets are worked off one by one.
    if (event.kind == Kind::receive && (backlog.erase(*event.skb) > 0 || cpu.processed)) {
      ++cpu.batch;
      cpu.processed = false;
    }
    places[i] = {cpu.run, cpu.poll, cpu.batch};
    if (event.kind == Kind::softirq_exit && event.vec == kNetRxSoftirq) cpu.run = 0;
    if (event.kind == Kind::napi_poll) ++cpu.poll;
    cpu.processed |= event.kind == Kind::tcp_probe || event.kind == Kind::queue ||
                     event.kind == Kind::consume || event.kind == Kind::kfree ||
                     event.kind == Kind::napi_poll;
  }
  return places;
}

}  // namespace skbtrail::test::oracle
