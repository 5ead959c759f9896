#include <algorithm>
#include <array>
#include <cstdint>

#include "base/human.h"
#include "report/netdev_times.h"

namespace skbtrail::report {
namespace {

using track::Stage;

constexpr std::string_view kJoint = "         |\n";
constexpr std::string_view kInnerJoint = "         |            |\n";

// The text of a small number, without an allocation.
class Digits {
 public:
  Digits() { std::fill_n(text_.begin(), kMostColumns, ' '); }

  std::string_view text() const { return {digits(), length_}; }
  // On the right of so many columns. fmt's own width counts code points, which took longer than the
  // digits.
  std::string_view right(std::size_t columns) const {
    const std::size_t all = std::max(columns, length_);
    return {digits() + length_ - all, all};
  }

 protected:
  template <class Format, class... Args>
  void set(const Format& format, const Args&... args) {
    length_ = static_cast<std::size_t>(fmt::format_to(digits(), format, args...) - digits());
  }

 private:
  static constexpr std::size_t kMostColumns = 16;

  char* digits() { return text_.data() + kMostColumns; }
  const char* digits() const { return text_.data() + kMostColumns; }

  std::array<char, kMostColumns + 48> text_;
  std::size_t length_ = 0;
};

// Milliseconds from `base` to `time` as the script prints them, "%.3f"; negative when it was
// before. From integers: the fixed digits of a double took a third of the whole report's time.
// Where half a microsecond is to be rounded, a double says in which direction, as it did in the
// script.
class Msec : public Digits {
 public:
  Msec(Nanoseconds base, Nanoseconds time) {
    const bool negative = time < base;
    const Nanoseconds distance = negative ? base - time : time - base;
    if (distance % 1000 == 500) {
      const double value = static_cast<double>(distance) / 1e6;
      set(FMT_COMPILE("{:.3f}"), negative ? -value : value);
    } else {
      const Nanoseconds usec = (distance + 500) / 1000;
      set(FMT_COMPILE("{}{}.{:03}"), negative ? "-" : "", usec / 1000, usec % 1000);
    }
  }
};

// Seconds as human_time() prints them.
class Seconds : public Digits {
 public:
  explicit Seconds(Nanoseconds time) {
    set(FMT_COMPILE("{}.{:06}"), time / 1'000'000'000, time % 1'000'000'000 / 1000);
  }
};

// The line for a hunk without a hard irq: what made it run, in the place where irq_entry stands.
void write_root(const track::ReceiveHunk& hunk, const PacketNames& names, TextWriter& out) {
  const bool by_task = hunk.root != track::Root::softirq && hunk.root != track::Root::ipi &&
                       hunk.root != track::Root::hardirq && hunk.root != track::Root::unknown;
  if (!hunk.irqs.empty() && hunk.root != track::Root::ksoftirqd) return;
  const Nanoseconds when = hunk.raised.value_or(hunk.start);
  out.print_compiled(FMT_COMPILE("  {}(+{}msec"), name(hunk.root), Msec(hunk.start, when).text());
  if (by_task) out.print_compiled(FMT_COMPILE(" {}:{}"), hunk.pid, names.comms.name(hunk.pid));
  out.print_compiled(FMT_COMPILE(")\n{}"), kJoint);
}

void write_end(const track::ReceiveHunk& hunk, const track::HunkPacket& packet,
               const PacketNames& names, TextWriter& out) {
  if (packet.copied) {
    out.print_compiled(FMT_COMPILE("{}         |      skb_copy_datagram_iovec(+{}msec {}:{})\n"),
                       kInnerJoint, Msec(hunk.start, *packet.copied).text(), packet.reader,
                       names.comms.name(packet.reader));
    return;
  }
  if (!packet.ended) return;
  const Msec end(hunk.start, *packet.ended);
  out.write(kInnerJoint);
  // Some kfree_skb is no drop: the data was there already, or lies in another skb.
  const bool harmless =
      packet.outcome == track::Outcome::consumed || packet.outcome == track::Outcome::merged;
  const bool kfree = harmless && packet.location != 0;
  switch (kfree ? track::Outcome::dropped : packet.outcome) {
    case track::Outcome::dropped:
      out.print_compiled(FMT_COMPILE("         |      kfree_skb(+{}msec location={} reason={})\n"),
                         end.text(), names.symbols.name(packet.location),
                         names.reasons.name(packet.reason));
      return;
    case track::Outcome::delivered:  // read without a copy event
      out.print_compiled(FMT_COMPILE("         |      {}(+{}msec {}:{})\n"),
                         packet.confidence == track::Confidence::socket ? "read" : "consume_skb",
                         end.text(), packet.reader, names.comms.name(packet.reader));
      return;
    case track::Outcome::acked:
      out.print_compiled(FMT_COMPILE("         |      tcp_probe(+{}msec pure ack)\n"), end.text());
      return;
    case track::Outcome::forwarded:
      out.print_compiled(FMT_COMPILE("         |      net_dev_queue(+{}msec forwarded)\n"),
                         end.text());
      return;
    default:
      out.print_compiled(FMT_COMPILE("         |      consume_skb(+{}msec)\n"), end.text());
  }
}

void write_packet(const track::ReceiveHunk& hunk, const track::HunkPacket& packet,
                  const PacketNames& names, TextWriter& out) {
  out.print_compiled(FMT_COMPILE("         |---netif_receive_skb(+{}msec skb={:x} len={}) {}\n"),
                     Msec(hunk.start, packet.received).text(),
                     static_cast<std::uint64_t>(packet.skbaddr), packet.len,
                     names.devices.name(packet.device));
  write_end(hunk, packet, names, out);
}

// ", 54 printed", where others were not asked for.
std::string printed(std::uint64_t count, std::uint64_t of) {
  return count == of ? "" : fmt::format(", {} printed", human_count(count));
}

}  // namespace

void write_hunk_text(const track::ReceiveHunk& hunk, const PacketNames& names, TextWriter& out) {
  out.print_compiled(FMT_COMPILE("{}sec cpu={}{}\n"), Seconds(hunk.start).text(), hunk.cpu,
                     hunk.after_loss ? "  (events were lost here)" : "");
  for (const track::RunIrq& irq : hunk.irqs) {
    out.print_compiled(FMT_COMPILE("  irq_entry(+{}msec irq={}:{})\n{}"),
                       Msec(hunk.start, irq.entry).text(), irq.irq, irq.handler, kJoint);
  }
  write_root(hunk, names, out);
  if (hunk.softirq) {
    out.print_compiled(FMT_COMPILE("  softirq_entry(+{}msec)\n{}"),
                       Msec(hunk.start, *hunk.softirq).text(), kJoint);
  }
  for (std::size_t i = 0; i < hunk.steps.size(); ++i) {
    const track::ReceiveHunk::Step& step = hunk.steps[i];
    if (step.is_poll) {
      const track::HunkPoll& poll = hunk.polls[step.index];
      out.print_compiled(FMT_COMPILE("  napi_poll_exit(+{}msec {})\n"),
                         Msec(hunk.start, poll.time).text(), names.devices.name(poll.device));
    } else {
      write_packet(hunk, hunk.packets[step.index], names, out);
    }
    if (i + 1 < hunk.steps.size() || !step.is_poll) out.write(kJoint);
  }
  out.write("\n");
}

void write_transmit_header(TextWriter& out) {
  out.write("   dev    len      Qdisc               netdevice             free\n");
}

void write_transmit_text(const track::Leg& leg, const PacketNames& names, TextWriter& out) {
  const track::StageTimes& stages = leg.stages;
  out.print_compiled(FMT_COMPILE("{:>7} {:>5} {}sec "), names.devices.name(leg.device), leg.len,
                     Seconds(leg.birth).right(13));
  if (stages.has(Stage::xmit)) {
    out.print_compiled(FMT_COMPILE("{}msec "), Msec(leg.birth, stages[Stage::xmit]).right(12));
  } else {
    out.print("{:>16} ", "-");
  }
  if (stages.has(Stage::complete)) {
    const Nanoseconds from = stages.has(Stage::xmit) ? stages[Stage::xmit] : leg.birth;
    out.print_compiled(FMT_COMPILE("     {}msec"), Msec(from, stages[Stage::complete]).right(12));
  } else {
    out.print("     {:>16}", "-");
  }
  if (leg.segments > 0) out.print_compiled(FMT_COMPILE("  {} segments"), leg.segments);
  if (leg.requeues > 0) out.print_compiled(FMT_COMPILE("  requeued {} times"), leg.requeues);
  if (leg.handed_over) out.write("  to the receiver");
  if (leg.outcome == track::Outcome::dropped) {
    out.print_compiled(FMT_COMPILE("  DROPPED {} {}"), names.reasons.name(leg.reason),
                       leg.location == 0 ? "" : names.symbols.name(leg.location));
  } else if (leg.outcome != track::Outcome::transmitted) {
    out.print_compiled(FMT_COMPILE("  {}"), name(leg.outcome));
  }
  if (leg.rc != 0) out.print_compiled(FMT_COMPILE("  rc={:#x}"), leg.rc);
  if (leg.crossed_loss) out.write("  (events were lost)");
  out.write("\n");
}

void write_rx_summary(const ReceiveTotals& totals, TextWriter& out) {
  const track::HunkCounters& hunks = totals.hunks;
  out.print("# rx: {} netif_receive_skb in {} ({}), {}{}\n", human_count(hunks.receives),
            plural(hunks.births, "packet"), plural(hunks.hops, "hop"), plural(hunks.hunks, "hunk"),
            printed(totals.printed, hunks.hunks));
  if (totals.unmatched_copies > 0) {
    out.print("# rx: {} copies to a task of packets whose start is not in the capture\n",
              human_count(totals.unmatched_copies));
  }
  if (hunks.late_ends > 0) {
    out.print("# rx: {} ended after the hunk was printed: open there\n",
              plural(hunks.late_ends, "packet"));
  }
  if (hunks.crossed_loss > 0) {
    out.print("# rx: {} alive while events were lost\n", plural(hunks.crossed_loss, "packet"));
  }
}

void write_tx_summary(const TransmitTotals& totals, TextWriter& out) {
  out.print("# tx: {} net_dev_queue in {} ({}){}\n", human_count(totals.births + totals.hops),
            plural(totals.births, "packet"), plural(totals.hops, "stacked device"),
            printed(totals.printed, totals.births));
  if (totals.send.unmatched_starts + totals.send.unmatched_xmits > 0) {
    out.print("# tx: {} and {} net_dev_xmit of skbs no device queue saw\n",
              plural(totals.send.unmatched_starts, "transmit start"),
              human_count(totals.send.unmatched_xmits));
  }
  if (totals.crossed_loss > 0) {
    out.print("# tx: {} alive while events were lost\n", plural(totals.crossed_loss, "packet"));
  }
}

}  // namespace skbtrail::report
