#include "report/packets.h"

#include <algorithm>

namespace skbtrail::report {
namespace {

using track::Leg;
using track::LegDirection;
using track::Stage;

const Leg* last_leg(const track::Packet& packet, LegDirection direction) {
  const Leg* found = nullptr;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    if (leg->direction == direction) found = leg;
  }
  return found;
}

std::optional<Nanoseconds> between(Nanoseconds from, Nanoseconds to) {
  if (from == 0 || to == 0 || to < from) return std::nullopt;
  return to - from;
}

}  // namespace

PacketSteps steps(const track::Packet& packet) {
  PacketSteps steps;
  const Leg* received = last_leg(packet, LegDirection::rx);
  Nanoseconds from = packet.begin();
  if (received == nullptr) {
    const track::StageTimes& stages = packet.last().stages;
    steps.send = between(from, std::max(stages[Stage::xmit], stages[Stage::complete]));
    return steps;
  }
  const track::StageTimes& stages = received->stages;
  // Forwarded: the receiving part ends where the last sending begins.
  const auto* next = received->next;
  if (received != packet.first) {
    steps.send = between(from, received->birth);
    from = received->birth;
  }
  steps.net = between(from, stages[Stage::stack]);
  if (next != nullptr) {
    const auto onward = between(stages[Stage::stack],
                                std::max(next->stages[Stage::xmit], next->stages[Stage::complete]));
    steps.send = onward ? std::optional(steps.send.value_or(0) + *onward) : std::nullopt;
    return steps;
  }
  const Nanoseconds ready = std::max(stages[Stage::ready], stages[Stage::proto]);
  steps.proto = between(stages[Stage::stack], ready);
  const Nanoseconds in_socket = ready != 0 ? ready : stages[Stage::stack];
  const Nanoseconds end = std::max(stages[Stage::copy], stages[Stage::ret]);
  if (end == 0) return steps;
  const Nanoseconds runs = stages.has(Stage::run) ? stages[Stage::run] : in_socket;
  steps.wait = between(in_socket, runs);
  steps.read = between(runs, end);
  return steps;
}

std::optional<Nanoseconds> duration(const track::Packet& packet, const StageInterval& interval) {
  return between(packet.stage(interval.from), packet.stage(interval.to));
}

void append_way(const track::Packet& packet, const PacketNames& names, Lines& out) {
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    if (leg != packet.first) out.push_back('>');
    append_text(out, names.devices.name(leg->device));
  }
}

Pid task(const track::Packet& packet) {
  Pid pid = 0;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    if (leg->pid != 0) pid = leg->pid;
  }
  return pid;
}

std::string flow(const track::Packet& packet, const PacketNames& names) {
  const Leg* best = nullptr;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    const bool better =
        leg->flow != track::kNoFlow && (best == nullptr || leg->direction == LegDirection::rx);
    if (better) best = leg;
  }
  return best == nullptr ? "" : names.flows.name(best->flow, best->direction);
}

}  // namespace skbtrail::report
