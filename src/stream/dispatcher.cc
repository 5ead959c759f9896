#include "stream/dispatcher.h"

namespace skbtrail::stream {

Dispatcher::Dispatcher(const EventCatalog& catalog)
    : catalog_(catalog),
      common_(catalog),
      first_route_(std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1) {}

}  // namespace skbtrail::stream
