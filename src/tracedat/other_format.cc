#include "tracedat/other_format.h"

namespace skbtrail::tracedat {
namespace {

struct OtherFormat {
  std::string_view begin;
  std::string_view advice;
};

using namespace std::string_view_literals;

constexpr OtherFormat kOtherFormats[] = {
    {"PERFILE2"sv, "it is of perf record: `perf script` reads it"},
    {"\x1f\x8b"sv, "it is compressed with gzip: `gunzip` it first"},
    {"\x28\xb5\x2f\xfd"sv, "it is compressed with zstd: `unzstd` it first"},
    {"\xfd\x37zXZ\0"sv, "it is compressed with xz: `unxz` it first"},
    {"\xd4\xc3\xb2\xa1"sv, "it is of tcpdump: `tcpdump -r` reads it"},
    {"\x4d\x3c\xb2\xa1"sv, "it is of tcpdump: `tcpdump -r` reads it"},  // in nanoseconds
    {"\x0a\x0d\x0d\x0a"sv, "it is of Wireshark: `tcpdump -r` reads it"},
};

}  // namespace

std::string_view other_format(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const OtherFormat& format : kOtherFormats) {
    if (text.starts_with(format.begin)) return format.advice;
  }
  return {};
}

}  // namespace skbtrail::tracedat
