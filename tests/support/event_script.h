// Events made of any bytes, for who wants to see trackers at odds with them: each is one that a
// kernel could write, in its own layout, but in an order that none ever would.
//
// The first byte says which kernel, when the first event came, whether time may run back, and which
// events the capture does not have. Then records of kRecord bytes follow: the event, its CPU and
// task, its flags and the time since the event before, and a byte for each of up to eight fields,
// in the order of the format. A byte chooses from a few values, so that events are often about the
// same skb, socket or task: 0 is what would be usual, 0xff and 0xfe are the ends of a number.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/symbols.h"
#include "skbtrail/event.h"
#include "skbtrail/event_format.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"
#include "stream/event_catalog.h"
#include "track/drop_reasons.h"
#include "track/names.h"

namespace skbtrail::test {

// What a capture of one kernel would say of its events.
class ScriptedKernel {
 public:
  // Of the first byte; each is made once.
  static const ScriptedKernel& of(std::uint8_t choice);

  // By the number that stands in a record; null when this one does not have it.
  const EventFormat* format(std::size_t event) const {
    return formats_[event] ? &*formats_[event] : nullptr;
  }
  const stream::EventCatalog& catalog() const { return *catalog_; }
  const track::DropReasons& reasons() const { return reasons_; }
  static std::string_view cmdlines();
  static std::string_view kallsyms();
  static std::string_view uname();

 private:
  explicit ScriptedKernel(std::uint8_t choice);

  std::deque<std::string> texts_;
  std::vector<tracedat::FormatText> list_;
  std::vector<std::optional<EventFormat>> formats_;
  std::optional<stream::EventCatalog> catalog_;
  track::DropReasons reasons_;
};

inline constexpr CpuId kScriptedCpus = 4;

class EventScript {
 public:
  static constexpr std::size_t kRecord = 12;

  explicit EventScript(std::span<const std::uint8_t> bytes);

  // The next event; false at the end. It lives until the next call. A gap before it is `lost`.
  bool next(RawEvent& event, std::optional<LossWindow>& lost);

  const ScriptedKernel& kernel() const { return kernel_; }
  bool time_runs_back() const { return may_run_back_; }
  // Of all events so far.
  Nanoseconds first() const { return first_; }
  Nanoseconds last() const { return last_; }
  std::vector<CpuId> cpus() const;
  // After the last event: what no later event of their CPU could carry (stream/walk.h).
  std::vector<LossWindow> lost_at_end() const;

 private:
  struct Cpu {
    Pid runs = 0;
    Nanoseconds last = 0;
    std::uint64_t lost = 0;  // before its next event
  };

  void fill(std::span<const std::uint8_t> record, const EventFormat& format, CpuId cpu);

  const ScriptedKernel& kernel_;
  std::span<const std::uint8_t> rest_;
  bool may_run_back_ = false;
  Nanoseconds now_ = 0;
  Nanoseconds first_ = 0;
  Nanoseconds last_ = 0;
  bool any_ = false;
  std::array<Cpu, kScriptedCpus> cpus_{};
  // Of the event, in a block that has exactly its size.
  std::vector<std::uint8_t> data_;
};

// The other way round: a script that does nearly what a capture did.
class ScriptWriter {
 public:
  // `kernel`: "6.1", "6.12", "6.18". `comms` and `symbols` are the capture's.
  ScriptWriter(std::string_view kernel, const track::Comms& comms, Symbols& symbols);
  // False for an event that scripts do not have.
  bool add(const EventFormat& format, const EventHeader& header, const RawEvent& event);
  void add_gap(CpuId cpu);
  const std::string& script() const { return script_; }

 private:
  std::uint8_t pid(Pid pid);
  std::uint8_t place(std::uint64_t location);
  std::uint8_t choice(const FieldFormat& field, const EventFormat& format, const RawEvent& event);

  const track::Comms& comms_;
  Symbols& symbols_;
  std::uint8_t kernel_ = 0;
  std::string script_;
  Nanoseconds before_ = 0;
  std::map<std::uint64_t, std::uint8_t> skbs_, sockets_, flows_, pids_, devices_;
};

}  // namespace skbtrail::test
