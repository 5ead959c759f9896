// Version 6: one thing after the other (format.h).
#include "base/error.h"
#include "tracedat/reader.h"
#include "tracedat/symbols.h"
#include "tracedat/text.h"

namespace skbtrail::tracedat {

void Reader::read_v6(ByteReader reader) {
  compression_name_ = "none";
  for (const std::string_view header : {"header_page", "header_event"}) {
    if (reader.string() != header) return note(fmt::format("no {} where it belongs", header));
    const std::string_view text = reader.text(reader.number<std::uint64_t>());
    if (header == "header_page") header_page_ = text;
  }
  read_ftrace_formats(reader);
  read_event_formats(reader);
  symbols_->text = reader.text(reader.number<std::uint32_t>());
  reader.text(reader.number<std::uint32_t>());  // printk formats
  cmdlines_ = reader.text(reader.number<std::uint64_t>());
  const auto cpu_count = reader.number<std::uint32_t>();
  if (reader.ok()) metadata_end_ = reader.position();
  if (!reader.ok()) return note("the file ends inside its metadata");
  if (cpu_count > kMaxCpus) return note(fmt::format("{} CPUs make no sense", cpu_count));
  cpu_count_ = cpu_count;
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
    if (!may_take(data.size())) {
      note("the options of instances overlap; the rest is skipped");
      return true;
    }
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
    if (!reader.ok() || size == 0 || !has_room_for_cpu()) continue;
    buffer.cpus.push_back({cpu, file_range(offset, size, cpu), Compression::none, file()});
  }
  if (!reader.ok()) note("the file ends inside its table of CPU data");
  if (clock_follows && options_.contains(OptionId::traceclock)) {
    const std::string clock = selected_clock(reader.text(reader.number<std::uint64_t>()));
    if (reader.ok() && !clock.empty()) clock_ = clock;
    // Which were read before, where the option has no text (trace-cmd 2.9).
    for (Buffer& instance : buffers_) instance.clock = clock_;
  }
  buffer.clock = clock_;
  settle_page_size(buffer, page_size_of(header_page_));
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
  // Its table may hold options, and so point at itself.
  if (++v6_instances_ > kMaxInstances) return note("too many instances; the rest is skipped");
  if (!sections_read_.insert(offset).second) {
    return note(
        fmt::format("instance \"{}\" lies where another does; it is skipped", instance.name));
  }
  ByteReader reader(bytes_, offset);
  read_v6_buffer(reader, std::move(instance), false);
}

}  // namespace skbtrail::tracedat
