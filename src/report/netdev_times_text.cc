#include <cstdint>

#include "base/human.h"
#include "report/netdev_times.h"

namespace skbtrail::report {
namespace {

constexpr std::string_view kJoint = "         |\n";
constexpr std::string_view kInnerJoint = "         |            |\n";

// Milliseconds since the start of the hunk, as the script prints them; earlier ones are negative.
double msec(Nanoseconds base, Nanoseconds time) {
  return (static_cast<double>(time) - static_cast<double>(base)) / 1e6;
}

// The line for a hunk without a hard irq: what made it run, in the place where irq_entry stands.
void write_root(const track::ReceiveHunk& hunk, const Names& names, TextWriter& out) {
  const bool by_task = hunk.root != track::Root::softirq && hunk.root != track::Root::ipi &&
                       hunk.root != track::Root::unknown;
  if (!hunk.irqs.empty() && hunk.root != track::Root::ksoftirqd) return;
  const Nanoseconds when = hunk.raised.value_or(hunk.start);
  out.print("  {}(+{:.3f}msec", name(hunk.root), msec(hunk.start, when));
  if (by_task) out.print(" {}:{}", hunk.pid, names.comms.name(hunk.pid));
  out.print(")\n{}", kJoint);
}

void write_end(const track::ReceiveHunk& hunk, const track::RxPacket& packet, const Names& names,
               TextWriter& out) {
  if (packet.copied) {
    out.print("{}         |      skb_copy_datagram_iovec(+{:.3f}msec {}:{})\n", kInnerJoint,
              msec(hunk.start, *packet.copied), packet.reader, names.comms.name(packet.reader));
    return;
  }
  if (!packet.ended) return;
  const double end = msec(hunk.start, *packet.ended);
  out.write(kInnerJoint);
  switch (packet.outcome) {
    case track::Outcome::dropped:
      out.print("         |      kfree_skb(+{:.3f}msec location={} reason={})\n", end,
                names.symbols.name(packet.location), names.reasons.name(packet.reason));
      return;
    case track::Outcome::delivered:  // read without a copy event
      out.print("         |      consume_skb(+{:.3f}msec {}:{})\n", end, packet.reader,
                names.comms.name(packet.reader));
      return;
    case track::Outcome::acked:
      out.print("         |      tcp_probe(+{:.3f}msec pure ack)\n", end);
      return;
    case track::Outcome::forwarded:
      out.print("         |      net_dev_queue(+{:.3f}msec forwarded)\n", end);
      return;
    default:
      out.print("         |      consume_skb(+{:.3f}msec)\n", end);
  }
}

void write_packet(const track::ReceiveHunk& hunk, const track::RxPacket& packet, const Names& names,
                  TextWriter& out) {
  out.print("         |---netif_receive_skb(+{:.3f}msec skb={:x} len={}) {}\n",
            msec(hunk.start, packet.received), static_cast<std::uint64_t>(packet.skbaddr),
            packet.len, names.devices.name(packet.device));
  write_end(hunk, packet, names, out);
}

}  // namespace

void write_hunk_text(const track::ReceiveHunk& hunk, const Names& names, TextWriter& out) {
  out.print("{}sec cpu={}{}\n", human_time(hunk.start), hunk.cpu,
            hunk.after_loss ? "  (events were lost here)" : "");
  for (const track::HunkIrq& irq : hunk.irqs) {
    out.print("  irq_entry(+{:.3f}msec irq={}:{})\n{}", msec(hunk.start, irq.entry), irq.irq,
              irq.handler, kJoint);
  }
  write_root(hunk, names, out);
  if (hunk.softirq) {
    out.print("  softirq_entry(+{:.3f}msec)\n{}", msec(hunk.start, *hunk.softirq), kJoint);
  }
  for (std::size_t i = 0; i < hunk.steps.size(); ++i) {
    const track::ReceiveHunk::Step& step = hunk.steps[i];
    if (step.is_poll) {
      const track::HunkPoll& poll = hunk.polls[step.index];
      out.print("  napi_poll_exit(+{:.3f}msec {})\n", msec(hunk.start, poll.time),
                names.devices.name(poll.device));
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

void write_transmit_text(const track::TxPacket& packet, const Names& names, TextWriter& out) {
  out.print("{:>7} {:>5} {:>13}sec ", names.devices.name(packet.device), packet.len,
            human_time(packet.queued));
  if (packet.sent) {
    out.print("{:>12.3f}msec ", msec(packet.queued, *packet.sent));
  } else {
    out.print("{:>16} ", "-");
  }
  if (packet.completed) {
    const Nanoseconds from = packet.sent.value_or(packet.queued);
    out.print("     {:>12.3f}msec", msec(from, *packet.completed));
  } else {
    out.print("     {:>16}", "-");
  }
  if (packet.segments > 0) out.print("  {} segments", packet.segments);
  if (packet.requeues > 0) out.print("  requeued {} times", packet.requeues);
  if (packet.handed_over) out.write("  to the receiver");
  if (packet.outcome == track::Outcome::dropped) {
    out.print("  DROPPED {} {}", names.reasons.name(packet.reason),
              packet.location == 0 ? "" : names.symbols.name(packet.location));
  } else if (packet.outcome != track::Outcome::transmitted) {
    out.print("  {}", name(packet.outcome));
  }
  if (packet.rc != 0) out.print("  rc={:#x}", packet.rc);
  if (packet.crossed_loss) out.write("  (events were lost)");
  out.write("\n");
}

void write_rx_summary(const track::RxCounters& counters, TextWriter& out) {
  out.print("# rx: {} netif_receive_skb in {} packets ({} hops), {} hunks\n",
            human_count(counters.receives), human_count(counters.births),
            human_count(counters.hops), human_count(counters.hunks));
  if (counters.unmatched_copies > 0) {
    out.print("# rx: {} copies to a task of packets whose start is not in the capture\n",
              human_count(counters.unmatched_copies));
  }
  if (counters.late_ends > 0) {
    out.print("# rx: {} packets ended more than a second after their hunk: printed above as open\n",
              human_count(counters.late_ends));
  }
  if (counters.crossed_loss > 0) {
    out.print("# rx: {} packets alive while events were lost\n",
              human_count(counters.crossed_loss));
  }
}

void write_tx_summary(const track::TxCounters& counters, TextWriter& out) {
  out.print("# tx: {} net_dev_queue in {} packets ({} stacked devices)\n",
            human_count(counters.queues), human_count(counters.births), human_count(counters.hops));
  if (counters.unmatched_starts + counters.unmatched_xmits > 0) {
    out.print("# tx: {} transmit starts and {} net_dev_xmit of skbs no device queue saw\n",
              human_count(counters.unmatched_starts), human_count(counters.unmatched_xmits));
  }
  if (counters.crossed_loss > 0) {
    out.print("# tx: {} packets alive while events were lost\n",
              human_count(counters.crossed_loss));
  }
}

void write_loss_summary(const track::CaptureFacts& facts, TextWriter& out) {
  if (facts.lossless()) {
    out.write("# lost: nothing\n");
  } else {
    out.print("# LOST: {} events, {} gaps\n", human_count(facts.lost()),
              human_count(facts.gap_count));
  }
  for (const std::string& line : facts.damage) out.print("# DAMAGED: {}\n", line);
}

}  // namespace skbtrail::report
