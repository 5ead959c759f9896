#include "stream/dispatcher.h"

namespace skbtrail::stream {
Dispatcher::Dispatcher(const EventCatalog& catalog) : catalog_(catalog), common_(catalog) {}

void Dispatcher::loss(const RawEvent& raw) {
  LossWindow window{raw.cpu, 0, raw.time, raw.lost_before};
  if (raw.cpu < last_time_.size()) window.from = last_time_[raw.cpu];
  for (const auto& [target, call] : loss_subscribers_) call(target, window);
}

void Dispatcher::grow(std::uint16_t id) {
  table_.resize(std::size_t{id} + 1);
  counts_.resize(std::size_t{id} + 1);
}

}  // namespace skbtrail::stream
