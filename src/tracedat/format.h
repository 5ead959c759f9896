// The trace.dat container, shared by Reader and Writer: two versions of one idea.
//
// Common start (output_write_init() of trace-cmd):
//
//   17 08 44 "tracing"   version "6\0" or "7\0"   u8 big-endian?   u8 sizeof(long) of user space
//   u32 page size (the sub-buffer size of the top buffer)
//
// Version 6 is strictly sequential: header_page, header_event, ftrace formats, event formats,
// kallsyms, printk formats, cmdlines, u32 CPUs, ["options  \0" (u16 id, u32 len, data)* u16 0],
// "flyrecord\0", CPUs x (u64 offset, u64 size), [clock when TRACECLOCK was among the options],
// page-aligned CPU data (read_headers_v6(), read_cpu_data()).
//
// Version 7 is a chain: compression name and version, u64 offset of the first OPTIONS section.
// Every section starts with u16 id, u16 flags, u32 string offset, u64 size; options point at
// sections (read_headers(), handle_options()). Compressed metadata: u32 csize, u32 usize, data.
// Compressed CPU data, per CPU: u32 chunks, then chunks x (u32 csize, u32 usize, data); the size in
// the BUFFER option leaves out the first u32.
//
// What trace.dat has no place for goes into private options from 0x4e00 on. Readers skip option ids
// they do not know: trace-cmd without a word, libtracecmd 3.1.6 in another program with a warning.
// We wrote our own reader and writer because libtracecmd has no public way to write a file and
// copies all data once more when it closes one (out_write_cpu_data()).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail::tracedat {

inline constexpr std::array<std::uint8_t, 3> kMagic{0x17, 0x08, 0x44};
inline constexpr std::string_view kTracing = "tracing";

inline constexpr std::uint16_t kSectionCompressed = 1;  // flag in a section header
inline constexpr std::size_t kSectionHeaderSize = 16;   // u16 id, u16 flags, u32 string, u64 size

// NR_CPUS is at most 8192 (arch/x86/Kconfig, 6.12).
inline constexpr CpuId kMaxCpus = 8192;
// Instances beside the top buffer, and CPUs with data of all buffers together: no recorder comes
// near. Each costs its reader kilobytes, and a file that lies names one with a few bytes.
inline constexpr std::size_t kMaxInstances = 256;
inline constexpr std::size_t kMaxCpuData = 2 * std::size_t{kMaxCpus};

// One number space for options and sections (trace-cmd-private.h, TRACECMD_OPTION_*).
enum class OptionId : std::uint16_t {
  done = 0,        // last option of a section (v7): u64 offset of the next OPTIONS section, 0 = end
  date = 1,        // "0x..." microseconds to add to every time stamp
  cpustat = 2,     // per_cpu/cpuN/stats as text, one per CPU
  buffer = 3,      // v7: where a buffer's CPU data lies; v6: offset and name of an instance
  traceclock = 4,  // content of trace_clock: "local [mono] ..."
  uname = 5,
  hook = 6,
  offset = 7,
  cpucount = 8,
  version = 9,
  procmaps = 10,
  traceid = 11,
  time_shift = 12,
  guest = 13,
  tsc2nsec = 14,     // u32 mult, u32 shift, u64 offset
  strings = 15,      // section only
  header_info = 16,  // from here on: u64 section offset
  ftrace_events = 17,
  event_formats = 18,
  kallsyms = 19,
  printk = 20,
  cmdlines = 21,
  buffer_text = 22,
  btf_file = 23,  // these three are of newer trace-cmd; not read
  last_boot_info = 24,
  modules_file = 25,
  // Ours. Text, lines of "key value..."; an unknown key is skipped, so keys can be added.
  skbtrail_tgids = 0x4e00,    // "tid tgid" per line, as the instance's saved_tgids gave it
  skbtrail_loss = 0x4e01,     // "before|after CPU overrun commit_overrun dropped entries read" per
                              // line; graph_before and graph_after are those of the buffer
                              // "graph"; "missed_probe FUNCTION COUNT": calls of which its probe
                              // wrote no event
  skbtrail_profile = 0x4e02,  // as applied: "profile NAME", "device NAME", "pid TID",
                              // "graph FUNCTION", "event SYS:EVENT [FILTER]",
                              // "missing SYS:EVENT"
  // "KEY VALUE": version, command, clock, buffer_kb (per CPU), page_size, cpus, start_ns and
  // stop_ns (CLOCK_MONOTONIC), realtime_offset_ns (CLOCK_REALTIME minus that), cpu_time_ns (of the
  // readers), stopped_by (command, duration, signal, trouble). The line kSwitchedOff when tracing
  // was not on any more at the end. Until the file is finished the line kUnfinished; from then on,
  // kFinished in its place.
  skbtrail_recorder = 0x4e03,
  // "start|stop T0 T1 PID TGID PPID VOLUNTARY INVOLUNTARY COMM" per thread there was right after
  // the start and right before the stop: /proc/TGID/task/PID/status, read between the times T0 and
  // T1 of the capture's clock, "- -" where no program can read that.
  skbtrail_switches = 0x4e04,
};

inline constexpr OptionId kLastSection = OptionId::modules_file;

// Lines of skbtrail_recorder.
inline constexpr std::string_view kUnfinished = "unfinished";
inline constexpr std::string_view kFinished = "finished  ";  // as long: the head keeps its size
inline constexpr std::string_view kSwitchedOff = "switched_off";

}  // namespace skbtrail::tracedat
