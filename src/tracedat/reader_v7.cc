// Version 7: options in a chain of sections, which point at the other sections (format.h).
#include <mutex>

#include "base/error.h"
#include "tracedat/reader.h"
#include "tracedat/symbols.h"
#include "tracedat/text.h"

namespace skbtrail::tracedat {
namespace {

// Of all metadata of a file together. The formats and symbols of a large kernel are 20 MiB.
constexpr std::uint64_t kMaxMetadata = std::uint64_t{512} << 20;

// A section with one compressed block.
Result<std::vector<std::uint8_t>> decompress_section(std::span<const std::uint8_t> body,
                                                     Compression compression, std::uint64_t most) {
  ByteReader reader(body);
  const Block block = read_block(reader);
  if (!reader.ok()) return fail(ErrorKind::damaged, "a compressed section is cut off");
  std::vector<std::uint8_t> bytes;
  if (!plausible(block, compression, most) || !decompress(block, compression, bytes)) {
    return fail(ErrorKind::damaged, "a block of {} bytes does not decompress to {} bytes",
                block.compressed.size(), block.size);
  }
  return bytes;
}

}  // namespace

Result<void> Reader::read_v7(ByteReader reader) {
  compression_name_ = reader.string();
  reader.string();  // its version
  const auto options = reader.number<std::uint64_t>();
  if (!reader.ok()) return fail(ErrorKind::damaged, "{}: the file ends inside its header", path_);
  const auto compression = compression_named(compression_name_);
  if (!compression) {
    return fail(ErrorKind::unsupported,
                "{}: compressed with {}; `trace-cmd convert --compression zstd` makes it readable",
                path_, compression_name_);
  }
  compression_ = *compression;
  metadata_end_ = reader.position();
  read_v7_chain(options);
  if (!damage_.empty() && (!has_data() || formats_.empty()))
    read_all_v7_sections(reader.position());
  return {};
}

void Reader::read_v7_chain(std::uint64_t offset) {
  while (offset != 0) {
    if (!sections_read_.insert(offset).second) {
      return note(fmt::format("the option sections run in a circle at offset {:#x}", offset));
    }
    auto options = section(offset, OptionId::done);
    if (!options) return note(std::move(options.error().message));
    offset = read_v7_options(*options);
  }
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

// Without the chain of options: section by section, as they lie in the file. It ends at the first
// that makes no sense; what lies behind that is looked for by its looks (recover_data()).
void Reader::read_all_v7_sections(std::uint64_t offset) {
  while (offset < bytes_.size()) {
    ByteReader reader(bytes_, offset);
    const auto id = static_cast<OptionId>(reader.number<std::uint16_t>());
    reader.number<std::uint16_t>();
    reader.number<std::uint32_t>();
    const auto size = reader.number<std::uint64_t>();
    const bool known = id == OptionId::done || id == OptionId::buffer ||
                       (id >= OptionId::strings && id <= kLastSection);
    if (!reader.ok() || !known || size > bytes_.size() - reader.position()) return;
    if (id == OptionId::done && size == 0) return;  // zeros: options end with one that takes bytes
    if (id != OptionId::buffer && id != OptionId::strings) metadata_end_ = reader.position() + size;
    if (id == OptionId::done && sections_read_.insert(offset).second) {
      if (const auto options = section(offset, id)) read_v7_options(*options);
    } else if (id >= OptionId::header_info) {
      read_v7_section(id, offset);
    }
    offset = reader.position() + size;
  }
}

// A section is read once, however many options name it.
void Reader::read_v7_section(OptionId id, std::uint64_t offset) {
  if (!sections_read_.insert(offset).second) return;
  if (id == OptionId::printk) return;
  if (id == OptionId::kallsyms) {
    symbols_->section = offset;
    return check_kallsyms(offset);
  }
  const auto header = section(offset, id);
  if (!header) return note(header.error().message);
  const auto bytes = content(*header);
  if (!bytes) return note(bytes.error().message);
  ByteReader reader(*bytes);
  if (id == OptionId::ftrace_events) read_ftrace_formats(reader);
  if (id == OptionId::event_formats) read_event_formats(reader);
  if (id == OptionId::cmdlines) {
    cmdlines_ = reader.text(reader.number<std::uint64_t>());
    if (!reader.ok()) note("the names of the tasks are cut off");
  }
  // A count or a length that says less than there is.
  if (id != OptionId::header_info && reader.left() > 0) {
    note(fmt::format("section {} at offset {:#x} has {} bytes more than its texts take",
                     static_cast<unsigned>(id), offset, reader.left()));
  }
}

// What can be told without decompressing megabytes that most runs do not need.
void Reader::check_kallsyms(std::uint64_t offset) {
  const auto header = section(offset, OptionId::kallsyms);
  if (!header) return note(header.error().message);
  ByteReader reader(header->body);
  bool fits = true;
  if (header->compressed) {
    const Block block = read_block(reader);
    fits = compression_ != Compression::none && reader.ok() &&
           plausible(block, compression_, kMaxMetadata);
  } else {
    reader.text(reader.number<std::uint32_t>());
  }
  if (!fits || !reader.ok() || reader.left() > 0) {
    note(fmt::format("the kernel's symbols at offset {:#x} are damaged", offset));
  }
}

void Reader::read_v7_buffer(ByteReader option) {
  const auto section_offset = option.number<std::uint64_t>();
  Buffer buffer;
  buffer.name = option.string();
  buffer.clock = option.string();
  buffer.page_size = option.number<std::uint32_t>();
  const auto cpus = option.number<std::uint32_t>();
  if (!option.ok()) return note("a buffer's description is damaged; the buffer is skipped");
  if (buffers_.size() > kMaxInstances) return note("too many buffers; the rest is skipped");
  const auto header = section(section_offset, OptionId::buffer);
  Compression compression = compression_;
  if (!header) {
    note(header.error().message);
  } else if (!header->compressed) {
    compression = Compression::none;
  }
  std::set<CpuId> seen;
  for (std::uint32_t i = 0; i < cpus && option.ok(); ++i) {
    const auto cpu = option.number<CpuId>();
    const auto offset = option.number<std::uint64_t>();
    const auto size = option.number<std::uint64_t>();
    if (!option.ok() || size == 0 || !plausible_cpu(cpu)) continue;
    if (!seen.insert(cpu).second) {
      note(fmt::format("buffer \"{}\": its table names CPU {} twice; the second is skipped",
                       buffer.name, cpu));
      continue;
    }
    if (!has_room_for_cpu()) continue;
    // trace-cmd counts a compressed CPU's size without the leading u32 of chunks
    // (out_write_cpu_data() and tracecmd_compress_copy_from(), 3.1.6).
    const std::uint64_t uncounted = compression == Compression::none ? 0 : sizeof(std::uint32_t);
    buffer.cpus.push_back({cpu, file_range(offset, size + uncounted, cpu), compression, file()});
  }
  if (!option.ok() || option.left() > 0) note("a buffer's table of CPUs is damaged");
  // Only the top buffer's size stands in the header of the file, too.
  settle_page_size(buffer, buffer.name.empty() ? page_size_ : buffer.page_size);
  buffers_.push_back(std::move(buffer));
}

Result<Reader::Section> Reader::section(std::uint64_t offset, OptionId expected) const {
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
  if (!may_take(section.body.size())) {
    return fail(ErrorKind::damaged, "the sections overlap; one of {} bytes is skipped",
                section.body.size());
  }
  if (!section.compressed) return section.body;
  auto bytes = decompress_section(section.body, compression_, kMaxMetadata - decompressed_size_);
  if (!bytes) return pass(bytes);
  decompressed_size_ += bytes->size();
  decompressed_.push_back(std::move(*bytes));
  return std::span<const std::uint8_t>(decompressed_.back());
}

std::string_view Reader::kallsyms() const {
  if (symbols_->section == 0) return symbols_->text;
  std::call_once(symbols_->once, [this] {
    const auto header = section(symbols_->section, OptionId::kallsyms);
    if (!header) return;
    std::span<const std::uint8_t> bytes = header->body;
    if (header->compressed) {
      auto text = decompress_section(header->body, compression_, kMaxMetadata);
      if (!text) return;
      symbols_->bytes = std::move(*text);
      bytes = symbols_->bytes;
    }
    ByteReader reader(bytes);
    symbols_->text = reader.text(reader.number<std::uint32_t>());
  });
  return symbols_->text;
}

}  // namespace skbtrail::tracedat
