// Who wants to know how NET_RX ran, beside the packets that came of it: receive hunks.
#pragma once

#include "event/irq.h"
#include "event/net.h"
#include "skbtrail/loss.h"
#include "track/net_rx_context.h"
#include "track/packet.h"

namespace skbtrail::track {

// `run` is the CPU's context; run.run() says which run it is. What receives outside the softirq is
// a run of its own, until its poll returns or somebody else receives.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // softirq_entry(NET_RX).
  virtual void run_began(const EventHeader&, const NetRxContext&) {}
  // netif_receive_skb. A leg with hops was received before, and this is a further device of it.
  virtual void received(const EventHeader&, const NetRxContext&, const NetifReceiveSkb&,
                        const Leg&) {}
  virtual void polled(const EventHeader&, const NetRxContext&, const NapiPoll&) {}
  // The softirq is left, or another one is entered and its exit was lost.
  virtual void run_ended(const EventHeader&, const NetRxContext&) {}
  virtual void lost(const LossWindow&) {}
};

}  // namespace skbtrail::track
