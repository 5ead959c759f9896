#include "stream/dispatcher.h"

#include <new>
#include <utility>

namespace skbtrail::stream {

Dispatcher::Dispatcher(const EventCatalog& catalog)
    : catalog_(catalog),
      common_(catalog),
      type_of_(static_cast<std::uint16_t*>(std::calloc(kIds, sizeof(std::uint16_t)))) {
  if (type_of_ == nullptr) throw std::bad_alloc();
  routes_.push_back(std::make_unique<Route>(0, 0, common_));  // which ignores all
  by_type_.push_back(routes_.back().get());
}

void Dispatcher::add_route(std::unique_ptr<Route> route) {
  ids_.push_back(route->id);
  std::uint16_t& type = type_of_[route->id];
  if (type == 0) {
    type = static_cast<std::uint16_t>(by_type_.size());
    by_type_.push_back(route.get());
  } else {
    auto* several = dynamic_cast<Routes*>(by_type_[type]);
    if (several == nullptr) {
      auto made = std::make_unique<Routes>(route->id, common_);
      several = made.get();
      several->all.push_back(std::exchange(by_type_[type], several));
      routes_.push_back(std::move(made));
    }
    several->all.push_back(route.get());
  }
  routes_.push_back(std::move(route));
}

// Trackers that take the same event count the same records.
std::map<std::uint16_t, std::uint64_t> Dispatcher::undecodable() const {
  std::map<std::uint16_t, std::uint64_t> records;
  for (const auto& route : routes_) {
    if (route->too_short == 0) continue;
    std::uint64_t& count = records[route->id];
    count = std::max(count, route->too_short);
  }
  return records;
}

}  // namespace skbtrail::stream
