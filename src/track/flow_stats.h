// What each TCP connection did, seen from each of its ends that is on this machine.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "event/tcp.h"
#include "skbtrail/event.h"
#include "track/flow.h"
#include "track/packet.h"
#include "track/values.h"

namespace skbtrail::track {

struct FlowDirection {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;  // of packets, headers included, as the device saw them

  void add(const FlowDirection& other) {
    packets += other.packets;
    bytes += other.bytes;
  }
};

// That packets came or left by.
class DeviceSet {
 public:
  void add(DeviceId device) { devices_ |= bit(device); }
  bool has(DeviceId device) const { return (devices_ & bit(device)) != 0; }

 private:
  // Those behind the first 63 share one: few machines have as many.
  static std::uint64_t bit(DeviceId device) {
    return std::uint64_t{1} << std::min<std::size_t>(static_cast<std::size_t>(device), 63);
  }
  std::uint64_t devices_ = 0;
};

struct FlowRow {
  FlowDirection received, sent;
  std::uint64_t retransmits = 0;
  std::uint64_t resets_sent = 0;
  std::uint64_t resets_received = 0;
  std::uint64_t dropped = 0;
  Nanoseconds first = 0;
  Nanoseconds last = 0;
  Pid owner = 0;      // who read, or sent in a call, last
  DeviceSet devices;  // of packets that this end itself told of
  // At every tcp_probe:
  Values cwnd;     // segments
  Values srtt;     // microseconds
  Values rcv_wnd;  // bytes
};

// One tcp_probe of a flow.
struct FlowSample {
  Nanoseconds time = 0;
  FlowKey flow;
  std::uint32_t data_len = 0;
  std::uint32_t cwnd = 0;      // segments
  std::uint32_t ssthresh = 0;  // segments
  std::uint32_t snd_wnd = 0;   // bytes
  std::uint32_t srtt = 0;      // microseconds
  std::uint32_t rcv_wnd = 0;   // bytes
};

class FlowStats : public PacketSink {
 public:
  // Flows with a row of their own: what a server with short connections makes takes 400 bytes
  // each, of those that go on the three histograms take 10 KB.
  static constexpr std::size_t kMostRows = 16'384;

  // `flows` is the one of the PacketTracker whose sink this is. `sample` may be empty.
  FlowStats(Flows& flows, std::function<void(const FlowSample&)> sample,
            std::size_t most_rows = kMostRows)
      : flows_(flows), sample_(std::move(sample)), most_rows_(most_rows) {}

  void packet(const Packet& packet) override;
  void on(const EventHeader& header, const TcpProbeWindows& event);
  void on(const EventHeader& header, const TcpSendReset& event);
  void on(const EventHeader& header, const TcpReceiveReset& event);

  // After the last packet.
  void finish();

  // Indexed by FlowId; the first is of packets that belong to no known flow.
  const std::vector<FlowRow>& rows() const { return rows_; }
  // All that have an id and no row, together. Without what tcp_probe says, and without an owner.
  const FlowRow& others() const { return others_; }
  std::uint64_t other_flows() const { return other_flows_; }

 private:
  // GRO, or reassembly, put them into a packet that has not ended: only of that one is the flow
  // known.
  struct Merged {
    FlowDirection received;
    Nanoseconds first = 0;
    Nanoseconds last = 0;
  };
  using ToldBy = std::pair<FlowId, DeviceId>;
  static constexpr std::size_t kMaxMerged = 65536;  // packets that others were put into

  FlowRow& row(FlowId id, Nanoseconds time);
  FlowRow& row(const Leg& leg, FlowId other_end);
  [[gnu::noinline]] FlowRow& other_row(FlowId id);
  void add(const Leg& leg, FlowId other_end);
  bool add_merged(const Leg& leg);
  void take_merged(const Packet& into);
  void add(FlowId id, const Merged& merged);
  void add_told(const ToldBy& by, const FlowRow& told);
  bool is_of(const ToldBy& by) const;

  Flows& flows_;
  std::function<void(const FlowSample&)> sample_;
  std::size_t most_rows_;
  std::vector<FlowRow> rows_;
  FlowRow others_;
  std::vector<bool> is_other_;  // by FlowId
  std::uint64_t other_flows_ = 0;
  // What one end of a connection had not told of, and the other one, on this machine too, had: by
  // the id of the former, and the device. It is of that end when that has told of others that came
  // or left by this device. Else it may not be here (on the way addresses may be translated), or
  // somebody passes packets on in user space, who takes them and sends them anew.
  boost::unordered_flat_map<ToldBy, FlowRow> told_;
  boost::unordered_flat_map<std::uint64_t, Merged> merged_;  // by id of what they were put into
};

}  // namespace skbtrail::track
