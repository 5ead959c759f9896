// Stable keys: documented in skbtrail-netdev-times(1). Times are integer nanoseconds on the
// capture's clock.
#include <boost/json.hpp>

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

json::value task_json(Pid pid, const Names& names) {
  return json::object{{"pid", pid}, {"comm", names.comms.name(pid)}};
}

json::object packet_json(const track::RxPacket& packet, const Names& names) {
  json::object object{{"skbaddr", hex(packet.skbaddr)},
                      {"len", packet.len},
                      {"device", names.devices.name(packet.device)},
                      {"time_ns", packet.received},
                      {"outcome", name(packet.outcome)},
                      {"copy_ns", optional_time(packet.copied)},
                      {"end_ns", optional_time(packet.ended)},
                      {"hops", packet.hops},
                      {"crossed_loss", packet.crossed_loss}};
  if (packet.outcome == track::Outcome::delivered || packet.copied) {
    object["reader"] = task_json(packet.reader, names);
  }
  if (packet.outcome == track::Outcome::dropped) {
    object["reason"] = names.reasons.name(packet.reason);
    object["location"] = names.symbols.name(packet.location);
  }
  return object;
}

}  // namespace

void write_hunk_json(const track::ReceiveHunk& hunk, const Names& names, TextWriter& out) {
  json::array irqs, packets, polls;
  for (const track::HunkIrq& irq : hunk.irqs) {
    irqs.push_back({{"irq", irq.irq}, {"name", irq.handler}, {"time_ns", irq.entry}});
  }
  for (const track::RxPacket& packet : hunk.packets) packets.push_back(packet_json(packet, names));
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

void write_transmit_json(const track::TxPacket& packet, const Names& names, TextWriter& out) {
  json::object object{{"skbaddr", hex(packet.skbaddr)},
                      {"len", packet.len},
                      {"device", names.devices.name(packet.device)},
                      {"cpu", packet.cpu},
                      {"queue_ns", packet.queued},
                      {"xmit_ns", optional_time(packet.sent)},
                      {"free_ns", optional_time(packet.completed)},
                      {"outcome", name(packet.outcome)},
                      {"rc", packet.rc},
                      {"requeues", packet.requeues},
                      {"segments", packet.segments},
                      {"handed_over", packet.handed_over},
                      {"crossed_loss", packet.crossed_loss}};
  if (packet.in_task) object["task"] = task_json(packet.pid, names);
  if (packet.outcome == track::Outcome::dropped) {
    object["reason"] = names.reasons.name(packet.reason);
    object["location"] = packet.location == 0 ? "-" : names.symbols.name(packet.location);
  }
  out.write(json::serialize(object));
}

void write_summary_json(const track::RxCounters& rx, const track::TxCounters& tx,
                        const track::CaptureFacts& facts, TextWriter& out) {
  const json::object object{{"lost_events", facts.lost()},
                            {"gaps", facts.gap_count},
                            {"damage", json::value_from(facts.damage)},
                            {"rx",
                             {{"receives", rx.receives},
                              {"births", rx.births},
                              {"hops", rx.hops},
                              {"hunks", rx.hunks},
                              {"unmatched_copies", rx.unmatched_copies},
                              {"late_ends", rx.late_ends},
                              {"crossed_loss", rx.crossed_loss}}},
                            {"tx",
                             {{"queues", tx.queues},
                              {"births", tx.births},
                              {"hops", tx.hops},
                              {"unmatched_starts", tx.unmatched_starts},
                              {"unmatched_xmits", tx.unmatched_xmits},
                              {"crossed_loss", tx.crossed_loss}}}};
  out.write(json::serialize(object));
}

}  // namespace skbtrail::report
