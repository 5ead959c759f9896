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

using UnseenGroup = std::pair<track::UnseenDrop, track::UnseenCount>;

// Most frequent first.
template <class Groups>
auto sorted(const Groups& all) {
  std::vector<std::pair<typename Groups::key_type, typename Groups::mapped_type>> groups(
      all.begin(), all.end());
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
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

std::string place(std::uint64_t location, const PacketNames& names) {
  return location == 0 ? "-" : names.symbols.name(location);
}

}  // namespace

void write_drops_text(const Drops& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  const std::vector<Group> groups = sorted(drops.stats.groups());
  const std::vector<UnseenGroup> unseen = sorted(drops.unseen.groups());
  if (groups.empty() && unseen.empty()) {
    out.print("no packet was dropped, of {}\n", human_count(drops.stats.packets()));
  } else {
    out.print("{:>8} {:>10}  {:<3} {:<10} {:<8} {:<22} {}\n", "packets", "bytes", "", "device",
              "died in", "reason", "place; flow below");
  }
  for (const auto& [group, count] : groups) {
    const std::string flow = names.flows.name(group.flow, group.direction);
    out.print("{:>8} {:>10}  {:<3} {:<10} {:<8} {:<22} {}\n", human_count(count.packets),
              human_bytes(count.bytes), direction(group), names.devices.name(group.device),
              group.died_in ? name(*group.died_in) : "-", names.reasons.name(group.reason),
              place(group.location, names));
    if (!flow.empty()) out.print("{:>45}{}\n", "", flow);  // beside the place it is too wide
  }
  for (const auto& [drop, count] : unseen) {
    out.print("{:>8} {:>10}  {:<3} {:<10} {:<8} {:<22} {}\n", human_count(count.packets), "-", "-",
              "-", "-", names.reasons.name(drop.reason), place(drop.location, names));
  }
  if (!groups.empty()) {
    out.print("# {} dropped of {} packets\n", human_count(dropped(groups)),
              human_count(drops.stats.packets()));
  }
  if (!unseen.empty()) {
    out.print(
        "# {} dropped of which there is nothing else: before a device had them, or not recorded\n",
        human_count(drops.unseen.packets()));
  }
  write_loss_line(facts, out);
}

void write_drops_json(const Drops& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  json::array rows;
  for (const auto& [group, count] : sorted(drops.stats.groups())) {
    const std::string flow = names.flows.name(group.flow, group.direction);
    rows.push_back(
        {{"reason", names.reasons.name(group.reason)},
         {"location", place(group.location, names)},
         {"direction", direction(group)},
         {"device", names.devices.name(group.device)},
         {"flow", flow.empty() ? json::value(nullptr) : json::value(flow)},
         {"died_in", group.died_in ? json::value(name(*group.died_in)) : json::value(nullptr)},
         {"packets", count.packets},
         {"bytes", count.bytes},
         {"first_ns", count.first},
         {"last_ns", count.last}});
  }
  for (const auto& [drop, count] : sorted(drops.unseen.groups())) {
    rows.push_back({{"reason", names.reasons.name(drop.reason)},
                    {"location", place(drop.location, names)},
                    {"direction", nullptr},
                    {"device", nullptr},
                    {"flow", nullptr},
                    {"died_in", nullptr},
                    {"packets", count.packets},
                    {"bytes", nullptr},
                    {"first_ns", count.first},
                    {"last_ns", count.last}});
  }
  json::object result{{"drops", std::move(rows)}, {"packets", drops.stats.packets()}};
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

}  // namespace skbtrail::report
