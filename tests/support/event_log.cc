#include "support/event_log.h"

#include <stdexcept>

#include "cli/pipeline.h"
#include "event/irq.h"
#include "event/net.h"
#include "event/skb.h"
#include "event/tcp.h"
#include "stream/dispatcher.h"
#include "stream/trace.h"

namespace skbtrail::test {
namespace {

class Recorder {
 public:
  Recorder(EventLog& log, const track::DropReasons& reasons) : log_(log), reasons_(reasons) {}

  void on(const EventHeader& h, const SoftirqEntry& e) { add(Kind::softirq_entry, h).vec = e.vec; }
  void on(const EventHeader& h, const SoftirqExit& e) { add(Kind::softirq_exit, h).vec = e.vec; }
  void on(const EventHeader& h, const NapiPoll& e) { add(Kind::napi_poll, h).device = e.device; }
  void on(const EventHeader& h, const NetifReceiveSkb& e) { add_net(Kind::receive, h, e); }
  void on(const EventHeader& h, const NetifRx& e) { add_net(Kind::netif_rx, h, e); }
  void on(const EventHeader& h, const NapiGroReceiveEntry& e) { add_net(Kind::gro_receive, h, e); }
  void on(const EventHeader& h, const NetDevQueue& e) { add_net(Kind::queue, h, e); }
  void on(const EventHeader& h, const NetDevStartXmit& e) { add_net(Kind::start, h, e); }
  void on(const EventHeader& h, const NetDevXmit& e) { add_net(Kind::xmit, h, e).rc = e.rc; }
  void on(const EventHeader& h, const SkbCopyDatagramIovec& e) {
    add(Kind::copy, h).skb = e.skbaddr;
  }
  void on(const EventHeader& h, const ConsumeSkb& e) { add(Kind::consume, h).skb = e.skbaddr; }
  void on(const EventHeader& h, const KfreeSkb& e) {
    LoggedEvent& event = add(Kind::kfree, h);
    event.skb = e.skbaddr;
    event.unspecified = reasons_.unspecified(e.reason);
  }
  void on(const EventHeader& h, const TcpProbe& e) {
    LoggedEvent& event = add(Kind::tcp_probe, h);
    event.skb = e.skbaddr;
    event.len = e.data_len;
  }

 private:
  LoggedEvent& add(Kind kind, const EventHeader& header) {
    LoggedEvent& event = log_.events.emplace_back();
    event.kind = kind;
    event.header = header;
    return event;
  }

  template <class Event>
  LoggedEvent& add_net(Kind kind, const EventHeader& header, const Event& net) {
    LoggedEvent& event = add(kind, header);
    event.skb = net.skbaddr;
    event.len = net.len;
    event.device = net.device;
    return event;
  }

  EventLog& log_;
  const track::DropReasons& reasons_;
};

template <class... Events>
void subscribe(stream::Dispatcher& dispatcher, Recorder& recorder) {
  (dispatcher.subscribe<Events>(recorder), ...);
}

}  // namespace

EventLog load_events(const std::string& path) {
  auto trace = stream::Trace::open(path);
  if (!trace) throw std::runtime_error(trace.error().message);
  EventLog log;
  const track::DropReasons reasons = cli::drop_reasons(trace->catalog());
  Recorder recorder(log, reasons);
  stream::Dispatcher dispatcher(trace->catalog());
  subscribe<SoftirqEntry, SoftirqExit, NapiPoll, NetifReceiveSkb, NetifRx, NapiGroReceiveEntry,
            NetDevQueue, NetDevStartXmit, NetDevXmit, SkbCopyDatagramIovec, ConsumeSkb, KfreeSkb,
            TcpProbe>(dispatcher, recorder);
  track::CaptureFacts facts = cli::start_facts(*trace);
  cli::run_events(*trace, dispatcher, facts);
  log.lossless = facts.lossless() && facts.damage.empty();
  return log;
}

}  // namespace skbtrail::test
