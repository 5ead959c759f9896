// bench_spread CAPTURE OUTPUT SLICES: the events of CAPTURE as a machine with SLICES times as many
// CPUs would have them. The capture is cut into slices of time that are laid beside each other,
// each on CPUs, tasks, packets, sockets and addresses of its own; events whose packet, task or call
// lies on both sides of a cut are the only ones that mean something else. Of a file without
// compression, of the first buffer that holds events.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/fd.h"
#include "pages.h"
#include "skbtrail/event_format.h"
#include "stream/trace.h"
#include "tracedat/writer.h"

namespace skbtrail::test {
namespace {

// skbs and sockets lie at multiples of 64 and more; those of two slices at other ones, too.
constexpr std::uint64_t kLines = 256 * 57;

// What tells one slice's things from another one's.
struct Identity {
  enum class Kind { address, cookie, pid, ip } kind;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};
using Identities = std::map<std::uint16_t, std::vector<Identity>>;  // by event id

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Identities identities_of(const tracedat::Reader& file) {
  using Kind = Identity::Kind;
  Identities identities;
  for (const tracedat::FormatText& text : file.formats()) {
    const auto format = parse_event_format(text.system, text.text);
    if (!format) continue;
    std::vector<Identity>& fields = identities[format->id];
    for (const FieldFormat& field : format->fields) {
      if (field.size == 8 && is_one_of(field.name, {"skbaddr", "skaddr", "sk", "rx_skaddr"})) {
        fields.push_back({Kind::address, field.offset, 8});
      } else if (field.size == 8 && field.name == "sock_cookie") {
        fields.push_back({Kind::cookie, field.offset, 8});
      } else if (field.size == 4 && is_one_of(field.name, {"pid", "common_pid", "next_pid",
                                                           "prev_pid", "child_pid"})) {
        fields.push_back({Kind::pid, field.offset, 4});
      } else if (is_one_of(field.name, {"saddr", "daddr"}) && field.size == 28) {
        fields.push_back({Kind::ip, field.offset + 5, 1});  // struct sockaddr_in
      } else if (is_one_of(field.name, {"saddr", "daddr"}) && field.size == 4) {
        fields.push_back({Kind::ip, field.offset + 1, 1});
      } else if (is_one_of(field.name, {"saddr_v6", "daddr_v6"})) {
        fields.push_back({Kind::ip, field.offset + 13, 1});  // ::ffff:a.b.c.d
      }
    }
  }
  return identities;
}

template <class Number>
void add(std::uint8_t* at, std::uint64_t number) {
  const auto value = load<Number>(at);
  if (value != 0) put(at, static_cast<Number>(value + number));  // 0 is nobody
}

void make_own(std::span<std::uint8_t> event, const Identities& identities, std::uint64_t slice) {
  if (event.size() < sizeof(std::uint16_t)) return;
  const auto found = identities.find(load<std::uint16_t>(event.data()));
  if (found == identities.end()) return;
  for (const auto& [kind, offset, size] : found->second) {
    if (offset + size > event.size()) continue;
    std::uint8_t* const at = event.data() + offset;
    switch (kind) {
      case Identity::Kind::address:
        add<std::uint64_t>(at, (slice << 40) + slice * kLines);
        break;
      case Identity::Kind::cookie:
        add<std::uint64_t>(at, slice << 40);
        break;
      case Identity::Kind::pid:
        add<std::uint32_t>(at, slice * 100'000);
        break;
      case Identity::Kind::ip:
        *at = static_cast<std::uint8_t>(*at ^ slice);
        break;
    }
  }
}

// Which pages of a CPU begin within a slice of time.
struct Pages {
  std::size_t first = 0;
  std::size_t end = 0;
};

void spread(const char* from, const char* to, std::uint64_t slices) {
  const auto trace = stream::Trace::open(from);
  if (!trace) throw std::runtime_error("cannot open the capture");
  const tracedat::Reader& file = trace->file();
  const std::vector<tracedat::CpuData>& cpus = trace->buffer().cpus;
  const std::size_t page_size = trace->buffer().page_size;
  const auto page_time = [&](const tracedat::CpuData& cpu, std::size_t page) {
    return load<std::uint64_t>(cpu.stored.data() + page * page_size);
  };
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
  for (const tracedat::CpuData& cpu : cpus) {
    const std::size_t pages = cpu.stored.size() / page_size;
    if (pages == 0) throw std::runtime_error("a CPU without events");
    first = std::max(first, page_time(cpu, 0));
    last = std::min(last, page_time(cpu, pages - 1));
  }
  const std::uint64_t length = (last - first) / slices;

  std::vector<Pages> parts;
  std::vector<tracedat::CpuExtent> extents;
  for (std::uint64_t slice = 0; slice < slices; ++slice) {
    for (const tracedat::CpuData& cpu : cpus) {
      Pages part;
      const std::size_t pages = cpu.stored.size() / page_size;
      const std::uint64_t begin = first + slice * length;
      while (part.first < pages && page_time(cpu, part.first) < begin) ++part.first;
      part.end = part.first;
      while (part.end < pages && page_time(cpu, part.end) < begin + length) ++part.end;
      extents.push_back({static_cast<CpuId>(parts.size()), (part.end - part.first) * page_size});
      parts.push_back(part);
    }
  }

  tracedat::CaptureText text;
  text.page_size = static_cast<std::uint32_t>(page_size);
  text.cpu_count = static_cast<std::uint32_t>(extents.size());
  for (const tracedat::FormatText& format : file.formats()) {
    auto system = std::find_if(text.systems.begin(), text.systems.end(),
                               [&](const auto& known) { return known.system == format.system; });
    if (system == text.systems.end()) {
      system = text.systems.insert(system, {std::string(format.system), {}});
    }
    system->formats.emplace_back(format.text);
  }
  text.kallsyms = file.kallsyms();
  text.cmdlines = file.cmdlines();
  text.clock = trace->clock();
  text.trace_clock = fmt::format("[{}]", trace->clock());
  text.options.push_back({tracedat::OptionId::uname, std::string(file.uname())});
  const auto layout = tracedat::lay_out(text, extents, tracedat::FileVersion::v7);
  if (!layout) throw std::runtime_error(layout.error().message);

  // Mode 0600: it is a recording of this machine.
  const Fd out(open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out) throw std::runtime_error("cannot create the output");
  write_all(out.get(), layout->head.data(), layout->head.size(), 0);
  const Identities identities = identities_of(file);
  std::vector<std::uint8_t> page(page_size);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t slice = i / cpus.size();
    const std::uint8_t* const pages = cpus[i % cpus.size()].stored.data();
    std::uint64_t offset = layout->cpus[i].offset;
    for (std::size_t index = parts[i].first; index < parts[i].end; ++index) {
      std::memcpy(page.data(), pages + index * page_size, page_size);
      change_page(page, 0 - slice * length,
                  [&](std::span<std::uint8_t> event) { make_own(event, identities, slice); });
      write_all(out.get(), page.data(), page_size, offset);
      offset += page_size;
    }
  }
}

}  // namespace
}  // namespace skbtrail::test

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    skbtrail::test::spread(argv[1], argv[2], std::stoull(argv[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_spread: {}\n", error.what());
    return 1;
  }
  return 0;
}
