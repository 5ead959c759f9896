#include "support/cpu_times.h"

#include <unistd.h>

#include <sstream>
#include <string>

#include "support/files.h"

namespace skbtrail::test {

CpuTimes cpu_times() {
  std::istringstream in(read_file("/proc/stat"));
  std::string cpu;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0,
                steal = 0;
  in >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  const auto time = [](std::uint64_t ticks) {
    return ticks * 1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  };
  return {time(idle + iowait), time(steal)};
}

}  // namespace skbtrail::test
