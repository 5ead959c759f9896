// The trackers with events that no kernel would write in this order (support/event_script.h), and
// what must hold for their results all the same (support/every_tracker.h).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "support/event_script.h"
#include "support/every_tracker.h"

namespace {

using skbtrail::test::EventScript;
using skbtrail::test::EveryTracker;
using skbtrail::test::ScriptedKernel;

constexpr std::size_t kRecord = EventScript::kRecord;
constexpr std::size_t kHead = 1;

std::size_t records(std::size_t size) {
  return size < kHead ? 0 : (size - kHead) / kRecord;
}
std::uint8_t* record(std::uint8_t* data, std::size_t number) {
  return data + kHead + number * kRecord;
}

// A merge knows of them before they end.
std::vector<skbtrail::LossWindow> gaps_by_begin(std::span<const std::uint8_t> data) {
  EventScript script(data);
  std::vector<skbtrail::LossWindow> gaps;
  skbtrail::RawEvent event;
  std::optional<skbtrail::LossWindow> lost;
  while (script.next(event, lost)) {
    if (lost) gaps.push_back(*lost);
  }
  for (const skbtrail::LossWindow& window : script.lost_at_end()) gaps.push_back(window);
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const auto& a, const auto& b) { return a.from < b.from; });
  return gaps;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  EventScript script({data, size});
  const ScriptedKernel& kernel = script.kernel();
  EveryTracker trackers(kernel.catalog(), kernel.reasons(), ScriptedKernel::cmdlines(),
                        ScriptedKernel::kallsyms(), ScriptedKernel::uname(),
                        !script.time_runs_back());
  skbtrail::RawEvent event;
  std::optional<skbtrail::LossWindow> lost;
  const std::vector<skbtrail::LossWindow> gaps = gaps_by_begin({data, size});
  auto begun = gaps.begin();
  while (script.next(event, lost)) {
    for (; begun != gaps.end() && begun->from <= event.time; ++begun) {
      trackers.events().dispatch_loss_begin(*begun);
    }
    if (lost) trackers.events().dispatch_loss(*lost);
    trackers.events().dispatch(event);
  }
  for (const skbtrail::LossWindow& window : script.lost_at_end()) {
    trackers.events().dispatch_loss(window);
  }
  const std::vector<std::string> violations =
      trackers.finish({script.first(), script.last(), script.cpus()});
  for (const std::string& text : violations) std::fprintf(stderr, "%s\n", text.c_str());
  if (!violations.empty()) std::abort();
  return 0;
}

// Only libFuzzer has it, and only libFuzzer calls what follows.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                                      std::size_t most);

// Whole records are moved, repeated and left out, and one of them is changed: a byte more in the
// middle would make other events of all that follow.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  const std::size_t count = records(size);
  if (count == 0 || random() % 64 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::size_t from = random() % count;
  const std::size_t some = 1 + random() % std::min<std::size_t>(count - from, 8);
  switch (random() % 6) {
    case 0: {  // once more, somewhere
      if (kHead + (count + some) * kRecord > most) break;
      const std::vector<std::uint8_t> copy(record(data, from), record(data, from + some));
      std::uint8_t* at = record(data, random() % (count + 1));
      std::memmove(at + copy.size(), at, static_cast<std::size_t>(record(data, count) - at));
      std::copy(copy.begin(), copy.end(), at);
      return kHead + (count + some) * kRecord;
    }
    case 1:  // not at all
      std::memmove(record(data, from), record(data, from + some), (count - from - some) * kRecord);
      return kHead + (count - some) * kRecord;
    case 2:  // in another order
      std::rotate(record(data, from), record(data, from + some / 2), record(data, from + some));
      break;
    case 3:  // elsewhere, by somebody else, later
      record(data, from)[1 + random() % 3] = static_cast<std::uint8_t>(random());
      break;
    case 4:  // of something else
      record(data, from)[4 + random() % 8] = static_cast<std::uint8_t>(random());
      break;
    default:
      LLVMFuzzerMutate(record(data, from), kRecord, kRecord);
      break;
  }
  return kHead + count * kRecord;
}

// The begin of one and the end of the other.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size,
                                                 std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  std::minstd_rand random(seed);
  const std::size_t begin = random() % (records(one_size) + 1);
  const std::size_t skipped = random() % (records(other_size) + 1);
  const std::size_t end = records(other_size) - skipped;
  if (one_size == 0 || kHead + (begin + end) * kRecord > most) return 0;
  std::memcpy(out, one, kHead + begin * kRecord);
  if (end > 0) {
    std::memcpy(out + kHead + begin * kRecord, other + kHead + skipped * kRecord, end * kRecord);
  }
  return kHead + (begin + end) * kRecord;
}
