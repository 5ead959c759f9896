// Comparison with libtracecmd and with libtraceevent's kbuffer.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>

#include "ring/cpu_pages.h"
#include "skbtrail/decoder.h"
#include "stream/event_catalog.h"
#include "stream/merge.h"
#include "support/all_pages.h"
#include "support/kbuffer.h"
#include "support/oracle.h"
#include "support/tracecmd.h"
#include "support/typed_events.h"
#include "tracedat/reader.h"

namespace skbtrail::test {
namespace {

std::string shown(const RawEvent& event) {
  return fmt::format("cpu {} time {} id {} size {} lost {}", event.cpu, event.time, event.id,
                     event.size, event.lost_before);
}

std::string shown(const tep_record& record, int id) {
  return fmt::format("cpu {} time {} id {} size {} lost {}", record.cpu, record.ts, id, record.size,
                     record.missed_events);
}

// Both libraries say -1 for a loss of unknown size.
std::uint64_t lost(long long missed_events) {
  return missed_events < 0 ? kLostUnknown : static_cast<std::uint64_t>(missed_events);
}

// Both tell of a loss only when the page's first record is an event, not a time stamp
// (libtraceevent 1.7.1, kbuffer_missed_events()); we attach it to the first event whatever precedes
// that.
bool same_loss(std::uint64_t ours, long long theirs, bool first_record) {
  return ours == lost(theirs) || (theirs == 0 && !first_record);
}

// Record sizes are multiples of 4 for the libraries, exact for us where the page says it.
bool same_size(std::uint32_t ours, int theirs) {
  return static_cast<int>(ours) <= theirs && theirs - static_cast<int>(ours) < 4;
}

// ------------------------------------------------------------------------------ fields

template <class Number>
std::string compare_field(const Number& ours, tep_format_field* field, tep_record* record) {
  unsigned long long value = 0;
  if (tep_read_number_field(field, record->data, &value) != 0) return "is no number to tep";
  if ((field->flags & TEP_FIELD_IS_SIGNED) != 0) {
    const int shift = 64 - field->size * 8;
    value = static_cast<unsigned long long>(static_cast<long long>(value << shift) >> shift);
  }
  if (static_cast<Number>(value) == ours) return "";
  return fmt::format("is {} to us, {} to tep", static_cast<long long>(ours),
                     static_cast<long long>(value));
}

std::string compare_field(Text text, tep_format_field* field, tep_record* record) {
  int size = 0;
  const auto* raw = static_cast<const char*>(
      tep_get_field_raw(nullptr, field->event, field->name, record, &size, 0));
  if (raw == nullptr) return "is not there to tep";
  const std::string_view ours = text;
  const std::string_view theirs(raw, strnlen(raw, static_cast<std::size_t>(size)));
  return theirs == ours ? "" : fmt::format("is \"{}\" to us, \"{}\" to tep", ours, theirs);
}

std::string compare_field(std::span<const std::uint8_t> ours, tep_format_field* field,
                          tep_record* record) {
  int size = 0;
  const auto* raw = static_cast<const std::uint8_t*>(
      tep_get_field_raw(nullptr, field->event, field->name, record, &size, 0));
  if (raw == nullptr) return "is not there to tep";
  return std::ranges::equal(ours, std::span(raw, static_cast<std::size_t>(size)))
             ? ""
             : "has other bytes than to tep";
}

template <class Value>
std::string compare_field(const std::optional<Value>& ours, tep_format_field* field,
                          tep_record* record) {
  if (ours.has_value() != (field != nullptr)) return "is there to one side only";
  return ours ? compare_field(*ours, field, record) : "";
}

// Compares the fields of one event; returns the first difference.
using FieldCheck = std::function<std::string(const RawEvent&, tep_record*, std::uint64_t& values)>;

template <class Event>
FieldCheck field_check(const Decoder<Event>& decoder, tep_event* event) {
  return [decoder, event](const RawEvent& raw, tep_record* record, std::uint64_t& values) {
    Event ours;
    if (!decoder.decode(raw, ours)) return std::string("we cannot decode it");
    std::string difference;
    std::apply(
        [&](const auto&... wanted) {
          const auto check = [&](const auto& one) {
            tep_format_field* field = tep_find_any_field(event, std::string(one.name).c_str());
            const std::string found = compare_field(ours.*(one.member), field, record);
            if (!found.empty() && difference.empty()) {
              difference = fmt::format("{} {}", one.name, found);
            }
            ++values;
          };
          (check(wanted), ...);
        },
        Event::fields);
    return difference;
  };
}

std::map<int, FieldCheck> field_checks(const stream::EventCatalog& catalog, tep_handle* tep,
                                       std::string& difference) {
  std::map<int, FieldCheck> checks;
  for_each_typed_event([&]<class Event>() {
    const tracedat::FormatText* text = catalog.find(Event::name);
    tep_event* event = tep_find_event_by_name(tep, std::string(Event::name.system).c_str(),
                                              std::string(Event::name.event).c_str());
    if ((text != nullptr) != (event != nullptr)) {
      difference = fmt::format("{} is there to one side only", Event::name.event);
    }
    if (text == nullptr || event == nullptr) return;
    const auto format = parse_event_format(text->system, text->text);
    const auto decoder = Decoder<Event>::bind(*format);
    if (!decoder) {
      difference = decoder.error().message;
      return;
    }
    checks.emplace(event->id, field_check<Event>(*decoder, event));
  });
  return checks;
}

// ------------------------------------------------------------------------------ libtracecmd

struct Side {
  stream::Merge ours;
  std::map<int, FieldCheck> checks;
  tep_handle* tep;
  Comparison& result;
};

std::string compare_event(Side& side, const RawEvent& ours, tep_record* theirs) {
  const int id = tep_data_type(side.tep, theirs);
  constexpr unsigned kHeader = 16;  // of a page; the smallest page size divides all others
  const bool first = theirs->offset % 4096 == kHeader;
  const bool same = static_cast<int>(ours.cpu) == theirs->cpu && ours.time == theirs->ts &&
                    ours.id == id && same_size(ours.size, theirs->size) &&
                    same_loss(ours.lost_before, theirs->missed_events, first);
  if (!same) return fmt::format("{} to us, {} to libtracecmd", shown(ours), shown(*theirs, id));
  if (std::memcmp(ours.data, theirs->data, ours.size) != 0) return shown(ours) + ": other bytes";
  const auto check = side.checks.find(id);
  if (check == side.checks.end()) return "";
  const std::string difference = check->second(ours, theirs, side.result.values);
  return difference.empty() ? "" : fmt::format("{}: {}", shown(ours), difference);
}

int compare_next(tracecmd_input*, tep_record* record, int, void* context) {
  Side& side = *static_cast<Side*>(context);
  // libtracecmd 3.1.6 goes on whatever a callback returns: the first difference must stand.
  if (!side.result.difference.empty()) return 1;
  RawEvent event;
  if (!side.ours.next(event)) {
    side.result.difference = fmt::format("we end after {} events", side.result.events);
  } else {
    side.result.difference = compare_event(side, event, record);
  }
  if (!side.result.difference.empty()) return 1;
  ++side.result.events;
  return 0;
}

stream::Merge merge_of(const tracedat::Reader& reader, const tracedat::Buffer& buffer) {
  std::vector<ring::CpuPages> cpus;
  for (const tracedat::CpuData& cpu : buffer.cpus) {
    cpus.emplace_back(reader.pages(buffer, cpu), buffer.page_size, cpu.cpu, ring::Selection{});
  }
  return stream::Merge(std::move(cpus));
}

void compare_buffer(const tracedat::Reader& reader, const tracedat::Buffer& buffer,
                    const stream::EventCatalog& catalog, tracecmd_input* input,
                    Comparison& result) {
  tep_handle* tep = tracecmd_get_tep(input);
  Side side{merge_of(reader, buffer), field_checks(catalog, tep, result.difference), tep, result};
  if (!result.difference.empty()) return;
  tracecmd_iterate_events(input, nullptr, 0, compare_next, &side);
  RawEvent event;
  if (result.difference.empty() && side.ours.next(event)) {
    result.difference = fmt::format("libtracecmd ends after {} events", result.events);
  }
}

// The instance of this name; null when libtracecmd does not know it.
TracecmdInput instance(tracecmd_input* input, const std::string& name) {
  for (int i = 0; i < tracecmd_buffer_instances(input); ++i) {
    if (tracecmd_buffer_instance_name(input, i) == name) {
      return TracecmdInput(tracecmd_buffer_instance_handle(input, i));
    }
  }
  return nullptr;
}

// ------------------------------------------------------------------------------ kbuffer

void compare_page(ring::CpuPages& ours, kbuffer* theirs, Comparison& result) {
  unsigned long long time = 0;
  while (const void* data = kbuffer_read_event(theirs, &time)) {
    RawEvent event;
    const int size = kbuffer_event_size(theirs);
    const int missed = kbuffer_missed_events(theirs);
    if (!ours.next(event)) {
      result.difference = fmt::format("we end after {} events", result.events);
    } else if (event.data != data || event.time != time || !same_size(event.size, size) ||
               !same_loss(event.lost_before, missed, kbuffer_curr_index(theirs) == 0)) {
      result.difference =
          fmt::format("{} to us, time {} size {} lost {}{} to kbuffer", shown(event), time, size,
                      missed, event.data == data ? "" : " at another place");
    }
    if (!result.difference.empty()) return;
    ++result.events;
    kbuffer_next_event(theirs, nullptr);
  }
}

void compare_cpu(const tracedat::Reader& reader, const tracedat::Buffer& buffer,
                 const tracedat::CpuData& cpu, Comparison& result) {
  const Kbuffer theirs = make_kbuffer();
  std::vector<std::uint8_t> pages = all_pages(reader, buffer, cpu);
  ring::CpuPages ours(pages, buffer.page_size, cpu.cpu);
  for (std::size_t at = 0; at + buffer.page_size <= pages.size(); at += buffer.page_size) {
    kbuffer_load_subbuffer(theirs.get(), pages.data() + at);
    compare_page(ours, theirs.get(), result);
    if (!result.difference.empty()) return;
  }
  RawEvent event;
  if (ours.next(event)) {
    result.difference = fmt::format("kbuffer ends before cpu {} time {}", cpu.cpu, event.time);
  }
}

}  // namespace

Comparison compare_with_tracecmd(const std::filesystem::path& capture) {
  Comparison result;
  const auto reader = tracedat::Reader::open(capture);
  const TracecmdInput input(tracecmd_open(capture.c_str(), 0));
  if (!reader || !input) {
    result.difference = reader ? "libtracecmd does not open it" : reader.error().message;
    return result;
  }
  const stream::EventCatalog catalog(reader->formats());
  int named = 0;
  for (const tracedat::Buffer& buffer : reader->buffers()) {
    TracecmdInput of_instance;
    if (!buffer.name.empty()) {
      ++named;
      of_instance = instance(input.get(), buffer.name);
      if (!of_instance) {
        result.difference = "libtracecmd has no buffer " + buffer.name;
        return result;
      }
    }
    compare_buffer(*reader, buffer, catalog, of_instance ? of_instance.get() : input.get(), result);
    if (!result.difference.empty()) return result;
  }
  if (named != tracecmd_buffer_instances(input.get())) {
    result.difference = "libtracecmd has more buffers";
  }
  return result;
}

Comparison compare_with_kbuffer(const std::filesystem::path& capture) {
  Comparison result;
  const auto reader = tracedat::Reader::open(capture);
  if (!reader) {
    result.difference = reader.error().message;
    return result;
  }
  for (const tracedat::Buffer& buffer : reader->buffers()) {
    for (const tracedat::CpuData& cpu : buffer.cpus) {
      compare_cpu(*reader, buffer, cpu, result);
      if (!result.difference.empty()) return result;
    }
  }
  return result;
}

}  // namespace skbtrail::test
