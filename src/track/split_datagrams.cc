#include "track/split_datagrams.h"

#include <utility>

namespace skbtrail::track {

void SplitDatagrams::begins(CpuId id, LiveLeg& packet, bool others_wait) {
  end(id);
  legs_.release_address(packet);
  packet.rx.splits = true;
  const std::uint32_t number = others_wait ? packet.rx.datagrams : 0;
  if (others_wait && number == 0) packet.infer();
  cpus_[id] = Split{&packet, number};
  ++splitting_;
}

LiveLeg* SplitDatagrams::part(CpuId id, bool Split::*came_to) {
  Split& split = *cpus_[id];
  ++split.told;
  split.*came_to = true;
  return split.packet.get();
}

void SplitDatagrams::end(CpuId id) {
  const std::optional<Split> split = std::exchange(cpus_[id], std::nullopt);
  if (!split) return;
  --splitting_;
  LiveLeg* packet = split->packet.get();
  if (packet == nullptr) return;
  packet->rx.splits = false;
  if (split->dropped) return legs_.close(*packet, Outcome::dropped);
  if (!split->announced) return legs_.close(*packet, Outcome::consumed);
  Socket* socket = sockets_.find(packet->rx.socket);
  if (socket != nullptr && socket->datagrams.end_parts(*packet)) return;
  reads_.was_last_part(*packet);
}

void SplitDatagrams::finish() {
  for (CpuId id = 0; splitting_ > 0; ++id) end(id);
}

}  // namespace skbtrail::track
