#include "stream/dispatcher.h"

#include <new>

namespace skbtrail::stream {

Dispatcher::Dispatcher(const EventCatalog& catalog)
    : catalog_(catalog),
      common_(catalog),
      first_route_(static_cast<Route**>(std::calloc(kIds, sizeof(Route*)))),
      nobody_(0, 0, common_) {
  if (first_route_ == nullptr) throw std::bad_alloc();
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
