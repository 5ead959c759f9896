#include "track/oracle_way.h"

#include "event/sock.h"

namespace skbtrail::test::oracle {

bool in_task(const LoggedEvent& event) {
  return (event.header.flags & (kFlagHardirq | kFlagSoftirq | kFlagNmi)) == 0;
}

std::uint64_t cookie_of(const Events& events, Index i) {
  for (Index j = i; j-- > 0;) {
    if (events[j].sock != events[i].sock) continue;
    if (events[j].kind == Kind::space_adjust) return events[j].cookie;
    if (events[j].kind == Kind::set_state && events[j].new_state == kTcpClose) return 0;
  }
  return 0;
}

}  // namespace skbtrail::test::oracle
