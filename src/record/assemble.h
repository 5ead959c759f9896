// Puts the pages of all CPUs behind the head of the final file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "record/cpu_reader.h"
#include "skbtrail/result.h"
#include "tracedat/writer.h"

namespace skbtrail::record {

// The head of a capture without events, for the time of the recording.
Result<void> write_head(const tracedat::CaptureText& text, tracedat::FileVersion version, int file);

using Readers = std::vector<std::unique_ptr<CpuReader>>;

// Writes the whole file; returns its size. The readers must have finished. Until that has been done
// the spool files hold all events, as they did while recording; only where the disk has no room for
// a second copy each chunk is taken out of them as soon as it is copied, so that a capture that
// filled the disk can still be finished. Whenever that ends, each page is in one of the two, and
// the head, which is written first as that of an unfinished capture, says where: tracedat/reader
// finds them all. `aborted` is asked now and then.
Result<std::uint64_t> assemble(const tracedat::CaptureText& text, tracedat::FileVersion version,
                               const Readers& readers, int file,
                               const std::function<bool()>& aborted);

}  // namespace skbtrail::record
