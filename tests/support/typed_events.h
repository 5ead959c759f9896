// The structs of src/event whose values are compared with what others read.
#pragma once

#include <tuple>

#include "event/irq.h"
#include "event/net.h"
#include "event/sched.h"
#include "event/skb.h"
#include "event/tcp.h"

namespace skbtrail::test {

using TypedEvents =
    std::tuple<NetifReceiveSkb, NetifRx, NapiGroReceiveEntry, NetDevQueue, NetDevXmit,
               NetDevStartXmit, KfreeSkb, ConsumeSkb, SkbCopyDatagramIovec, NapiPoll, SoftirqRaise,
               SoftirqEntry, SoftirqExit, IrqHandlerEntry, IrqHandlerExit, TcpProbe, SchedSwitch>;

// Calls `function.template operator()<Event>()` for each.
template <class Function>
void for_each_typed_event(Function&& function) {
  []<class... Event>(Function& call, std::tuple<Event...>*) {
    (call.template operator()<Event>(), ...);
  }(function, static_cast<TypedEvents*>(nullptr));
}

}  // namespace skbtrail::test
