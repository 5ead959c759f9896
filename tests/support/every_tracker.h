// Every tracker the verbs use, fed the same events, and what must hold for their results whatever
// the events were: what is counted in two ways is the same, parts add up to the whole, no time is
// longer than the capture.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/loss.h"
#include "stream/dispatcher.h"
#include "track/drop_reasons.h"

namespace skbtrail::test {

class EveryTracker {
 public:
  // All must outlive this. `in_order`: no event will be older than one before it.
  EveryTracker(const stream::EventCatalog& catalog, const track::DropReasons& reasons,
               std::string_view cmdlines, std::string_view kallsyms, std::string_view uname,
               bool in_order);
  ~EveryTracker();

  // To which all events and gaps go.
  stream::Dispatcher& events();

  struct Ends {
    Nanoseconds first = 0;
    Nanoseconds last = 0;
    std::vector<CpuId> cpus;
  };
  // After the last event: what does not hold. Empty when all does.
  std::vector<std::string> finish(const Ends& ends);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace skbtrail::test
