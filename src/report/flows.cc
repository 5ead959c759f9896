#include "report/flows.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/human.h"
#include "report/loss_json.h"
#include "report/loss_line.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

using track::FlowId;
using track::FlowRow;

std::uint64_t bytes(const FlowRow& row) {
  return row.received.bytes + row.sent.bytes;
}
std::uint64_t packets(const FlowRow& row) {
  return row.received.packets + row.sent.packets;
}

// Those that moved most first; the one without a name is not among them.
std::vector<FlowId> sorted(const std::vector<FlowRow>& rows) {
  std::vector<FlowId> ids;
  for (FlowId id = 1; id < rows.size(); ++id) {
    if (rows[id].first != 0) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](FlowId a, FlowId b) { return bytes(rows[a]) > bytes(rows[b]); });
  return ids;
}

std::string ends(const track::FlowKey& key) {
  return fmt::format("{} - {}", track::name(key.local), track::name(key.remote));
}

// "10/10/24": smallest, median, largest.
std::string spread(const track::Values& all) {
  const Histogram values = all.histogram();
  if (values.count() == 0) return "-";
  return fmt::format("{}/{}/{}", values.min(), values.percentile(0.5), values.max());
}

std::string duration_spread(const track::Values& all) {
  const Histogram microseconds = all.histogram();
  if (microseconds.count() == 0) return "-";
  const auto text = [](std::uint64_t us) { return std::string(CompactDuration(us * 1000).text()); };
  return fmt::format("{}/{}/{}", text(microseconds.min()), text(microseconds.percentile(0.5)),
                     text(microseconds.max()));
}

json::value spread_json(const track::Values& all) {
  const Histogram values = all.histogram();
  if (values.count() == 0) return nullptr;
  return {{"min", values.min()}, {"median", values.percentile(0.5)}, {"max", values.max()}};
}

// In a line of their own, where there are any.
void write_troubles(const FlowRow& row, TextWriter& out) {
  std::string line;
  const auto add = [&line](std::string_view what, std::uint64_t count) {
    if (count > 0) line += fmt::format("   {} {}", what, human_count(count));
  };
  add("RETRANSMITTED", row.retransmits);
  add("DROPPED", row.dropped);
  add("resets sent", row.resets_sent);
  add("resets received", row.resets_received);
  if (!line.empty()) out.print(" {}\n", line);
}

// Connections that came when there were too many.
void write_others(const track::FlowStats& flows, TextWriter& out) {
  const FlowRow& others = flows.others();
  if (flows.other_flows() == 0) return;
  out.print("# {} more connections are not told apart: received {} packets, {}, sent {}, {}\n",
            human_count(flows.other_flows()), human_count(others.received.packets),
            human_bytes(others.received.bytes), human_count(others.sent.packets),
            human_bytes(others.sent.bytes));
  out.print("#   retransmitted {}, dropped {}, resets sent {}, received {}\n",
            human_count(others.retransmits), human_count(others.dropped),
            human_count(others.resets_sent), human_count(others.resets_received));
}

json::value direction_json(const track::FlowDirection& direction) {
  return {{"packets", direction.packets}, {"bytes", direction.bytes}};
}

}  // namespace

// Several lines for each connection: it does not fit into one of 100 columns.
void write_flows_text(const track::FlowStats& flows, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  const std::vector<FlowRow>& rows = flows.rows();
  const std::vector<FlowId> ids = sorted(rows);
  if (ids.empty()) out.write("no TCP connection is named by the events of this capture\n");
  for (const FlowId id : ids) {
    const FlowRow& row = rows[id];
    out.print("{}{}\n", ends(names.flows.key(id)),
              row.owner == 0 ? "" : fmt::format("  {}-{}", names.comms.name(row.owner), row.owner));
    out.print("    received {:>8} packets {:>10}   sent {:>8} packets {:>10}   {} .. {}\n",
              human_count(row.received.packets), human_bytes(row.received.bytes),
              human_count(row.sent.packets), human_bytes(row.sent.bytes), human_time(row.first),
              human_time(row.last));
    out.print("    cwnd {}   srtt {}   rcv_wnd {}\n", spread(row.cwnd), duration_spread(row.srtt),
              spread(row.rcv_wnd));
    write_troubles(row, out);
  }
  if (!rows.empty() && packets(rows[track::kNoFlow]) > 0) {
    out.print("# {} packets, {}, have no known connection: UDP, ARP, handshakes\n",
              human_count(packets(rows[track::kNoFlow])), human_bytes(bytes(rows[track::kNoFlow])));
    if (facts.lacks("sock:sock_send_length")) {
      out.write(
          "# no sock:sock_send_length (Linux 6.3): among these is most of what tasks sent to other "
          "machines;\n# skbtrail record --probes tells of it\n");
    }
  }
  write_others(flows, out);
  out.print(
      "# {} connections seen from their ends; cwnd in segments, rcv_wnd in bytes: "
      "smallest/median/largest\n",
      human_count(ids.size()));
  write_loss_line(facts, out);
}

void write_flows_json(const track::FlowStats& flows, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out) {
  json::array list;
  const std::vector<FlowRow>& rows = flows.rows();
  for (const FlowId id : sorted(rows)) {
    const FlowRow& row = rows[id];
    const track::FlowKey& key = names.flows.key(id);
    json::value owner = nullptr;
    if (row.owner != 0) owner = {{"pid", row.owner}, {"comm", names.comms.name(row.owner)}};
    list.push_back({{"local", track::name(key.local)},
                    {"remote", track::name(key.remote)},
                    {"received", direction_json(row.received)},
                    {"sent", direction_json(row.sent)},
                    {"retransmits", row.retransmits},
                    {"resets_sent", row.resets_sent},
                    {"resets_received", row.resets_received},
                    {"dropped", row.dropped},
                    {"first_ns", row.first},
                    {"last_ns", row.last},
                    {"task", std::move(owner)},
                    {"cwnd", spread_json(row.cwnd)},
                    {"srtt_us", spread_json(row.srtt)},
                    {"rcv_wnd", spread_json(row.rcv_wnd)}});
  }
  const FlowRow nothing;
  const FlowRow& none = rows.empty() ? nothing : rows[track::kNoFlow];
  json::object result{
      {"flows", std::move(list)},
      {"without_flow",
       {{"received", direction_json(none.received)}, {"sent", direction_json(none.sent)}}}};
  // Only where there are any: a capture with more connections than have rows is a rare one.
  const FlowRow& others = flows.others();
  if (flows.other_flows() > 0) {
    result["more_flows"] = {{"flows", flows.other_flows()},
                            {"received", direction_json(others.received)},
                            {"sent", direction_json(others.sent)},
                            {"retransmits", others.retransmits},
                            {"resets_sent", others.resets_sent},
                            {"resets_received", others.resets_received},
                            {"dropped", others.dropped}};
  }
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

void write_samples_header(TextWriter& out) {
  out.print("{:>13} {:>5} {:>5} {:>8} {:>6} {:>7} {:>7}  {}\n", "time", "len", "cwnd", "ssthresh",
            "srtt", "snd_wnd", "rcv_wnd", "local - remote");
}

void write_sample_text(const track::FlowSample& sample, TextWriter& out) {
  constexpr std::uint32_t kInfinite = 0x7fffffff;  // TCP_INFINITE_SSTHRESH, include/net/tcp.h
  const Nanoseconds srtt = Nanoseconds{sample.srtt} * 1000;
  out.print("{:>13} {:>5} {:>5} {:>8} {:>6} {:>7} {:>7}  {}\n", human_time(sample.time),
            sample.data_len, sample.cwnd,
            sample.ssthresh == kInfinite ? "-" : fmt::format("{}", sample.ssthresh),
            CompactDuration(srtt).text(), sample.snd_wnd, sample.rcv_wnd, ends(sample.flow));
}

void write_sample_json(const track::FlowSample& sample, TextWriter& out) {
  const track::FlowKey& key = sample.flow;
  out.print(
      "{{\"time_ns\":{},\"local\":\"{}\",\"remote\":\"{}\",\"data_len\":{},\"cwnd\":{},"
      "\"ssthresh\":{},\"snd_wnd\":{},\"srtt_us\":{},\"rcv_wnd\":{}}}\n",
      sample.time, track::name(key.local), track::name(key.remote), sample.data_len, sample.cwnd,
      sample.ssthresh, sample.snd_wnd, sample.srtt, sample.rcv_wnd);
}

}  // namespace skbtrail::report
