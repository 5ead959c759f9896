#include "tracedat/reader.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tracedat/decompress.h"

namespace skbtrail::tracedat {
namespace {

// "[mono]" of "local global [mono] boot", or of the "[mono]" that ends a v6 header.
std::string selected_clock(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string_view without_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

// An instance's table may hold options, and so point at itself.
constexpr int kMaxInstances = 256;

// NR_CPUS is at most 8192 (arch/x86/Kconfig, 6.12).
constexpr CpuId kMaxCpus = 8192;

bool plausible_page_size(std::uint32_t size) {
  return size >= 4096 && size <= 1U << 20 && (size & (size - 1)) == 0;
}

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return pass(file);
  auto reader = parse(file->bytes(), path);
  if (reader) reader->file_ = std::move(*file);
  return reader;
}

Result<Reader> Reader::parse(std::span<const std::uint8_t> bytes, const std::string& name) {
  Reader reader;
  reader.bytes_ = bytes;
  reader.path_ = name;
  if (auto read = reader.read_headers(); !read) return pass(read);
  if (reader.buffers_.empty()) {
    std::string reasons;
    for (const std::string& line : reader.damage_) reasons += "\n  " + line;
    return fail(ErrorKind::damaged, "{}: no readable trace data in this file{}", name, reasons);
  }
  return reader;
}

Result<void> Reader::read_headers() {
  ByteReader reader(bytes_);
  const auto magic = reader.bytes(kMagic.size());
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin(), kMagic.end()) ||
      reader.text(kTracing.size()) != kTracing) {
    return fail(ErrorKind::damaged, "{} is not a trace.dat (it does not start with its magic)",
                path_);
  }
  const std::string_view version = reader.string();
  const auto big_endian = reader.number<std::uint8_t>();
  const auto long_size = reader.number<std::uint8_t>();
  page_size_ = reader.number<std::uint32_t>();
  if (!reader.ok()) return fail(ErrorKind::damaged, "{}: the file ends inside its header", path_);
  if (big_endian != 0) {
    return fail(ErrorKind::unsupported,
                "{}: recorded on a big-endian machine; only little-endian "
                "captures can be read",
                path_);
  }
  if (long_size != 8) {
    return fail(ErrorKind::unsupported,
                "{}: recorded by a {}-bit user space; only 64-bit captures "
                "can be read",
                path_, long_size * 8);
  }
  if (!plausible_page_size(page_size_)) {
    return fail(ErrorKind::damaged, "{}: a page size of {} bytes makes no sense", path_,
                page_size_);
  }
  if (version == "6") {
    version_ = 6;
    read_v6(reader);
    return {};
  }
  if (version == "7") {
    version_ = 7;
    return read_v7(reader);
  }
  return fail(ErrorKind::unsupported, "{}: trace.dat version {} (6 and 7 can be read)", path_,
              version);
}

// ------------------------------------------------------------------------------- version 6

void Reader::read_v6(ByteReader reader) {
  compression_ = "none";
  for (const std::string_view header : {"header_page", "header_event"}) {
    if (reader.string() != header) return note(fmt::format("no {} where it belongs", header));
    reader.bytes(reader.number<std::uint64_t>());
  }
  for (auto count = reader.number<std::uint32_t>(); count > 0 && reader.ok(); --count) {
    formats_.push_back({"ftrace", reader.text(reader.number<std::uint64_t>())});
  }
  read_event_formats(reader);
  v6_kallsyms_ = reader.text(reader.number<std::uint32_t>());
  reader.text(reader.number<std::uint32_t>());  // printk formats
  cmdlines_ = reader.text(reader.number<std::uint64_t>());
  cpu_count_ = reader.number<std::uint32_t>();
  if (!reader.ok()) return note("the file ends inside its metadata");
  if (cpu_count_ > kMaxCpus) return note(fmt::format("{} CPUs make no sense", cpu_count_));
  Buffer top;
  top.page_size = page_size_;
  read_v6_buffer(reader, std::move(top), true);
}

// "options  \0", records of (u16 id, u32 size, data), u16 0. False when there are none.
bool Reader::read_v6_options(ByteReader& reader) {
  while (reader.ok()) {
    const auto id = static_cast<OptionId>(reader.number<std::uint16_t>());
    if (id == OptionId::done) return true;
    const auto data = reader.bytes(reader.number<std::uint32_t>());
    if (reader.ok()) read_option(id, ByteReader(data));
  }
  return false;
}

// The part of a v6 file that repeats for every instance: options, the table of CPU data, and for
// the top buffer the clock (init_buffer_cpu_data() of trace-cmd).
void Reader::read_v6_buffer(ByteReader& reader, Buffer buffer, bool clock_follows) {
  std::string_view kind = reader.text(10);
  if (kind == std::string_view("options  \0", 10)) {
    if (!read_v6_options(reader)) return note("the file ends inside its options");
    kind = reader.text(10);
  }
  if (without_nul(kind) != "flyrecord") {
    return note(fmt::format("buffer \"{}\" holds no ring-buffer data", buffer.name));
  }
  for (CpuId cpu = 0; cpu < cpu_count_ && reader.ok(); ++cpu) {
    const auto offset = reader.number<std::uint64_t>();
    const auto size = reader.number<std::uint64_t>();
    if (!reader.ok() || size == 0) continue;
    buffer.cpus.push_back({cpu, file_range(offset, size, cpu)});
  }
  if (!reader.ok()) note("the file ends inside its table of CPU data");
  if (clock_follows && options_.contains(OptionId::traceclock)) {
    const std::string clock = selected_clock(reader.text(reader.number<std::uint64_t>()));
    if (reader.ok() && !clock.empty()) clock_ = clock;
  }
  buffer.clock = clock_;
  // The option that announced an instance was read before the top buffer's own table.
  const auto position = buffer.name.empty() ? buffers_.begin() : buffers_.end();
  buffers_.insert(position, std::move(buffer));
}

// In version 6 the BUFFER option gives an instance's offset and name; its tables stand there.
void Reader::read_v6_instance(ByteReader option) {
  Buffer instance;
  const auto offset = option.number<std::uint64_t>();
  instance.name = option.string();
  instance.page_size = page_size_;
  if (!option.ok() || instance.name.empty()) return note("an instance's description is damaged");
  if (++v6_instances_ > kMaxInstances) return note("too many instances; the rest is skipped");
  ByteReader reader(bytes_, offset);
  read_v6_buffer(reader, std::move(instance), false);
}

// ------------------------------------------------------------------------------- version 7

Result<void> Reader::read_v7(ByteReader reader) {
  compression_ = reader.string();
  reader.string();  // its version
  auto offset = reader.number<std::uint64_t>();
  if (!reader.ok()) return fail(ErrorKind::damaged, "{}: the file ends inside its header", path_);
  if (compression_ != "none" && compression_ != "zstd") {
    return fail(ErrorKind::unsupported,
                "{}: compressed with {}; `trace-cmd convert --compression zstd` makes it readable",
                path_, compression_);
  }
  std::set<std::uint64_t> seen;
  while (offset != 0) {
    if (!seen.insert(offset).second) {
      note(fmt::format("the option sections run in a circle at offset {:#x}", offset));
      break;
    }
    auto options = section(offset, OptionId::done);
    if (!options) {
      note(std::move(options.error().message));
      break;
    }
    offset = read_v7_options(*options);
  }
  return {};
}

// Returns the offset of the next OPTIONS section, 0 at the end.
std::uint64_t Reader::read_v7_options(const Section& section) {
  const auto bytes = content(section);
  if (!bytes) {
    note(bytes.error().message);
    return 0;
  }
  ByteReader reader(*bytes);
  while (reader.left() > 0) {
    const auto id = static_cast<OptionId>(reader.number<std::uint16_t>());
    const auto data = reader.bytes(reader.number<std::uint32_t>());
    if (!reader.ok()) break;
    ByteReader option(data);
    if (id == OptionId::done) return option.number<std::uint64_t>();
    read_option(id, option);
  }
  note("an option section ends without its last option");
  return 0;
}

void Reader::read_option(OptionId id, ByteReader option) {
  switch (id) {
    case OptionId::buffer:
      return version_ == 6 ? read_v6_instance(option) : read_v7_buffer(option);
    case OptionId::event_formats: {
      ByteReader reader = section_reader(option, id);
      return read_event_formats(reader);
    }
    case OptionId::ftrace_events: {
      ByteReader reader = section_reader(option, id);
      for (auto count = reader.number<std::uint32_t>(); count > 0 && reader.ok(); --count) {
        formats_.push_back({"ftrace", reader.text(reader.number<std::uint64_t>())});
      }
      return;
    }
    case OptionId::cmdlines: {
      ByteReader reader = section_reader(option, id);
      cmdlines_ = reader.text(reader.number<std::uint64_t>());
      return;
    }
    case OptionId::kallsyms:
      kallsyms_section_ = option.number<std::uint64_t>();
      return;
    case OptionId::cpucount:
      cpu_count_ = option.number<std::uint32_t>();
      return;
    default:
      break;
  }
  const std::string_view text = option.text(option.left());
  if (id == OptionId::cpustat) cpu_stats_.push_back(without_nul(text));
  if (id == OptionId::uname) uname_ = without_nul(text);
  if (id == OptionId::traceclock) {
    const std::string clock = selected_clock(text);
    if (!clock.empty()) clock_ = clock;
  }
  options_[id] = without_nul(text);
}

void Reader::read_v7_buffer(ByteReader option) {
  const auto section_offset = option.number<std::uint64_t>();
  Buffer buffer;
  buffer.name = option.string();
  buffer.clock = option.string();
  buffer.page_size = option.number<std::uint32_t>();
  const auto cpus = option.number<std::uint32_t>();
  if (!option.ok() || !plausible_page_size(buffer.page_size)) {
    return note("a buffer's description is damaged; the buffer is skipped");
  }
  const auto header = section(section_offset, OptionId::buffer);
  const bool compressed = header && header->compressed;
  if (!header) note(header.error().message + "; reading the buffer as uncompressed");
  for (std::uint32_t i = 0; i < cpus && option.ok(); ++i) {
    const auto cpu = option.number<CpuId>();
    const auto offset = option.number<std::uint64_t>();
    const auto size = option.number<std::uint64_t>();
    if (!option.ok() || size == 0 || !plausible_cpu(cpu)) continue;
    // trace-cmd counts a compressed CPU's size without the leading u32 of chunks
    // (out_write_cpu_data() and tracecmd_compress_copy_from(), 3.1.6).
    const std::uint64_t uncounted = compressed ? sizeof(std::uint32_t) : 0;
    CpuData data{cpu, file_range(offset, size + uncounted, cpu)};
    if (compressed) {
      auto chunks = decompress_chunks(data.pages);
      if (!chunks.complete) {
        note(fmt::format("CPU {}: the compressed data breaks off after {} bytes", cpu,
                         chunks.data.size()));
      }
      decompressed_.push_back(std::move(chunks.data));
      data.pages = decompressed_.back();
    }
    buffer.cpus.push_back(data);
  }
  if (!option.ok()) note("a buffer's table of CPUs is cut off");
  buffers_.push_back(std::move(buffer));
}

Result<Reader::Section> Reader::section(std::uint64_t offset, OptionId expected) {
  ByteReader reader(bytes_, offset);
  Section section;
  section.id = static_cast<OptionId>(reader.number<std::uint16_t>());
  section.compressed = (reader.number<std::uint16_t>() & kSectionCompressed) != 0;
  reader.number<std::uint32_t>();  // a description for people, in the STRINGS section
  const auto size = reader.number<std::uint64_t>();
  if (!reader.ok()) {
    return fail(ErrorKind::damaged, "the file ends before offset {:#x}, where section {} should be",
                offset, static_cast<unsigned>(expected));
  }
  if (section.id != expected) {
    return fail(ErrorKind::damaged, "no section {} at offset {:#x}",
                static_cast<unsigned>(expected), offset);
  }
  // The size of a BUFFER section is not needed: its CPUs have their own offsets and sizes.
  if (expected == OptionId::buffer) return section;
  section.body = reader.bytes(size);
  if (!reader.ok()) {
    return fail(ErrorKind::damaged, "section {} at offset {:#x} reaches beyond the end of the file",
                static_cast<unsigned>(expected), offset);
  }
  return section;
}

Result<std::span<const std::uint8_t>> Reader::content(const Section& section) {
  if (!section.compressed) return section.body;
  ByteReader reader(section.body);
  const auto compressed_size = reader.number<std::uint32_t>();
  const auto size = reader.number<std::uint32_t>();
  const auto frame = reader.bytes(compressed_size);
  if (!reader.ok()) return fail(ErrorKind::damaged, "a compressed section is cut off");
  auto bytes = decompress(frame, size);
  if (!bytes) return pass(bytes);
  decompressed_.push_back(std::move(*bytes));
  return std::span<const std::uint8_t>(decompressed_.back());
}

// The content of the section an option points at; on damage a reader that fails every read.
ByteReader Reader::section_reader(ByteReader option, OptionId id) {
  if (version_ == 6) {
    note(fmt::format("option {} does not belong into a version 6 file", static_cast<unsigned>(id)));
    return {};
  }
  const auto header = section(option.number<std::uint64_t>(), id);
  if (!header) {
    note(header.error().message);
    return {};
  }
  const auto bytes = content(*header);
  if (!bytes) note(bytes.error().message);
  return bytes ? ByteReader(*bytes) : ByteReader();
}

// ------------------------------------------------------------------------------- both versions

void Reader::read_event_formats(ByteReader& reader) {
  for (auto systems = reader.number<std::uint32_t>(); systems > 0 && reader.ok(); --systems) {
    const std::string_view system = reader.string();
    for (auto count = reader.number<std::uint32_t>(); count > 0 && reader.ok(); --count) {
      const std::string_view text = reader.text(reader.number<std::uint64_t>());
      if (reader.ok()) formats_.push_back({system, text});
    }
  }
  if (!reader.ok()) note("the event formats are cut off");
}

// Per-CPU tables are indexed by this number, so a lying one must not get far.
bool Reader::plausible_cpu(CpuId cpu) {
  if (cpu < kMaxCpus) return true;
  note(fmt::format("CPU {} makes no sense; its data is skipped", cpu));
  return false;
}

std::span<const std::uint8_t> Reader::file_range(std::uint64_t offset, std::uint64_t size,
                                                 CpuId cpu) {
  if (offset <= bytes_.size() && size <= bytes_.size() - offset) {
    return bytes_.subspan(offset, size);
  }
  const std::uint64_t there = offset < bytes_.size() ? bytes_.size() - offset : 0;
  note(fmt::format("CPU {}: {} of {} bytes of data lie beyond the end of the file", cpu,
                   size - there, size));
  return there == 0 ? std::span<const std::uint8_t>{} : bytes_.subspan(offset, there);
}

std::string_view Reader::option_text(OptionId id) const {
  const auto found = options_.find(id);
  return found == options_.end() ? std::string_view{} : found->second;
}

std::string_view Reader::kallsyms() {
  if (version_ == 6) return v6_kallsyms_;
  if (kallsyms_section_ == 0) return {};
  const auto header = section(kallsyms_section_, OptionId::kallsyms);
  if (!header) return {};
  const auto bytes = content(*header);
  if (!bytes) return {};
  ByteReader reader(*bytes);
  return reader.text(reader.number<std::uint32_t>());
}

}  // namespace skbtrail::tracedat
