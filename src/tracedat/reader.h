// Opens a trace.dat, ours or trace-cmd's, version 6 or 7, uncompressed or zstd (see format.h).
//
// Everything is a view into the mapped file, or into memory the Reader decompressed, and lives as
// long as the Reader. Damage never hides what can be read: what had to be skipped is said in
// `damage`, a line each, and only a file without any readable buffer is an error.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "skbtrail/result.h"
#include "skbtrail/units.h"
#include "tracedat/format.h"

namespace skbtrail::tracedat {

// The pages of one CPU of one buffer.
struct CpuData {
  CpuId cpu = 0;
  std::span<const std::uint8_t> pages;
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
  static Result<Reader> open(const std::string& path);
  // For tests and fuzzers: `bytes` must outlive the Reader. `name` stands in messages.
  static Result<Reader> parse(std::span<const std::uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  std::uint64_t file_size() const { return bytes_.size(); }
  int version() const { return version_; }
  const std::string& compression() const { return compression_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<FormatText>& formats() const { return formats_; }
  std::string_view cmdlines() const { return cmdlines_; }  // "pid comm" lines
  std::string_view uname() const { return uname_; }
  std::uint32_t cpu_count() const { return cpu_count_; }
  const std::vector<std::string_view>& cpu_stats() const { return cpu_stats_; }
  // The content of an option we do not interpret, private ones included; empty when absent.
  std::string_view option_text(OptionId id) const;
  // /proc/kallsyms of the recorded machine; decompressed on the first call.
  std::string_view kallsyms();
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  struct Section {
    OptionId id{};
    bool compressed = false;
    std::span<const std::uint8_t> body;  // as in the file
  };

  Result<void> read_headers();
  void read_v6(ByteReader reader);
  bool read_v6_options(ByteReader& reader);
  void read_v6_buffer(ByteReader& reader, Buffer buffer, bool clock_follows);
  void read_v6_instance(ByteReader option);
  Result<void> read_v7(ByteReader reader);
  std::uint64_t read_v7_options(const Section& section);
  void read_option(OptionId id, ByteReader option);
  void read_v7_buffer(ByteReader option);
  void read_event_formats(ByteReader& reader);
  Result<Section> section(std::uint64_t offset, OptionId expected);
  Result<std::span<const std::uint8_t>> content(const Section& section);
  ByteReader section_reader(ByteReader option, OptionId id);
  bool plausible_cpu(CpuId cpu);
  std::span<const std::uint8_t> file_range(std::uint64_t offset, std::uint64_t size, CpuId cpu);
  void note(std::string message) { damage_.push_back(std::move(message)); }

  MappedFile file_;
  std::span<const std::uint8_t> bytes_;
  std::string path_;
  int version_ = 0;
  std::uint32_t page_size_ = 0;
  std::string compression_;
  std::string clock_ = "local";
  std::uint32_t cpu_count_ = 0;
  int v6_instances_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<FormatText> formats_;
  std::string_view cmdlines_;
  std::string_view uname_;
  std::string_view v6_kallsyms_;
  std::uint64_t kallsyms_section_ = 0;
  std::vector<std::string_view> cpu_stats_;
  std::map<OptionId, std::string_view> options_;
  std::deque<std::vector<std::uint8_t>> decompressed_;
  std::vector<std::string> damage_;
};

}  // namespace skbtrail::tracedat
