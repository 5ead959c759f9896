#include "report/drops.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/human.h"
#include "report/loss_json.h"
#include "report/loss_line.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

using Group = std::pair<track::DropGroup, track::DropCount>;

// Most frequent first.
std::vector<Group> sorted(const track::DropStats& drops) {
  std::vector<Group> groups(drops.groups().begin(), drops.groups().end());
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.second.packets > b.second.packets;
  });
  return groups;
}

std::uint64_t dropped(const std::vector<Group>& groups) {
  std::uint64_t sum = 0;
  for (const auto& [group, count] : groups) sum += count.packets;
  return sum;
}

std::string_view direction(const track::DropGroup& group) {
  return group.direction == track::LegDirection::rx ? "rx" : "tx";
}

std::string place(const track::DropGroup& group, const PacketNames& names) {
  return group.location == 0 ? "-" : names.symbols.name(group.location);
}

}  // namespace

void write_drops_text(const track::DropStats& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  const std::vector<Group> groups = sorted(drops);
  if (groups.empty()) {
    out.print("no packet was dropped, of {}\n", human_count(drops.packets()));
  } else {
    out.print("{:>8} {:>10}  {:<3} {:<10} {:<8} {:<22} {}\n", "packets", "bytes", "", "device",
              "died in", "reason", "place, flow");
  }
  for (const auto& [group, count] : groups) {
    const std::string flow = names.flows.name(group.flow, group.direction);
    out.print("{:>8} {:>10}  {:<3} {:<10} {:<8} {:<22} {}{}{}\n", human_count(count.packets),
              human_bytes(count.bytes), direction(group), names.devices.name(group.device),
              group.died_in ? name(*group.died_in) : "-", names.reasons.name(group.reason),
              place(group, names), flow.empty() ? "" : "  ", flow);
  }
  if (!groups.empty()) {
    out.print("# {} dropped of {} packets\n", human_count(dropped(groups)),
              human_count(drops.packets()));
  }
  write_loss_line(facts, out);
}

void write_drops_json(const track::DropStats& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  json::array rows;
  for (const auto& [group, count] : sorted(drops)) {
    const std::string flow = names.flows.name(group.flow, group.direction);
    rows.push_back(
        {{"reason", names.reasons.name(group.reason)},
         {"location", place(group, names)},
         {"direction", direction(group)},
         {"device", names.devices.name(group.device)},
         {"flow", flow.empty() ? json::value(nullptr) : json::value(flow)},
         {"died_in", group.died_in ? json::value(name(*group.died_in)) : json::value(nullptr)},
         {"packets", count.packets},
         {"bytes", count.bytes},
         {"first_ns", count.first},
         {"last_ns", count.last}});
  }
  json::object result{{"drops", std::move(rows)}, {"packets", drops.packets()}};
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

}  // namespace skbtrail::report
