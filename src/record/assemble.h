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

using Readers = std::vector<std::unique_ptr<CpuReader>>;

// Writes the whole file; returns its size. The readers must have finished. What has been copied is
// taken out of the spool files at once, so that no second copy of the capture needs room: a capture
// that filled the disk can still be finished. `aborted` is asked now and then.
Result<std::uint64_t> assemble(const tracedat::CaptureText& text, tracedat::FileVersion version,
                               const Readers& readers, int file,
                               const std::function<bool()>& aborted);

}  // namespace skbtrail::record
