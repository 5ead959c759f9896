// Up to 100 columns with usual names: when, where, how large, the whole, what became of it, whose;
// then the five steps of it, those that it took, and in place of further ones why it took no more.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/human.h"
#include "report/loss_line.h"
#include "report/packets.h"

namespace skbtrail::report {
namespace {

using track::Leg;
using track::Stage;

constexpr std::array kWideStages{Stage::send,  Stage::queue,   Stage::enqueue,  Stage::dequeue,
                                 Stage::start, Stage::xmit,    Stage::complete, Stage::irq,
                                 Stage::raise, Stage::softirq, Stage::poll,     Stage::gro,
                                 Stage::stack, Stage::proto,   Stage::ready,    Stage::wake,
                                 Stage::run,   Stage::copy,    Stage::ret};

void spaces(Lines& line, std::size_t count) {
  const std::size_t before = line.size();
  line.resize(before + count);
  std::memset(line.data() + before, ' ', count);
}

// Right-aligned in `width`, with a space before it.
void column(Lines& line, std::string_view text, std::size_t width) {
  spaces(line, text.size() < width ? width + 1 - text.size() : 1);
  append_text(line, text);
}

// A column of blanks; returns its end.
char* blank_column(Lines& line, std::size_t width) {
  const std::size_t before = line.size();
  line.resize(before + width + 1);
  char* begin = line.data() + before;
  std::memset(begin, ' ', width + 1);
  return begin + width + 1;
}

// Where the columns of a line end that begins here. What is longer than usual goes on into the
// blanks of the columns behind it, and these stay in their places as far as that goes.
class ColumnEnds {
 public:
  explicit ColumnEnds(const Lines& line) : begin_(line.size()) {}

  // A column of `width` and a space before it: what is left of its width.
  std::size_t next(const Lines& line, std::size_t width) {
    end_ += width + 1;
    const std::size_t used = line.size() - begin_;
    return used + 1 < end_ ? end_ - used - 1 : 0;
  }
  // Blanks up to the end of the columns so far.
  void fill(Lines& line) const {
    const std::size_t used = line.size() - begin_;
    if (used < end_) spaces(line, end_ - used);
  }

 private:
  std::size_t begin_;
  std::size_t end_ = 0;
};

// Up to a thousand seconds a duration has at most 6 characters: written where it belongs.
constexpr std::size_t kDuration = 6;
void duration_column(Lines& line, std::optional<Nanoseconds> duration, std::size_t width) {
  constexpr Nanoseconds kFits = 1'000'000'000'000;
  if (!duration) {
    *(blank_column(line, std::max<std::size_t>(width, 1)) - 1) = '-';
  } else if (width >= kDuration && *duration < kFits) {
    write_compact_duration(*duration, blank_column(line, width));
  } else {
    column(line, CompactDuration(*duration).text(), width);
  }
}

void number(Lines& line, std::uint64_t value, std::size_t width) {
  if (width < 6 || value > 999'999) {
    const fmt::format_int digits(value);
    return column(line, {digits.data(), digits.size()}, width);
  }
  char* at = blank_column(line, width);
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0);
}

void time_column(Lines& line, Nanoseconds time) {
  const fmt::format_int seconds(time / 1'000'000'000);
  const fmt::format_int micros(1'000'000 + time % 1'000'000'000 / 1000);
  if (seconds.size() < 6) spaces(line, 6 - seconds.size());
  append_text(line, {seconds.data(), seconds.size()});
  line.push_back('.');
  append_text(line, {micros.data() + 1, micros.size() - 1});
}

// "+12.3us"; "-12.3us" for what a damaged capture tells of as before its packet's begin.
std::string offset_from(Nanoseconds begin, Nanoseconds time) {
  return time < begin ? fmt::format("-{}", CompactDuration(begin - time).text())
                      : fmt::format("+{}", CompactDuration(time - begin).text());
}

bool tells_reason(const Leg& last) {
  return last.outcome == track::Outcome::dropped ||
         (last.reason && last.outcome == track::Outcome::consumed);
}
bool tells_where(const Leg& last) {
  return last.outcome == track::Outcome::merged && last.merged_into != 0;
}
bool has_details(const Leg& last) {
  return tells_reason(last) || last.cause != track::UnknownCause::none || tells_where(last);
}

// Why it ended like that: "NO_SOCKET __udp4_lib_rcv+0x545", "events lost", "into 17".
void append_details(Lines& line, const Leg& last, const PacketNames& names) {
  if (tells_reason(last)) {
    line.push_back(' ');
    append_text(line, names.reasons.name(last.reason));
    if (last.location != 0) {
      line.push_back(' ');
      append_text(line, names.symbols.name(last.location));
    }
  }
  if (last.cause != track::UnknownCause::none) {
    line.push_back(' ');
    append_text(line, track::kUnknownCauseNames[static_cast<std::size_t>(last.cause)]);
  }
  if (tells_where(last)) {
    fmt::format_to(std::back_inserter(line), " into {}", last.merged_into);
  }
}

// '~' where a step was inferred, '?' where only the socket's order tells, '!' where events were
// lost.
char mark(const track::Packet& packet) {
  if (packet.crossed_loss()) return '!';
  switch (packet.confidence()) {
    case track::Confidence::exact:
      return ' ';
    case track::Confidence::inferred:
      return '~';
    case track::Confidence::socket:
      return '?';
  }
  return ' ';
}

void append_task(Lines& line, Pid pid, const PacketNames& names) {
  line.push_back(' ');
  append_text(line, names.comms.name(pid));
  line.push_back('-');
  const fmt::format_int digits(pid);
  append_text(line, {digits.data(), digits.size()});
}

// Of the narrow lines; with the space before each, and one behind the mark, 100.
constexpr std::size_t kTime = 13;
constexpr std::size_t kWay = 11;
constexpr std::size_t kLen = 5;
constexpr std::size_t kOutcome = 11;
constexpr std::size_t kTask = 13;

std::string heading(const StageInterval& interval) {
  return fmt::format("{}:{}", name(interval.from), name(interval.to));
}
std::size_t width(const StageInterval& interval) {
  return std::max(kDuration, name(interval.from).size() + 1 + name(interval.to).size());
}

void write_narrow(const track::Packet& packet, const PacketNames& names,
                  const std::optional<StageInterval>& interval, Lines& line) {
  ColumnEnds ends(line);
  time_column(line, packet.begin());
  ends.next(line, kTime - 1);
  line.push_back(' ');
  append_way(packet, names, line);
  ends.next(line, kWay);
  number(line, packet.last().len, ends.next(line, kLen));
  if (interval) {
    duration_column(line, duration(packet, *interval), ends.next(line, width(*interval)));
  }
  duration_column(line, packet.end() - packet.begin(), ends.next(line, kDuration));
  line.push_back(mark(packet));
  ends.next(line, 0);
  line.push_back(' ');
  append_text(line, name(packet.outcome()));
  ends.next(line, kOutcome);
  if (const Pid pid = task(packet); pid != 0) {
    ends.fill(line);
    append_task(line, pid, names);
  }
  ends.next(line, kTask);
  const PacketSteps way = steps(packet);
  const std::array all{way.send, way.net, way.proto, way.wait, way.read};
  std::size_t count = all.size();
  while (count > 0 && !all[count - 1]) --count;
  for (std::size_t i = 0; i < count; ++i) {
    duration_column(line, all[i], ends.next(line, kDuration));
  }
  if (!has_details(packet.last())) return;
  ends.fill(line);  // of those that have no steps
  append_details(line, packet.last(), names);
}

void write_wide(const track::Packet& packet, const PacketNames& names,
                const std::optional<StageInterval>& interval, Lines& line) {
  constexpr std::size_t kWideWay = 13;
  const Nanoseconds begin = packet.begin();
  number(line, packet.id, 7);
  line.push_back(' ');
  time_column(line, begin);
  line.push_back(' ');
  const std::size_t way = line.size();
  append_way(packet, names, line);
  if (line.size() - way < kWideWay) spaces(line, kWideWay - (line.size() - way));
  number(line, packet.last().len, 6);
  number(line, packet.first->cpu, 3);
  for (const Stage stage : kWideStages) {
    const Nanoseconds time = packet.stage(stage);
    if (time == 0) {
      column(line, "-", 8);
    } else {
      column(line, offset_from(begin, time), 8);
    }
  }
  if (interval) duration_column(line, duration(packet, *interval), width(*interval));
  duration_column(line, packet.end() - begin, 7);
  line.push_back(mark(packet));
  line.push_back(' ');
  const std::size_t outcome = line.size();
  append_text(line, name(packet.outcome()));
  append_details(line, packet.last(), names);
  if (const Pid pid = task(packet); pid != 0) {
    if (line.size() - outcome < kOutcome) spaces(line, kOutcome - (line.size() - outcome));
    append_task(line, pid, names);
  }
  const std::string its_flow = flow(packet, names);
  if (!its_flow.empty()) fmt::format_to(std::back_inserter(line), "  {}", its_flow);
  if (const Leg& first = *packet.first; first.repeats != 0) {
    fmt::format_to(std::back_inserter(line), "  RETRANSMITS {}", first.repeats);
  } else if (first.retransmit) {
    line.append(std::string_view("  RETRANSMITS"));
  }
  const Leg& last = packet.last();
  if (!last.call.empty()) fmt::format_to(std::back_inserter(line), "  {}()", last.call);
  if (last.stages.has(Stage::blocked)) {
    const Nanoseconds slept = last.stages[Stage::blocked];
    fmt::format_to(std::back_inserter(line), "  slept from {} in {}", offset_from(begin, slept),
                   last.blocked_call.empty() ? "-" : last.blocked_call);
  }
  fmt::format_to(std::back_inserter(line), "  skb={:x}/{}",
                 static_cast<std::uint64_t>(packet.first->skbaddr), packet.generation);
}

}  // namespace

void write_packets_header(const PacketColumns& columns, TextWriter& out) {
  if (columns.width == PacketWidth::narrow) {
    out.print("{:>{}} {:<{}} {:>{}}", "time", kTime, "devices", kWay, "len", kLen);
    if (columns.interval) {
      out.print(" {:>{}}", heading(*columns.interval), width(*columns.interval));
    }
    out.print(" {:>{}}  {:<{}} {:<{}}", "total", kDuration, "outcome", kOutcome, "task", kTask);
    for (const std::string_view step : {"send", "net", "proto", "wait", "read"}) {
      out.print(" {:>{}}", step, kDuration);
    }
    out.write("\n");
    return;
  }
  out.write("      id          time devices          len cpu");
  for (const Stage stage : kWideStages) out.print(" {:>8}", name(stage));
  if (columns.interval) out.print(" {:>{}}", heading(*columns.interval), width(*columns.interval));
  out.write("   total  outcome     task\n");
}

void write_packet_text(const track::Packet& packet, const PacketNames& names,
                       const PacketColumns& columns, Lines& line) {
  if (columns.width == PacketWidth::narrow) {
    write_narrow(packet, names, columns.interval, line);
  } else {
    write_wide(packet, names, columns.interval, line);
  }
  line.push_back('\n');
}

void write_waterfall(const track::Packet& packet, const PacketNames& names, Lines& out) {
  struct Point {
    Nanoseconds time;
    Stage stage;
    std::string_view device;
  };
  std::vector<Point> points;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    for (const Stage stage : kWideStages) {
      if (leg->stages.has(stage)) {
        points.push_back({leg->stages[stage], stage, names.devices.name(leg->device)});
      }
    }
  }
  if (points.empty()) return;
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.time < b.time; });
  constexpr std::uint64_t kWidth = 56;
  const Nanoseconds begin = points.front().time;
  const Nanoseconds whole = std::max<Nanoseconds>(points.back().time - begin, 1);
  const auto place = [&](Nanoseconds time) { return (time - begin) * kWidth / whole; };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Nanoseconds until = i + 1 < points.size() ? points[i + 1].time : points[i].time;
    const std::uint64_t from = place(points[i].time);
    const std::uint64_t to = place(until);
    std::string bar(from, ' ');
    for (std::uint64_t at = from; at < to; ++at) bar += "█";
    if (to == from) bar += i + 1 < points.size() ? "▏" : "◆";
    fmt::format_to(std::back_inserter(out), "    {:<8} {:<8} {:>8} {:>8} {}\n",
                   name(points[i].stage), points[i].device, offset_from(begin, points[i].time),
                   i + 1 < points.size() ? CompactDuration(until - points[i].time).text() : "",
                   bar);
  }
}

void write_packets_summary(const track::CaptureFacts& facts, const PacketTotals& totals,
                           TextWriter& out) {
  out.print("# {} in {}", plural(totals.packets, "packet"), plural(totals.legs.legs, "leg"));
  if (totals.printed != totals.packets) out.print(", {} printed", human_count(totals.printed));
  out.write("\n");
  struct Line {
    std::uint64_t count;
    std::string_view noun, rest;
  };
  const std::vector<Line> lines{
      {totals.send.unmatched_starts, "transmit start", "of an skb that no device queue saw"},
      {totals.send.unmatched_xmits, "net_dev_xmit event", "without net_dev_start_xmit"},
      {totals.delivery.unmatched_bytes, "byte", "read that came in packets not in the capture"},
      {totals.delivery.unmatched_datagrams, "datagram", "read but not in the capture"},
      {totals.unknown_ends, "skb", "freed but no packet here: unix, netlink, taps"},
      {totals.unseen_drops, "skb", "dropped but no packet here: 'skbtrail drops' tells where"},
      {totals.delivery.peeked_copies, "peek", "at an skb, which took nothing"},
      {totals.delivery.disordered_sockets, "socket", "read in another order than received"},
      {totals.legs.crossed_loss, "leg", "alive while events were lost: marked '!'"},
      {totals.legs.evicted, "packet", "given up because too many were alive at once"}};
  for (const Line& line : lines) {
    if (line.count > 0) out.print("# {} {}\n", plural(line.count, line.noun), line.rest);
  }
  write_loss_line(facts, out);
}

}  // namespace skbtrail::report
