// One walk of the packet tracker over a capture, with the names that its results need: what the
// verbs about packets have in common.
#pragma once

#include "cli/pipeline.h"
#include "report/packets.h"
#include "stream/trace.h"
#include "track/packet_tracker.h"

namespace skbtrail::cli {

// For who is told of legs and runs, and needs no packets.
struct NoPackets : track::PacketSink {
  void packet(const track::Packet&) override {}
};

class PacketWalk {
 public:
  // All must outlive the walk. The tables of names fill while it runs.
  PacketWalk(stream::Trace& trace, track::PacketSink& sink, track::Flows& flows)
      : trace_(trace),
        comms_(trace.file().cmdlines()),
        calls_(trace.file().uname()),
        reasons_(drop_reasons(trace.catalog())),
        symbols_(trace.file().kallsyms()),
        names_{devices_, comms_, reasons_, flows, symbols_},
        tracker_(devices_, comms_, calls_, reasons_, symbols_, flows, sink,
                 packet_events(trace.catalog())),
        events_(trace.catalog()) {
    tracker_.subscribe(events_);
  }
  PacketWalk(stream::Trace& trace, track::PacketSink& sink) : PacketWalk(trace, sink, own_flows_) {}
  PacketWalk(const PacketWalk&) = delete;
  PacketWalk& operator=(const PacketWalk&) = delete;

  // Somebody else who takes events of the same walk, after the tracker.
  template <class... Events, class Tracker>
  void also(Tracker& tracker) {
    (events_.subscribe<Events>(tracker), ...);
  }

  // Somebody else who is told what the tracker finds: runs of NET_RX, legs.
  template <class Sink>
  void also_tell(Sink& sink) {
    tracker_.also_tell(sink);
  }

  // Every event, then the end of those packets that still live. `beside` sees the same events, on
  // either thread (stream/walk.h).
  track::CaptureFacts run(stream::Dispatcher* beside = nullptr, stream::Behind* behind = nullptr) {
    track::CaptureFacts facts = start_facts(trace_);
    if (beside == nullptr) {
      run_events(trace_, {&events_}, facts);
    } else {
      run_events(trace_, {&events_, beside}, facts, behind);
    }
    tracker_.finish();
    facts.further_flows = names_.flows.refused();
    return facts;
  }

  const report::PacketNames& names() const { return names_; }
  track::Devices& devices() { return devices_; }
  const track::PacketTracker& tracker() const { return tracker_; }

 private:
  stream::Trace& trace_;
  track::Flows own_flows_;
  track::Devices devices_;
  track::Comms comms_;
  track::SyscallNames calls_;
  track::DropReasons reasons_;
  Symbols symbols_;
  report::PacketNames names_;
  track::PacketTracker tracker_;
  stream::Dispatcher events_;
};

}  // namespace skbtrail::cli
