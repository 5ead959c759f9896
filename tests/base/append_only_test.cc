#include "base/append_only.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

namespace skbtrail {
namespace {

TEST(AppendOnly, keeps_what_it_was_given_in_its_place) {
  AppendOnly<std::string> list;
  std::vector<const std::string*> places;
  for (std::size_t i = 0; i < 10'000; ++i) {
    list.push_back(std::to_string(i));
    places.push_back(&list[i]);
    ASSERT_EQ(list.size(), i + 1);
  }
  for (std::size_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(list[i], std::to_string(i));
    ASSERT_EQ(&list[i], places[i]) << "it has moved";
  }
}

// For ThreadSanitizer.
TEST(AppendOnly, may_be_read_while_it_grows) {
  constexpr std::size_t kCount = 100'000;
  AppendOnly<std::size_t> list;
  std::atomic<std::size_t> told{0};
  auto reading = std::async(std::launch::async, [&] {
    for (std::size_t seen = 0; seen < kCount; seen = told) {
      if (seen > 0 && list[seen - 1] != seen - 1) return false;
    }
    return true;
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    list.push_back(i);
    told = i + 1;
  }
  EXPECT_TRUE(reading.get());
}

}  // namespace
}  // namespace skbtrail
