#include "tracedat/page_sources.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "ring/cpu_pages.h"
#include "support/files.h"
#include "support/page_builder.h"

namespace skbtrail::tracedat {
namespace {

// How many KiB of a mapping are in this process (proc(5), smaps).
std::size_t resident_kib(const void* mapping) {
  std::ifstream smaps("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<std::uintptr_t>(mapping) << "-";
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with(begin.str())) here = true;
    if (here && line.starts_with("Rss:")) return std::stoul(line.substr(4));
  }
  throw std::runtime_error("the mapping is not in /proc/self/smaps");
}

TEST(MappedPages, what_was_walked_stays_readable_and_not_in_memory) {
  constexpr std::size_t kPages = 12'288;  // 48 MiB
  const test::TemporaryFolder folder;
  {
    std::ofstream out(folder / "pages", std::ios::binary);
    for (std::size_t i = 0; i < kPages; ++i) {
      const auto mark = static_cast<char>(i % 100);
      out << test::PageBuilder(1000 + i).data(0, test::payload(7, 16, mark)).build();
    }
  }
  const auto file = MappedFile::open(folder / "pages");
  ASSERT_TRUE(file);
  ring::CpuPages pages(std::make_unique<MappedPages>(&*file, file->bytes(), 4096), 4096, 0, {});
  std::vector<RawEvent> events;
  for (RawEvent event; pages.next(event);) events.push_back(event);
  EXPECT_LT(resident_kib(file->bytes().data()), 24U * 1024);
  ASSERT_EQ(events.size(), kPages);
  for (std::size_t i = 0; i < kPages; ++i) {
    ASSERT_EQ(events[i].time, 1000 + i);
    ASSERT_EQ(events[i].data[15], i % 100);
  }
}

}  // namespace
}  // namespace skbtrail::tracedat
