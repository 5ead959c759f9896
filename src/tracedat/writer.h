// Lays out a trace.dat (format.h). All but the CPU data is text known when the capture ends, so the
// whole head is built in memory and the caller puts the pages behind it, at the offsets given here.
// Nothing is patched afterwards and nothing is compressed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"
#include "skbtrail/units.h"
#include "tracedat/format.h"

namespace skbtrail::tracedat {

enum class FileVersion { v6 = 6, v7 = 7 };

struct SystemFormats {
  std::string system;
  std::vector<std::string> formats;
};

struct TextOption {
  OptionId id;
  std::string text;
};

struct NamedBuffer {
  std::string name;
  std::uint32_t page_size = 4096;
};

// Everything in a capture that is not a ring-buffer page.
struct CaptureText {
  std::uint32_t page_size = 4096;          // of the main buffer, which has no name
  std::vector<NamedBuffer> named_buffers;  // beside it; their clock is the same
  std::uint32_t cpu_count = 0;             // highest CPU id + 1
  std::string header_page;
  std::string header_event;
  std::vector<std::string> ftrace_formats;
  std::vector<SystemFormats> systems;
  std::string kallsyms;
  std::string printk_formats;
  std::string cmdlines;
  std::string clock;                // "mono"
  std::string trace_clock;          // content of the trace_clock file: "local [mono] ..."
  std::vector<TextOption> options;  // uname, version, cpustat, private ones: in this order
};

struct CpuExtent {
  CpuId cpu = 0;
  std::uint64_t size = 0;    // a multiple of the page size
  std::uint64_t offset = 0;  // where the data goes; set by lay_out()
  std::size_t buffer = 0;    // 0 = the main one, N = named_buffers[N - 1]
};

struct Layout {
  std::string head;  // the file up to the CPU data, padded to the first page
  std::vector<CpuExtent> cpus;
  std::uint64_t file_size = 0;
};

// `cpus` ascending within each buffer, the buffers one after the other. Fails when a size is no
// multiple of the page size or a text is too large for its length field.
Result<Layout> lay_out(const CaptureText& text, std::vector<CpuExtent> cpus, FileVersion version);

}  // namespace skbtrail::tracedat
