#include "tracedat/writer.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"

namespace skbtrail::tracedat {
namespace {

// Appends values in the byte order of this machine, which the file's header names.
class Bytes {
 public:
  template <class Number>
  void number(Number value) {
    char raw[sizeof(Number)];
    std::copy_n(reinterpret_cast<const char*>(&value), sizeof(Number), raw);
    bytes_.append(raw, sizeof(Number));
  }
  void raw(std::string_view text) { bytes_.append(text); }
  void zero_terminated(std::string_view text) {
    bytes_.append(text);
    bytes_.push_back('\0');
  }
  template <class Length>
  void sized(std::string_view text) {
    number(static_cast<Length>(text.size()));
    bytes_.append(text);
  }
  void pad_to(std::uint64_t size) { bytes_.resize(static_cast<std::size_t>(size), '\0'); }
  std::uint64_t size() const { return bytes_.size(); }
  std::string_view view() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// libtracecmd does not list "boot" among the clocks that count nanoseconds and then prints the raw
// number (extract_trace_clock(), 3.1.6 and 3.4). Without the option it prints seconds.
bool names_clock(const CaptureText& text) {
  return !text.trace_clock.empty() && text.clock != "boot";
}

// The pieces that both versions share byte for byte.

void put_start(Bytes& out, const CaptureText& text, std::string_view version) {
  for (const std::uint8_t byte : kMagic) out.number(byte);
  out.raw(kTracing);
  out.zero_terminated(version);
  out.number(std::uint8_t{std::endian::native == std::endian::big});
  out.number(static_cast<std::uint8_t>(sizeof(long)));
  out.number(text.page_size);
}

void put_header_info(Bytes& out, const CaptureText& text) {
  out.zero_terminated("header_page");
  out.sized<std::uint64_t>(text.header_page);
  out.zero_terminated("header_event");
  out.sized<std::uint64_t>(text.header_event);
}

void put_formats(Bytes& out, const std::vector<std::string>& formats) {
  out.number(static_cast<std::uint32_t>(formats.size()));
  for (const std::string& format : formats) out.sized<std::uint64_t>(format);
}

void put_systems(Bytes& out, const CaptureText& text) {
  out.number(static_cast<std::uint32_t>(text.systems.size()));
  for (const SystemFormats& system : text.systems) {
    out.zero_terminated(system.system);
    put_formats(out, system.formats);
  }
}

void put_option(Bytes& out, OptionId id, std::string_view data) {
  out.number(static_cast<std::uint16_t>(id));
  out.sized<std::uint32_t>(data);
}

// libtracecmd takes the text of an option for a C string (strdup() in handle_options(), 3.1.6), and
// overwrites the last byte of CPUSTAT: with a NUL at the end both are right.
void put_text_option(Bytes& out, OptionId id, const std::string& text) {
  put_option(out, id, {text.c_str(), text.size() + 1});
}

void put_text_options(Bytes& out, const CaptureText& text) {
  if (names_clock(text)) put_text_option(out, OptionId::traceclock, text.trace_clock);
  for (const TextOption& option : text.options) put_text_option(out, option.id, option.text);
}

std::size_t buffer_count(const CaptureText& text) {
  return 1 + text.named_buffers.size();
}
// The main buffer has no name: it is the top buffer to readers, the one KernelShark opens first.
std::string buffer_name(const CaptureText& text, std::size_t buffer) {
  return buffer == 0 ? "" : text.named_buffers[buffer - 1].name;
}
std::uint32_t page_size(const CaptureText& text, std::size_t buffer) {
  return buffer == 0 ? text.page_size : text.named_buffers[buffer - 1].page_size;
}

// The mark of raw data and one entry for every CPU id, those without a buffer included.
void put_v6_table(Bytes& out, const CaptureText& text, const std::vector<CpuExtent>& cpus,
                  std::size_t buffer) {
  out.zero_terminated("flyrecord");
  std::vector<CpuExtent> table(text.cpu_count);
  for (const CpuExtent& cpu : cpus) {
    if (cpu.buffer == buffer) table[cpu.cpu] = cpu;
  }
  for (const CpuExtent& cpu : table) {
    out.number(cpu.offset);
    out.number(cpu.size);
  }
}

// An option per named buffer: where its table stands. The tables follow the one of the main buffer.
void put_v6_instances(Bytes& out, const CaptureText& text) {
  constexpr std::uint64_t kOptionHeader = sizeof(std::uint16_t) + sizeof(std::uint32_t);
  constexpr std::uint64_t kMark = sizeof("flyrecord");
  const std::uint64_t table = kMark + text.cpu_count * 2 * sizeof(std::uint64_t);
  std::uint64_t at = out.size() + sizeof(std::uint16_t) + table;  // behind DONE and that table
  if (names_clock(text)) at += sizeof(std::uint64_t) + text.clock.size() + 2;
  for (const NamedBuffer& buffer : text.named_buffers) {
    at += kOptionHeader + sizeof(std::uint64_t) + buffer.name.size() + 1;
  }
  for (const NamedBuffer& buffer : text.named_buffers) {
    Bytes option;
    option.number(at);
    option.zero_terminated(buffer.name);
    put_option(out, OptionId::buffer, option.view());
    at += table;
  }
}

std::string head_v6(const CaptureText& text, const std::vector<CpuExtent>& cpus) {
  Bytes out;
  put_start(out, text, "6");
  put_header_info(out, text);
  put_formats(out, text.ftrace_formats);
  put_systems(out, text);
  out.sized<std::uint32_t>(text.kallsyms);
  out.sized<std::uint32_t>(text.printk_formats);
  out.sized<std::uint64_t>(text.cmdlines);
  out.number(text.cpu_count);
  out.zero_terminated("options  ");
  put_text_options(out, text);
  put_v6_instances(out, text);
  out.number(static_cast<std::uint16_t>(OptionId::done));
  put_v6_table(out, text, cpus, 0);
  // The reader expects the clock here exactly when the option was there (init_data_v6()).
  if (names_clock(text)) out.sized<std::uint64_t>("[" + text.clock + "]");
  for (std::size_t i = 1; i < buffer_count(text); ++i) put_v6_table(out, text, cpus, i);
  return out.take();
}

void put_section_header(Bytes& out, OptionId id, std::uint64_t size) {
  out.number(static_cast<std::uint16_t>(id));
  out.number(std::uint16_t{0});  // flags: not compressed
  out.number(std::uint32_t{0});  // description in a STRINGS section; readers ignore it
  out.number(size);
}

// Writes a section and remembers an option that points at it.
void put_section(Bytes& out, Bytes& options, OptionId id, std::string_view body) {
  Bytes offset;
  offset.number(out.size());
  put_option(options, id, offset.view());
  put_section_header(out, id, body.size());
  out.raw(body);
}

std::string buffer_option(const CaptureText& text, const std::vector<CpuExtent>& cpus,
                          std::size_t buffer, std::uint64_t section) {
  Bytes option;
  option.number(section);
  option.zero_terminated(buffer_name(text, buffer));
  option.zero_terminated(text.clock);
  option.number(page_size(text, buffer));
  const auto filled = [&](const CpuExtent& cpu) { return cpu.buffer == buffer && cpu.size > 0; };
  option.number(static_cast<std::uint32_t>(std::count_if(cpus.begin(), cpus.end(), filled)));
  for (const CpuExtent& cpu : cpus) {
    if (!filled(cpu)) continue;
    option.number(cpu.cpu);
    option.number(cpu.offset);
    option.number(cpu.size);
  }
  return option.take();
}

// The options that stand before the one of the buffer, with the sections they point at.
Bytes put_sections(Bytes& out, const CaptureText& text) {
  Bytes options;
  Bytes header_info, ftrace_formats, systems;
  put_header_info(header_info, text);
  put_formats(ftrace_formats, text.ftrace_formats);
  put_systems(systems, text);
  put_section(out, options, OptionId::header_info, header_info.view());
  put_section(out, options, OptionId::ftrace_events, ftrace_formats.view());
  put_section(out, options, OptionId::event_formats, systems.view());
  Bytes kallsyms, printk, cmdlines;
  kallsyms.sized<std::uint32_t>(text.kallsyms);
  printk.sized<std::uint32_t>(text.printk_formats);
  cmdlines.sized<std::uint64_t>(text.cmdlines);
  put_section(out, options, OptionId::kallsyms, kallsyms.view());
  put_section(out, options, OptionId::printk, printk.view());
  put_section(out, options, OptionId::cmdlines, cmdlines.view());
  return options;
}

std::string head_v7(const CaptureText& text, const std::vector<CpuExtent>& cpus,
                    std::uint64_t file_size) {
  Bytes out;
  put_start(out, text, "7");
  out.zero_terminated("none");
  out.zero_terminated("");  // version of the compression
  // The offset of the options is known once the sections are there: build those behind a gap.
  Bytes sections;
  sections.pad_to(out.size() + sizeof(std::uint64_t));
  Bytes options = put_sections(sections, text);
  out.number(sections.size());
  out.raw(sections.view().substr(out.size()));

  Bytes cpu_count;
  cpu_count.number(text.cpu_count);
  put_option(options, OptionId::cpucount, cpu_count.view());
  put_text_options(options, text);
  constexpr std::uint64_t kOptionHeader = sizeof(std::uint16_t) + sizeof(std::uint32_t);
  std::uint64_t options_size = options.size() + kOptionHeader + sizeof(std::uint64_t);  // DONE
  for (std::size_t i = 0; i < buffer_count(text); ++i) {
    options_size += kOptionHeader + buffer_option(text, cpus, i, 0).size();
  }
  // The sections of the named buffers are headers only, and the main buffer's comes last and spans
  // all pages: read_metadata_strings() walks from section to section by their sizes.
  const std::uint64_t named_sections = out.size() + kSectionHeaderSize + options_size;
  const std::uint64_t main_section =
      named_sections + text.named_buffers.size() * kSectionHeaderSize;
  put_option(options, OptionId::buffer, buffer_option(text, cpus, 0, main_section));
  for (std::size_t i = 1; i < buffer_count(text); ++i) {
    const std::uint64_t section = named_sections + (i - 1) * kSectionHeaderSize;
    put_option(options, OptionId::buffer, buffer_option(text, cpus, i, section));
  }
  Bytes no_more;
  no_more.number(std::uint64_t{0});
  put_option(options, OptionId::done, no_more.view());

  put_section_header(out, OptionId::done, options_size);
  out.raw(options.view());
  for (std::size_t i = 1; i < buffer_count(text); ++i) put_section_header(out, OptionId::buffer, 0);
  const std::uint64_t data = main_section + kSectionHeaderSize;
  put_section_header(out, OptionId::buffer, file_size > data ? file_size - data : 0);
  return out.take();
}

Result<void> check(const CaptureText& text, const std::vector<CpuExtent>& cpus,
                   FileVersion version) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (text.kallsyms.size() > kMost || text.printk_formats.size() > kMost) {
    return fail(ErrorKind::failed, "the kernel's symbols do not fit into a trace.dat");
  }
  for (const NamedBuffer& buffer : text.named_buffers) {
    if (version == FileVersion::v6 && buffer.page_size != text.page_size) {
      return fail(ErrorKind::failed,
                  "version 6 has one page size for all buffers: {} has {}, the main one {}",
                  buffer.name, buffer.page_size, text.page_size);
    }
  }
  for (const CpuExtent& cpu : cpus) {
    const std::uint32_t page =
        cpu.buffer < buffer_count(text) ? page_size(text, cpu.buffer) : text.page_size;
    if (cpu.cpu >= text.cpu_count || cpu.buffer >= buffer_count(text) || cpu.size % page != 0) {
      return fail(ErrorKind::failed,
                  "CPU {} with {} bytes does not fit {} CPUs and pages of {} bytes", cpu.cpu,
                  cpu.size, text.cpu_count, page);
    }
  }
  return {};
}

}  // namespace

Result<Layout> lay_out(const CaptureText& text, std::vector<CpuExtent> cpus, FileVersion version) {
  Result<void> valid = check(text, cpus, version);
  if (!valid) return pass(valid);
  Layout layout;
  layout.cpus = std::move(cpus);
  const auto build = [&] {
    return version == FileVersion::v6 ? head_v6(text, layout.cpus)
                                      : head_v7(text, layout.cpus, layout.file_size);
  };
  // The head has the same size whatever the offsets in it: once to measure, once for good.
  const std::uint64_t start = align_up(build().size(), text.page_size);
  layout.file_size = start;
  for (CpuExtent& cpu : layout.cpus) {
    cpu.offset = align_up(layout.file_size, page_size(text, cpu.buffer));
    layout.file_size = cpu.offset + cpu.size;
  }
  layout.head = build();
  layout.head.resize(static_cast<std::size_t>(start), '\0');
  return layout;
}

}  // namespace skbtrail::tracedat
