// One packet, from where it was first seen to where it ended, as a chain of legs: sent by a device,
// received by a device. A request over veth has two, a packet that a router between two veth pairs
// forwards has four, one from a NIC to a local task has one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "skbtrail/units.h"
#include "track/names.h"
#include "track/outcome.h"
#include "track/stage.h"

namespace skbtrail::track {

enum class LegDirection : std::uint8_t { rx, tx };

// How the links of a packet's stages were made; the weakest of them.
enum class Confidence : std::uint8_t {
  exact,     // every event named the skb, or nothing else could have been meant
  inferred,  // by order, length or neighbourhood on the CPU
  socket,    // by the order of bytes or datagrams in the socket only
};
inline constexpr std::array<std::string_view, 3> kConfidenceNames{"exact", "inferred", "socket"};
inline std::string_view name(Confidence confidence) {
  return kConfidenceNames[static_cast<std::size_t>(confidence)];
}

// Why a leg's outcome is `unknown`.
enum class UnknownCause : std::uint8_t {
  none,
  address_reused,  // the skb was freed without an event: its address came back as another packet
  gap,             // events were lost while it lived
  socket_closed,   // its socket was closed before anyone read it
  evicted,         // more packets at once than are kept
  mixed_segments,  // a queue holds segments of several packets, in an order of its own
};
inline constexpr std::array<std::string_view, 6> kUnknownCauseNames{
    "-", "address reused", "events lost", "socket closed", "too many packets", "segments mixed"};

using FlowId = std::uint32_t;
inline constexpr FlowId kNoFlow = 0;

// One way over one device.
struct Leg {
  LegDirection direction{};
  Outcome outcome = Outcome::open;
  UnknownCause cause = UnknownCause::none;
  bool crossed_loss = false;  // do not trust its times
  DeviceId device{};          // the first; hops to stacked devices are counted
  CpuId cpu = 0;              // of its birth
  CpuId stack_cpu = 0;        // of its last netif_receive_skb that was no hop
  CpuId reader_cpu = 0;       // of its last copy
  std::uint32_t len = 0;
  Pid pid = 0;                          // who sent or read it; 0 when nobody is known
  std::uint32_t segments = 0;           // skbs that GSO made of it, or that GRO put into it
  std::optional<std::uint32_t> reason;  // of kfree_skb
  std::uint64_t location = 0;           // of kfree_skb
  SkbAddr skbaddr{};
  std::uint64_t id = 0;  // of its packet
  Confidence confidence = Confidence::exact;
  std::uint32_t run = 0;  // of stack_cpu (NetRxContext::run())
  Nanoseconds birth = 0;
  StageTimes stages;
  Nanoseconds freed = 0;          // of a received one: consume_skb or kfree_skb of it; 0: unseen
  std::string_view call;          // its system call; "" outside any
  std::string_view blocked_call;  // in which the reader slept
  FlowId flow = kNoFlow;
  std::uint32_t hops = 0;         // further devices on top of or below the first
  std::uint32_t requeues = 0;     // net_dev_xmit that the driver refused
  std::int32_t rc = 0;            // of the last net_dev_xmit
  bool handed_over = false;       // lo, veth: the receiver got this very skb
  std::uint64_t merged_into = 0;  // id of the packet it was put into; 0 when unknown
  std::uint64_t parent = 0;       // id of the packet GSO made it of; 0 when none
  bool retransmit = false;
  std::uint64_t repeats = 0;  // id of the packet that a retransmission sends again; 0 when unknown

  const Leg* next = nullptr;  // the way it took after this one

  // Of its direction.
  Stage first_stage() const { return direction == LegDirection::tx ? Stage::send : Stage::irq; }
  // The stages of its direction that it passed: bit N for stage N. What a received leg has of its
  // sending, and `blocked`, are none.
  std::uint32_t own_stages() const {
    const auto first = static_cast<unsigned>(first_stage());
    const auto last =
        static_cast<unsigned>(direction == LegDirection::tx ? Stage::complete : Stage::ret);
    return stages.reached() & ((2U << last) - (1U << first));
  }
};

class Packet {
 public:
  Packet(std::uint64_t its_id, std::uint32_t its_generation, const Leg* its_first)
      : id(its_id), generation(its_generation), first(its_first) {}

  std::uint64_t id = 0;          // 1, 2, ... in order of birth
  std::uint32_t generation = 0;  // how often its address was a packet's before
  const Leg* first = nullptr;

  const Leg& last() const;
  Outcome outcome() const { return last().outcome; }
  // A stage of the whole packet: where legs repeat it, the first sending and the last receiving.
  Nanoseconds stage(Stage stage) const;
  // The earliest and the latest stage of all legs; `blocked` is none of them.
  Nanoseconds begin() const {
    if (end_ == 0) measure();
    return begin_;
  }
  Nanoseconds end() const {
    if (end_ == 0) measure();
    return end_;
  }
  Confidence confidence() const;
  bool crossed_loss() const;

 private:
  void measure() const;
  // Only once somebody asks: not everybody does, and who does asks often.
  mutable Nanoseconds begin_ = 0;
  mutable Nanoseconds end_ = 0;
};

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // Once per packet, when all its legs have ended, or at the end of the capture. The packet and its
  // legs live until the function returns.
  virtual void packet(const Packet& packet) = 0;
};

// Who does not want to wait for the rest of a packet.
class LegSink {
 public:
  virtual ~LegSink() = default;
  // Once per leg, when it ends: outcome and stages are final; the flow, and whether it was a
  // retransmission, are not.
  virtual void leg_ended(const Leg& leg) = 0;
};

}  // namespace skbtrail::track
