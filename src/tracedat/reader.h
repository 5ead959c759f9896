// Opens a trace.dat, ours or trace-cmd's, version 6 or 7, uncompressed, zstd or zlib (see
// format.h).
//
// Metadata is a view into the mapped file, or into memory the Reader decompressed, and lives as
// long as the Reader. Events are not touched here: pages() gives a walk its own source of a CPU's
// pages. Opened, a Reader never changes, and threads may share it.
//
// Damage never hides what can be read: what had to be skipped is said in `damage`, a line each, and
// only a file without any events to be read is an error. Where the tables of CPU data are gone, the
// data is looked for (recovery.h) and the lines of `damage` say what was found.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "ring/page_source.h"
#include "ring/selection.h"
#include "skbtrail/result.h"
#include "skbtrail/units.h"
#include "tracedat/compression.h"
#include "tracedat/format.h"

namespace skbtrail::tracedat {

// One CPU of one buffer, as it stands in the file: pages, or blocks of compressed pages. Of a
// capture that its recorder did not finish, pages may follow in a file of their own.
struct CpuData {
  CpuId cpu = 0;
  std::span<const std::uint8_t> stored;
  Compression compression = Compression::none;
  const MappedFile* file = nullptr;  // that `stored` lies in; null when it lies in memory
  std::span<const std::uint8_t> rest{};
  const MappedFile* rest_file = nullptr;
};

struct Buffer {
  std::string name;  // "" is the top buffer
  std::string clock;
  std::uint32_t page_size = 0;
  std::vector<CpuData> cpus;  // CPUs without data may be absent
};

// One event's `format` text, not yet parsed.
struct FormatText {
  std::string_view system;
  std::string_view text;
};

class Reader {
 public:
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  static Result<Reader> open(const std::string& path);
  // For tests and fuzzers: `bytes` must outlive the Reader. `name` stands in messages.
  static Result<Reader> parse(std::span<const std::uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  std::uint64_t file_size() const { return bytes_.size(); }
  int version() const { return version_; }
  const std::string& compression() const { return compression_name_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // A new source of that CPU's pages. The Reader must outlive it. Pages before `from`, in scaled
  // time, may be left out.
  std::unique_ptr<ring::PageSource> pages(const Buffer& buffer, const CpuData& cpu,
                                          Nanoseconds from = 0) const;
  // From time stamps to nanoseconds, for clocks that count cycles (option TSC2NSEC).
  const ring::TimeScale& time_scale() const { return time_scale_; }
  const std::vector<FormatText>& formats() const { return formats_; }
  std::string_view cmdlines() const { return cmdlines_; }  // "pid comm" lines
  std::string_view uname() const { return uname_; }
  std::uint32_t cpu_count() const { return cpu_count_; }
  const std::vector<std::string_view>& cpu_stats() const { return cpu_stats_; }
  // The content of an option we do not interpret, private ones included; empty when absent.
  std::string_view option_text(OptionId id) const;
  // /proc/kallsyms of the recorded machine; decompressed on the first call, whichever thread makes
  // it.
  std::string_view kallsyms() const;
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  struct Section {
    OptionId id{};
    bool compressed = false;
    std::span<const std::uint8_t> body;  // as in the file
  };
  struct Symbols;

  Reader();
  static Result<Reader> read(Reader reader);
  Result<void> read_headers();

  // reader_v6.cc
  void read_v6(ByteReader reader);
  bool read_v6_options(ByteReader& reader);
  void read_v6_buffer(ByteReader& reader, Buffer buffer, bool clock_follows);
  void read_v6_instance(ByteReader option);

  // reader_v7.cc
  Result<void> read_v7(ByteReader reader);
  void read_v7_chain(std::uint64_t offset);
  std::uint64_t read_v7_options(const Section& section);
  void read_v7_buffer(ByteReader option);
  void read_all_v7_sections(std::uint64_t offset);
  void read_v7_section(OptionId id, std::uint64_t offset);
  void check_kallsyms(std::uint64_t offset);
  Result<Section> section(std::uint64_t offset, OptionId expected) const;
  Result<std::span<const std::uint8_t>> content(const Section& section);

  bool may_take(std::uint64_t size);
  void read_option(OptionId id, ByteReader option);
  void read_ftrace_formats(ByteReader& reader);
  void read_event_formats(ByteReader& reader);
  void read_cpu_count(ByteReader& reader);
  void read_time_scale(ByteReader option);

  // The capture itself; null when it lies in memory.
  const MappedFile* file() const { return files_.empty() ? nullptr : files_.front().get(); }
  bool plausible_cpu(CpuId cpu);
  bool has_room_for_cpu();
  std::span<const std::uint8_t> file_range(std::uint64_t offset, std::uint64_t size, CpuId cpu);
  bool claim(std::span<const std::uint8_t> range, CpuId cpu);
  void settle_page_size(Buffer& buffer, std::uint32_t other);
  bool has_data() const;
  std::vector<bool> known_ids() const;
  void look_for_repeated_ids();
  void look_for_unclaimed_pages();
  std::size_t compressed_cpus() const;
  void look_for_large_pages();
  void recover_data();
  bool is_unfinished() const;
  void read_files_of_a_killed_recorder();
  void read_files_of(Buffer& buffer);
  void read_rest(CpuData& cpu, const MappedFile& rest, std::uint32_t page_size);
  std::uint64_t offset_of(std::span<const std::uint8_t> range) const;
  void note(std::string message);
  void note_first(std::string message);

  std::vector<std::unique_ptr<MappedFile>> files_;  // the first is the capture itself
  std::span<const std::uint8_t> bytes_;
  std::string path_;
  int version_ = 0;
  std::uint32_t page_size_ = 0;
  std::string compression_name_;
  Compression compression_ = Compression::none;
  std::string clock_ = "local";
  std::uint32_t cpu_count_ = 0;
  std::size_t v6_instances_ = 0;
  std::size_t cpu_data_ = 0;  // of all buffers
  ring::TimeScale time_scale_;
  std::vector<Buffer> buffers_;
  std::vector<FormatText> formats_;
  std::string_view header_page_;
  std::string_view cmdlines_;
  std::string_view uname_;
  std::unique_ptr<Symbols> symbols_;
  std::vector<std::string_view> cpu_stats_;
  std::map<OptionId, std::string_view> options_;
  std::uint64_t metadata_end_ = 0;         // where to look for pages when no table tells
  std::set<std::uint64_t> sections_read_;  // by offset: a section, or v6 instance, is read once
  std::uint64_t taken_ = 0;                // bytes of sections and options
  std::map<std::uint64_t, std::uint64_t> claimed_;  // offset -> end of every CPU's data
  std::deque<std::vector<std::uint8_t>> decompressed_;
  std::uint64_t decompressed_size_ = 0;
  std::vector<std::string> damage_;
  std::uint64_t damage_not_listed_ = 0;
};

}  // namespace skbtrail::tracedat
