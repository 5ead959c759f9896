// A capture, opened: its facts, its events by name, and its pages ready to be merged.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skbtrail/result.h"
#include "stream/buffer_choice.h"
#include "stream/event_catalog.h"
#include "stream/merge.h"
#include "tracedat/reader.h"

namespace skbtrail::stream {

// A moment on the clock of the capture, or counted from the capture's first event.
struct Moment {
  Nanoseconds time = 0;
  bool from_start = false;
};

// What of a capture is read.
struct ReadOptions {
  std::vector<std::string> buffers;  // by name, "top" for the one without; empty: see BufferChoice
  std::vector<CpuId> cpus;           // empty: all; else one at least must be there
  std::optional<Moment> from, to;    // both included; none: from the start, to the end
};

class Trace {
 public:
  static Result<Trace> open(const std::string& path, const ReadOptions& options = {});
  static Result<Trace> of(tracedat::Reader file, const ReadOptions& options = {});

  tracedat::Reader& file() { return *file_; }
  const tracedat::Reader& file() const { return *file_; }
  const EventCatalog& catalog() const { return *catalog_; }
  // Whether from or to leave out what lies before or behind.
  bool in_part() const { return from_ > 0 || to_ < kEndOfTime; }
  // The time of the first event between ReadOptions::from and to; nothing when there is none.
  std::optional<Nanoseconds> first_event() const { return first(from_, to_); }
  // The times of the first and the last event of what is read, whatever from and to are; nothing
  // when there is none. Reads all of it.
  std::optional<std::pair<Nanoseconds, Nanoseconds>> span() const;
  Nanoseconds from() const { return from_; }
  Nanoseconds to() const { return to_; }

  // The first of the buffers that are read.
  const tracedat::Buffer& buffer() const { return *choice_->read.front().buffer; }
  bool reads(std::string_view buffer) const;  // by its own name, "" for the top one
  // Their names; "" when it is the top buffer alone.
  std::string buffer_names() const;
  // Names of the buffers with data that are not read.
  std::vector<std::string> other_buffers() const;
  // The clock, and what its figures are when they are no nanoseconds.
  std::string clock() const;

  // A new walk over all events, from the start. The Trace must outlive it. Any number of walks may
  // go on at the same time, each on a thread of its own. `all_wanted`: see Merge.
  Merge events(bool all_wanted = true) const;
  // Does the data of an event stay where it is, as long as the trace does? Not where pages are
  // decompressed.
  bool events_last() const;
  // Those that are read, each once, in order.
  std::vector<CpuId> cpus() const;
  // Those that would have been, and have no data: they were idle, offline or not traced. (Buffers
  // are there for every possible CPU of a machine.) None where data may have been damaged away.
  const std::vector<CpuId>& silent_cpus() const { return silent_cpus_; }
  // The others of the buffers that are read, in order: ReadOptions::cpus has not named them.
  std::vector<CpuId> cpus_not_read() const;
  // Of the streams that events() merges, in their order (Merge::damage()): "CPU 1", with the
  // buffer's name when there are several.
  std::string stream_name(std::size_t stream) const;
  const tracedat::Buffer& stream_buffer(std::size_t stream) const {
    return *streams_[stream].chosen->buffer;
  }

 private:
  struct Stream {
    const ChosenBuffer* chosen;
    const tracedat::CpuData* cpu;
  };

  std::optional<Nanoseconds> first(Nanoseconds from, Nanoseconds to) const;
  ring::CpuPages pages(const Stream& stream, Nanoseconds from, Nanoseconds to) const;

  // Behind pointers: views into them survive a move.
  std::unique_ptr<tracedat::Reader> file_;
  std::unique_ptr<EventCatalog> catalog_;
  std::unique_ptr<BufferChoice> choice_;
  std::vector<Stream> streams_;
  std::vector<CpuId> silent_cpus_;
  Nanoseconds from_ = 0, to_ = kEndOfTime;

  static constexpr Nanoseconds kEndOfTime = std::numeric_limits<Nanoseconds>::max();
};

}  // namespace skbtrail::stream
