// A format text up to the first NUL, then a record: the text is parsed and bound to events, the
// record decoded by what came of it.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "event/irq.h"
#include "event/net.h"
#include "event/sched.h"
#include "event/skb.h"
#include "event/tcp.h"
#include "skbtrail/decoder.h"

namespace {

unsigned touch(std::string_view text) {
  unsigned sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

template <class Event>
unsigned decode(const skbtrail::EventFormat& format, const std::vector<std::uint8_t>& record) {
  const auto decoder = skbtrail::Decoder<Event>::bind(format);
  if (!decoder) return touch(decoder.error().message);
  const skbtrail::RawEvent raw{
      0, record.data(), static_cast<std::uint32_t>(record.size()), format.id, 0, 0};
  Event event;
  if (!decoder->decode(raw, event)) return 0;
  unsigned sum = 0;
  const auto touch_string = [&](const auto& field) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(event.*(field.member))>,
                                 skbtrail::Text>) {
      sum += touch(event.*(field.member));
    }
  };
  std::apply([&](const auto&... fields) { (touch_string(fields), ...); }, Event::fields);
  return sum;
}

// The fields that the input may give any layout.
struct Anything {
  std::optional<std::int64_t> number;
  std::optional<skbtrail::Text> text;
  std::optional<std::span<const std::uint8_t>> bytes;
  static constexpr auto fields = std::tuple{skbtrail::field("number", &Anything::number),
                                            skbtrail::field("text", &Anything::text),
                                            skbtrail::field("bytes", &Anything::bytes)};
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* nul = std::find(data, data + size, 0);
  const std::string_view text(reinterpret_cast<const char*>(data),
                              static_cast<std::size_t>(nul - data));
  // A record of its own, so that a sanitizer sees the first byte read beyond it.
  const std::vector<std::uint8_t> record(std::min(nul + 1, data + size), data + size);
  const auto format = skbtrail::parse_event_format("fuzz", text);
  if (!format) return 0;
  unsigned sum = 0;
  for (const auto& [value, symbol] : skbtrail::symbolic_names(*format, "reason")) {
    sum += static_cast<unsigned>(value) + touch(symbol);
  }
  for (const auto& [bit, letter] : skbtrail::flag_names(*format, "prev_state")) {
    sum += static_cast<unsigned>(bit) + touch(letter);
  }
  using namespace skbtrail;
  sum += decode<NetifReceiveSkb>(*format, record) + decode<KfreeSkb>(*format, record) +
         decode<NapiPoll>(*format, record) + decode<SchedSwitch>(*format, record) +
         decode<TcpProbe>(*format, record) + decode<Anything>(*format, record);
  return sum == ~0U ? 1 : 0;  // the bytes were read
}
