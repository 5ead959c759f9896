// Interrupts, softirqs and NAPI polls (include/trace/events/irq.h, napi.h; unchanged 5.4 to 6.18).
#pragma once

#include <array>
#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

// Softirq vectors (include/linux/interrupt.h).
inline constexpr std::uint32_t kNetTxSoftirq = 2;
inline constexpr std::uint32_t kNetRxSoftirq = 3;
inline constexpr std::uint32_t kTaskletSoftirq = 6;
// Their names, as softirq_to_name[] has them (kernel/softirq.c, 5.4 to 6.18).
inline constexpr std::array<std::string_view, 10> kSoftirqNames{
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};

struct IrqHandlerEntry {
  static constexpr EventName name{"irq", "irq_handler_entry"};
  std::int32_t irq = 0;
  Text handler;
  static constexpr auto fields =
      std::tuple{field("irq", &IrqHandlerEntry::irq), field("name", &IrqHandlerEntry::handler)};
};

struct IrqHandlerExit {
  static constexpr EventName name{"irq", "irq_handler_exit"};
  std::int32_t irq = 0;
  static constexpr auto fields = std::tuple{field("irq", &IrqHandlerExit::irq)};
};

// Every event of irq_vectors: interrupts that have no handler of a driver, x86's local timer and
// those between processors (arch/x86/include/asm/trace/irq_vectors.h, 5.4 to 6.18). Those that
// begin and end one are named VECTOR_entry and VECTOR_exit; the others are about moving vectors.
struct IrqVector {
  static constexpr EventName name{"irq_vectors", ""};
  static constexpr bool is_family = true;
  std::string_view family_member;
  static constexpr auto fields = std::tuple{};
};

// Fires on every raise, also when the vector is already pending.
struct SoftirqRaise {
  static constexpr EventName name{"irq", "softirq_raise"};
  std::uint32_t vec = 0;
  static constexpr auto fields = std::tuple{field("vec", &SoftirqRaise::vec)};
};

struct SoftirqEntry {
  static constexpr EventName name{"irq", "softirq_entry"};
  std::uint32_t vec = 0;
  static constexpr auto fields = std::tuple{field("vec", &SoftirqEntry::vec)};
};

struct SoftirqExit {
  static constexpr EventName name{"irq", "softirq_exit"};
  std::uint32_t vec = 0;
  static constexpr auto fields = std::tuple{field("vec", &SoftirqExit::vec)};
};

// The device of the per-CPU backlog (lo, veth, RPS): NO_DEV, include/trace/events/napi.h.
inline constexpr std::string_view kBacklogDevice = "(no_device)";

// Emitted after the poll function returned (__napi_poll(), net/core/dev.c).
struct NapiPoll {
  static constexpr EventName name{"napi", "napi_poll"};
  NapiAddr napi{};
  Text device;
  std::int32_t work = 0;
  std::int32_t budget = 0;
  static constexpr auto fields =
      std::tuple{field("napi", &NapiPoll::napi), field("dev_name", &NapiPoll::device),
                 field("work", &NapiPoll::work), field("budget", &NapiPoll::budget)};
};

}  // namespace skbtrail
