// What a trace says of its events, bound to every event we know: format texts, each up to a NUL,
// then after an empty one the records, each a byte of length and that many bytes. A record is
// decoded by every decoder that could be bound, as if its id were that event's.
#include <cstdint>
#include <deque>
#include <string_view>
#include <type_traits>
#include <vector>

#include "skbtrail/decoder.h"
#include "stream/event_catalog.h"
#include "support/typed_events.h"

namespace {

using skbtrail::tracedat::FormatText;
using Records = std::vector<std::vector<std::uint8_t>>;

unsigned touch(std::string_view text) {
  unsigned sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

// One record in an allocation of its own, so that a sanitizer sees the first byte read beyond it.
template <class Event>
unsigned decode_all(const skbtrail::EventFormat& format, const Records& records) {
  const auto decoder = skbtrail::Decoder<Event>::bind(format);
  if (!decoder) return touch(decoder.error().message);
  unsigned sum = 0;
  for (const std::vector<std::uint8_t>& record : records) {
    const skbtrail::RawEvent raw{
        0, record.data(), static_cast<std::uint32_t>(record.size()), format.id, 0, 0};
    Event event;
    if (!decoder->decode(raw, event)) continue;
    const auto touch_string = [&](const auto& field) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(event.*(field.member))>,
                                   skbtrail::Text>) {
        sum += touch(event.*(field.member));
      }
    };
    std::apply([&](const auto&... fields) { (touch_string(fields), ...); }, Event::fields);
  }
  return sum;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<FormatText> texts;
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.empty()) break;
    for (const char* system : {"net", "skb", "napi", "irq", "tcp", "sched"}) {
      texts.push_back({system, text});
    }
  }
  Records records;
  while (!rest.empty() && records.size() < 64) {
    const auto length = static_cast<std::uint8_t>(rest.front());
    const std::string_view record = rest.substr(1, length);
    records.emplace_back(record.begin(), record.end());
    rest.remove_prefix(1 + record.size());
  }
  const skbtrail::stream::EventCatalog catalog(texts);
  unsigned sum = touch(catalog.name(1));
  skbtrail::test::for_each_typed_event([&]<class Event>() {
    const FormatText* text = catalog.find(Event::name);
    if (text == nullptr) return;
    const auto format = skbtrail::parse_event_format(text->system, text->text);
    if (!format) return;
    for (const auto& [value, symbol] : skbtrail::symbolic_names(*format, "reason")) {
      sum += static_cast<unsigned>(value) + touch(symbol);
    }
    sum += decode_all<Event>(*format, records);
  });
  return sum == ~0U ? 1 : 0;  // the bytes were read
}
