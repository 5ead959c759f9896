// Stable keys: documented in skbtrail-netdev-times(1). Times are integer nanoseconds on the
// capture's clock.
#include <boost/json.hpp>

#include "report/loss_json.h"
#include "report/netdev_times.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

json::value optional_time(const std::optional<Nanoseconds>& time) {
  return time ? json::value(*time) : json::value(nullptr);
}

std::string hex(SkbAddr address) {
  return fmt::format("{:x}", static_cast<std::uint64_t>(address));
}

json::value task_json(Pid pid, const PacketNames& names) {
  return json::object{{"pid", pid}, {"comm", names.comms.name(pid)}};
}

json::object packet_json(const track::HunkPacket& packet, const PacketNames& names) {
  json::object object{{"skbaddr", hex(packet.skbaddr)},
                      {"len", packet.len},
                      {"device", names.devices.name(packet.device)},
                      {"time_ns", packet.received},
                      {"outcome", name(packet.outcome)},
                      {"copy_ns", optional_time(packet.copied)},
                      {"end_ns", optional_time(packet.ended)},
                      {"hops", packet.hops},
                      {"confidence", name(packet.confidence)},
                      {"crossed_loss", packet.crossed_loss}};
  if (packet.outcome == track::Outcome::delivered) {
    object["reader"] = task_json(packet.reader, names);
  }
  if (packet.location != 0) {
    object["reason"] = names.reasons.name(packet.reason);
    object["location"] = names.symbols.name(packet.location);
  }
  return object;
}

}  // namespace

void write_hunk_json(const track::ReceiveHunk& hunk, const PacketNames& names, TextWriter& out) {
  json::array irqs, packets, polls;
  for (const track::RunIrq& irq : hunk.irqs) {
    irqs.push_back({{"irq", irq.irq}, {"name", irq.handler}, {"time_ns", irq.entry}});
  }
  for (const track::HunkPacket& packet : hunk.packets)
    packets.push_back(packet_json(packet, names));
  for (const track::HunkPoll& poll : hunk.polls) {
    polls.push_back({{"time_ns", poll.time},
                     {"device", names.devices.name(poll.device)},
                     {"work", poll.work},
                     {"budget", poll.budget}});
  }
  json::object object{{"time_ns", hunk.start},
                      {"cpu", hunk.cpu},
                      {"root", name(hunk.root)},
                      {"irqs", std::move(irqs)},
                      {"raise_ns", optional_time(hunk.raised)},
                      {"softirq_ns", optional_time(hunk.softirq)},
                      {"end_ns", optional_time(hunk.end)},
                      {"after_loss", hunk.after_loss},
                      {"packets", std::move(packets)},
                      {"polls", std::move(polls)}};
  if (hunk.pid != 0) object["task"] = task_json(hunk.pid, names);
  out.write(json::serialize(object));
}

void write_transmit_json(const track::Leg& leg, const PacketNames& names, TextWriter& out) {
  const auto stage = [&leg](track::Stage which) {
    return leg.stages.has(which) ? json::value(leg.stages[which]) : json::value(nullptr);
  };
  json::object object{{"skbaddr", hex(leg.skbaddr)},
                      {"len", leg.len},
                      {"device", names.devices.name(leg.device)},
                      {"cpu", leg.cpu},
                      {"queue_ns", leg.birth},
                      {"xmit_ns", stage(track::Stage::xmit)},
                      {"free_ns", stage(track::Stage::complete)},
                      {"outcome", name(leg.outcome)},
                      {"rc", leg.rc},
                      {"requeues", leg.requeues},
                      {"segments", leg.segments},
                      {"handed_over", leg.handed_over},
                      {"crossed_loss", leg.crossed_loss}};
  if (leg.pid != 0) object["task"] = task_json(leg.pid, names);
  if (leg.outcome == track::Outcome::dropped) {
    object["reason"] = names.reasons.name(leg.reason);
    object["location"] = leg.location == 0 ? "-" : names.symbols.name(leg.location);
  }
  out.write(json::serialize(object));
}

void write_summary_json(const ReceiveTotals& rx, const TransmitTotals& tx,
                        const track::CaptureFacts& facts, TextWriter& out) {
  json::object object{{"rx",
                       {{"receives", rx.hunks.receives},
                        {"births", rx.hunks.births},
                        {"hops", rx.hunks.hops},
                        {"hunks", rx.hunks.hunks},
                        {"printed", rx.printed},
                        {"unmatched_copies", rx.unmatched_copies},
                        {"late_ends", rx.hunks.late_ends},
                        {"crossed_loss", rx.hunks.crossed_loss}}},
                      {"tx",
                       {{"queues", tx.births + tx.hops},
                        {"births", tx.births},
                        {"printed", tx.printed},
                        {"hops", tx.hops},
                        {"unmatched_starts", tx.send.unmatched_starts},
                        {"unmatched_xmits", tx.send.unmatched_xmits},
                        {"crossed_loss", tx.crossed_loss}}}};
  add_loss(object, facts);
  out.write(json::serialize(object));
}

}  // namespace skbtrail::report
