#include "track/net_rx_context.h"

#include <algorithm>

namespace skbtrail::track {

std::string_view name(Root root) {
  static constexpr std::array<std::string_view, 10> kNames{
      "irq", "local_bh_enable", "softirq",   "ksoftirqd", "napi_thread",
      "ipi", "hardirq",         "busy_poll", "task",      "unknown"};
  return kNames[static_cast<std::size_t>(root)];
}

void NetRxContext::on(const EventHeader& header, const IrqHandlerEntry& event) {
  if (nested_ < kMaxNested) irqs_[nested_++] = {{event.irq, event.handler, header.time}, false};
}

void NetRxContext::on(const EventHeader&, const IrqHandlerExit& event) {
  for (std::size_t i = nested_; i-- > 0;) {
    if (irqs_[i].irq.irq != event.irq) continue;
    nested_ = i;
    return;
  }
}

// Fires on every raise, also while NET_RX runs: that run does not serve it any more
// (net_rx_action() works on a copy of the poll list), the next one does.
void NetRxContext::on(const EventHeader& header, const SoftirqRaise& event) {
  if (event.vec != kNetRxSoftirq) return;
  Root root = Root::local_bh_enable;
  if (nested_ > 0) {
    root = Root::irq;
    // What an interrupt brought counts from it, whoever had raised before.
    if (raised_by_.empty()) raised_ = header.time;
    OpenIrq& innermost = irqs_[nested_ - 1];
    if (!innermost.raised && raised_by_.size() < kMaxRaisingIrqs) {
      raised_by_.push_back(innermost.irq);
    }
    innermost.raised = true;
  } else if ((header.flags & kFlagHardirq) != 0) {
    root = Root::hardirq;
  } else if ((header.flags & kFlagSoftirq) != 0) {
    root = Root::softirq;
  }
  if (first_raise_.time == 0) first_raise_ = {header.time, root, header.pid};
  if (raised_ == 0) raised_ = header.time;
}

void NetRxContext::on(const EventHeader& header, const SoftirqEntry& event) {
  any_softirq_ = header.time;
  if (event.vec != kNetRxSoftirq) return;
  irqs_of_run_.swap(raised_by_);
  raised_by_.clear();
  // Only an irq whose exit is not recorded can still be open.
  for (std::size_t i = 0; i < nested_; ++i) irqs_[i].raised = false;
  raise_of_run_ = first_raise_;
  first_raise_ = Raise();
  raise_ = raised_;
  raised_ = 0;
  softirq_ = poll_began_ = header.time;
  softirq_pid_ = header.pid;
  outside_pid_ = kNobody;
  ++run_;
  ++poll_;
}

void NetRxContext::on(const EventHeader&, const SoftirqExit& event) {
  any_softirq_ = 0;
  if (event.vec != kNetRxSoftirq) return;
  irqs_of_run_.clear();
  raise_of_run_ = Raise();
  raise_ = softirq_ = poll_began_ = 0;
  softirq_pid_ = 0;
  flushes_ = 0;
  ++run_;
  ++poll_;
}

// Written when the poll function has returned: the next one begins here.
void NetRxContext::on(const EventHeader& header, const NapiPoll& event) {
  const bool is_full = hands_over_ && event.work >= event.budget;
  flushes_ = softirq_ == 0 || is_full ? poll_ : 0;
  hands_over_ = false;
  ++poll_;
  if (softirq_ != 0) {
    poll_began_ = header.time;
  } else {
    ++run_;
    outside_pid_ = kNobody;
  }
}

void NetRxContext::receive(const EventHeader& header) {
  if (softirq_ != 0 || outside_pid_ == header.pid) return;
  outside_pid_ = header.pid;
  ++run_;
  ++poll_;
}

void NetRxContext::set_stages(StageTimes& stages, Nanoseconds not_before) const {
  if (softirq_ == 0) return;
  const auto set = [&](Stage stage, Nanoseconds time) {
    if (time != 0 && time >= not_before) stages.set_first(stage, time);
  };
  set(Stage::irq, irqs_of_run_.empty() ? 0 : irqs_of_run_.front().entry);
  set(Stage::raise, raise_);
  set(Stage::softirq, softirq_);
  set(Stage::poll, poll_began_);
}

void NetRxContext::on_loss() {
  const std::uint32_t run = run_ + 1;
  const std::uint32_t poll = poll_ + 1;
  *this = NetRxContext();
  run_ = run;
  poll_ = poll;
}

}  // namespace skbtrail::track
