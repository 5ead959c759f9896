// Stable keys: documented in skbtrail-packets(1). Times are integer nanoseconds on the capture's
// clock.
#include <algorithm>
#include <boost/json.hpp>

#include "report/packets.h"

namespace skbtrail::report {
namespace {

using track::Leg;
using track::LegDirection;
using track::Stage;

// Names of this machine's tasks and devices are mostly plain; the rest is escaped by the library.
void append_string(Lines& line, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
  });
  if (plain) {
    line.push_back('"');
    line.append(text.data(), text.data() + text.size());
    line.push_back('"');
    return;
  }
  const std::string quoted = boost::json::serialize(boost::json::string(text));
  line.append(quoted.data(), quoted.data() + quoted.size());
}

template <class... Args>
void append(Lines& line, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(line), format, std::forward<Args>(args)...);
}

std::string_view direction(const Leg& leg) {
  return leg.direction == LegDirection::rx ? "rx" : "tx";
}

void append_stages(Lines& line, const auto& time_of) {
  char separator = '{';
  for (std::size_t i = 0; i < track::kStages; ++i) {
    const Nanoseconds time = time_of(static_cast<Stage>(i));
    if (time == 0) continue;
    append(line, "{}\"{}\":{}", separator, track::kStageNames[i], time);
    separator = ',';
  }
  if (separator == '{') line.push_back('{');
  line.push_back('}');
}

void append_reason(Lines& line, const Leg& leg, const PacketNames& names) {
  const bool told = leg.reason && (leg.outcome == track::Outcome::dropped ||
                                   leg.outcome == track::Outcome::consumed);
  line.append(std::string_view(",\"reason\":"));
  if (told) {
    append_string(line, names.reasons.name(leg.reason));
  } else if (leg.cause != track::UnknownCause::none) {
    append_string(line, track::kUnknownCauseNames[static_cast<std::size_t>(leg.cause)]);
  } else {
    line.append(std::string_view("null"));
  }
  if (leg.location != 0 && leg.outcome == track::Outcome::dropped) {
    line.append(std::string_view(",\"location\":"));
    append_string(line, names.symbols.name(leg.location));
  }
}

void append_owner(Lines& line, Pid pid, const PacketNames& names) {
  if (pid == 0) {
    line.append(std::string_view(",\"task\":null"));
    return;
  }
  append(line, ",\"task\":{{\"pid\":{},\"comm\":", pid);
  append_string(line, names.comms.name(pid));
  line.push_back('}');
}

void append_leg(Lines& line, const Leg& leg, const PacketNames& names) {
  append(line, "{{\"direction\":\"{}\",\"device\":", direction(leg));
  append_string(line, names.devices.name(leg.device));
  append(line, ",\"cpu\":{},\"len\":{},\"outcome\":\"{}\"", leg.cpu, leg.len, name(leg.outcome));
  append_reason(line, leg, names);
  append(line, ",\"confidence\":\"{}\"",
         track::kConfidenceNames[static_cast<std::size_t>(leg.confidence)]);
  append_owner(line, leg.pid, names);
  if (!leg.call.empty()) {
    line.append(std::string_view(",\"call\":"));
    append_string(line, leg.call);
  }
  if (!leg.blocked_call.empty()) {
    line.append(std::string_view(",\"blocked_in\":"));
    append_string(line, leg.blocked_call);
  }
  append(line, ",\"birth_ns\":{},\"hops\":{},\"segments\":{}", leg.birth, leg.hops, leg.segments);
  if (leg.requeues != 0) append(line, ",\"requeues\":{}", leg.requeues);
  if (leg.retransmit) line.append(std::string_view(",\"retransmit\":true"));
  if (leg.repeats != 0) append(line, ",\"repeats\":{}", leg.repeats);
  line.append(std::string_view(",\"stages\":"));
  append_stages(line, [&](Stage stage) { return leg.stages[stage]; });
  line.push_back('}');
}

}  // namespace

void write_packet_json(const track::Packet& packet, const PacketNames& names,
                       const std::optional<StageInterval>& interval, Lines& line) {
  const Leg& first = *packet.first;
  const Leg& last = packet.last();
  append(line, "{{\"id\":{},\"direction\":\"{}\",\"device\":", packet.id, direction(first));
  append_string(line, names.devices.name(first.device));
  append(line, ",\"len\":{},\"skbaddr\":\"{:x}\",\"generation\":{},\"cpu\":{},\"outcome\":\"{}\"",
         first.len, static_cast<std::uint64_t>(first.skbaddr), packet.generation, first.cpu,
         name(last.outcome));
  append_reason(line, last, names);
  append(line, ",\"confidence\":\"{}\"",
         track::kConfidenceNames[static_cast<std::size_t>(packet.confidence())]);
  append_owner(line, task(packet), names);
  line.append(std::string_view(",\"flow\":"));
  const std::string its_flow = flow(packet, names);
  if (its_flow.empty()) {
    line.append(std::string_view("null"));
  } else {
    append_string(line, its_flow);
  }
  line.append(std::string_view(",\"stages\":"));
  append_stages(line, [&](Stage stage) { return packet.stage(stage); });
  append(line, ",\"begin_ns\":{},\"total_ns\":{},\"crossed_loss\":{}", packet.begin(),
         packet.end() - packet.begin(), packet.crossed_loss());
  if (interval) {
    const std::optional<Nanoseconds> took = duration(packet, *interval);
    append(line, ",\"interval_ns\":{}", took ? fmt::to_string(*took) : "null");
  }
  if (last.merged_into != 0) append(line, ",\"merged_into\":{}", last.merged_into);
  if (first.parent != 0) append(line, ",\"parent\":{}", first.parent);
  line.append(std::string_view(",\"legs\":["));
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    if (leg != packet.first) line.push_back(',');
    append_leg(line, *leg, names);
  }
  line.append(std::string_view("]}\n"));
}

}  // namespace skbtrail::report
