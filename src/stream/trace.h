// A capture, opened: its facts, its events by name, and its buffer's pages ready to be merged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "stream/event_catalog.h"
#include "stream/merge.h"
#include "tracedat/reader.h"

namespace skbtrail::stream {

class Trace {
 public:
  // Opens `path` and chooses a buffer: `buffer` by name, or without one the top buffer when it
  // holds data, else the first instance that does. Two buffers may have recorded the same events,
  // so they are never mixed.
  static Result<Trace> open(const std::string& path, const std::string& buffer = "");

  tracedat::Reader& file() { return *file_; }
  const tracedat::Reader& file() const { return *file_; }
  const EventCatalog& catalog() const { return *catalog_; }
  const tracedat::Buffer& buffer() const { return *buffer_; }
  // Names of the buffers with data that are not read.
  std::vector<std::string> other_buffers() const;

  // A new walk over all events, from the start. The Trace must outlive it.
  Merge events() const;

 private:
  std::unique_ptr<tracedat::Reader> file_;  // behind a pointer: views into it survive a move
  std::unique_ptr<EventCatalog> catalog_;
  const tracedat::Buffer* buffer_ = nullptr;
};

}  // namespace skbtrail::stream
