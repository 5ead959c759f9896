// The numbers that travel through the pipeline. Addresses are types of their own: an address is not
// an identity (the kernel reuses it within microseconds) and must not mix with a count.
#pragma once

#include <cstdint>

namespace skbtrail {

using Nanoseconds = std::uint64_t;  // a point on the capture's clock, or a distance on it
using CpuId = std::uint32_t;
using Pid = std::int32_t;  // the kernel's thread id, as in common_pid

enum class SkbAddr : std::uint64_t {};   // struct sk_buff *
enum class NapiAddr : std::uint64_t {};  // struct napi_struct *
enum class SockAddr : std::uint64_t {};  // struct sock *

}  // namespace skbtrail
