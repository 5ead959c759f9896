// Values of sched_switch's prev_state that scripts of the tests use (include/linux/sched.h, 6.12).
#pragma once

#include <cstdint>

namespace skbtrail::test {

inline constexpr std::int64_t kRunning = 0, kSleeping = 1, kDisk = 2, kZombie = 0x20;

}  // namespace skbtrail::test
