// Makes inputs of fuzz_trackers from a capture: script_writer CAPTURE KERNEL SKIP COUNT >INPUT
// writes COUNT events behind the first SKIP of those that scripts have. KERNEL: "6.1", "6.12",
// "6.18".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "stream/common_fields.h"
#include "stream/trace.h"
#include "support/event_script.h"

namespace {

using namespace skbtrail;

std::optional<EventFormat> format_of(const stream::EventCatalog& catalog, std::uint16_t id) {
  const std::string name = catalog.name(id);
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const tracedat::FormatText* text = catalog.find(
      {std::string_view(name).substr(0, colon), std::string_view(name).substr(colon + 1)});
  if (text == nullptr) return std::nullopt;
  const auto format = parse_event_format(text->system, text->text);
  return format ? std::optional(*format) : std::nullopt;
}

void write_script(const stream::Trace& trace, test::ScriptWriter& writer, std::size_t skip,
                  std::size_t count) {
  const stream::CommonFields common(trace.catalog());
  std::map<std::uint16_t, std::optional<EventFormat>> formats;
  test::ScriptWriter unused = writer;
  stream::Merge merge = trace.events();
  for (RawEvent event; count > 0 && merge.next(event);) {
    auto [known, is_new] = formats.try_emplace(event.id);
    if (is_new) known->second = format_of(trace.catalog(), event.id);
    if (!known->second || event.size < common.needed()) continue;
    test::ScriptWriter& to = skip > 0 ? unused : writer;
    if (event.lost_before != 0) to.add_gap(event.cpu);
    if (!to.add(*known->second, common.header(event), event)) continue;
    --(skip > 0 ? skip : count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s CAPTURE KERNEL SKIP COUNT >INPUT\n", argv[0]);
    return 1;
  }
  const auto trace = stream::Trace::open(argv[1]);
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 1;
  }
  const track::Comms comms(trace->file().cmdlines());
  Symbols symbols(trace->file().kallsyms());
  test::ScriptWriter writer(argv[2], comms, symbols);
  write_script(*trace, writer, std::strtoul(argv[3], nullptr, 10),
               std::strtoul(argv[4], nullptr, 10));
  const std::string& script = writer.script();
  return std::fwrite(script.data(), 1, script.size(), stdout) == script.size() ? 0 : 1;
}
