// Our format parser against libtraceevent's on every format we can get hold of.
#include <fmt/format.h>

#include "skbtrail/event_format.h"

#include <event-parse.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <random>

#include "event/net.h"
#include "skbtrail/decoder.h"
#include "stream/event_catalog.h"
#include "support/files.h"
#include "support/oracle.h"
#include "tracedat/reader.h"

namespace skbtrail {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct FreeTep {
  void operator()(tep_handle* tep) const { tep_free(tep); }
};

// "name offset size flags" of every field, as libtraceevent sees it; empty when it refuses the
// text.
std::vector<std::string> fields_of_tep(std::string_view system, std::string_view text,
                                       EventFormat& facts) {
  const std::unique_ptr<tep_handle, FreeTep> tep(tep_alloc());
  tep_set_loglevel(TEP_LOG_NONE);  // of print formats it cannot parse
  tep_event* event = nullptr;
  tep_parse_format(tep.get(), &event, text.data(), text.size(), std::string(system).c_str());
  std::vector<std::string> fields;
  if (event == nullptr) return fields;
  facts.name = event->name;
  facts.id = static_cast<std::uint16_t>(event->id);
  for (tep_format_field* list : {event->format.common_fields, event->format.fields}) {
    for (const tep_format_field* field = list; field != nullptr; field = field->next) {
      const auto flag = [field](unsigned long bit) { return (field->flags & bit) != 0; };
      const bool dynamic = flag(TEP_FIELD_IS_DYNAMIC);
      fields.push_back(fmt::format("{} at {} size {}{}{}{}{}", field->name, field->offset,
                                   field->size, flag(TEP_FIELD_IS_SIGNED) ? " signed" : "",
                                   flag(TEP_FIELD_IS_ARRAY) && !dynamic ? " array" : "",
                                   dynamic && !flag(TEP_FIELD_IS_RELATIVE) ? " data_loc" : "",
                                   flag(TEP_FIELD_IS_RELATIVE) ? " rel_loc" : ""));
    }
  }
  return fields;
}

std::vector<std::string> our_fields(const EventFormat& format) {
  std::vector<std::string> fields;
  for (const FieldFormat& field : format.fields) {
    fields.push_back(fmt::format("{} at {} size {}{}{}{}{}", field.name, field.offset, field.size,
                                 field.is_signed ? " signed" : "", field.is_array ? " array" : "",
                                 field.is_data_loc ? " data_loc" : "",
                                 field.is_rel_loc ? " rel_loc" : ""));
  }
  return fields;
}

void expect_same_as_tep(std::string_view system, std::string_view text) {
  const auto ours = parse_event_format(system, text);
  ASSERT_TRUE(ours.has_value()) << ours.error().message;
  EventFormat facts;
  const std::vector<std::string> theirs = fields_of_tep(system, text, facts);
  ASSERT_FALSE(theirs.empty()) << "libtraceevent refuses\n" << text;
  EXPECT_EQ(our_fields(*ours), theirs) << system << ":" << ours->name;
  EXPECT_EQ(ours->name, facts.name);
  EXPECT_EQ(ours->id, facts.id);
  EXPECT_EQ(ours->system, system);
}

TEST(EventFormat, equals_libtraceevent_on_every_format_of_every_capture) {
  for (const fs::path& capture : test::captures()) {
    const auto reader = tracedat::Reader::open(capture);
    ASSERT_TRUE(reader.has_value());
    EXPECT_GT(reader->formats().size(), 20U) << capture;
    for (const tracedat::FormatText& format : reader->formats()) {
      expect_same_as_tep(format.system, format.text);
    }
  }
}

// Every SYSTEM/EVENT below `folder` whose file is `name`, or SYSTEM/*.format when `name` is empty.
int compare_folder(const fs::path& folder, const std::string& name) {
  int compared = 0;
  for (const auto& system : fs::directory_iterator(folder)) {
    if (!system.is_directory()) continue;
    for (const auto& event : fs::directory_iterator(system)) {
      const fs::path file = name.empty() ? event.path() : event.path() / name;
      if (!fs::is_regular_file(file)) continue;
      expect_same_as_tep(system.path().filename().string(), test::read_file(file));
      ++compared;
    }
  }
  return compared;
}

TEST(EventFormat, equals_libtraceevent_on_the_formats_of_three_kernels) {
  for (const char* kernel : {"6.1", "6.12", "6.18"}) {
    EXPECT_GT(compare_folder(test::data_file("formats") / kernel, ""), 80) << kernel;
  }
}

TEST(EventFormat, equals_libtraceevent_on_every_format_of_this_kernel) {
  const fs::path events = "/sys/kernel/tracing/events";
  std::error_code error;
  if (!fs::exists(events / "sched/sched_switch/format", error)) {
    GTEST_SKIP() << events << " cannot be read: "
                 << (error ? error.message() : "tracefs is not mounted, or only root may read it");
  }
  const int compared = compare_folder(events, "format");
  EXPECT_GT(compared, 100);
  RecordProperty("formats", compared);
}

TEST(EventFormat, types_are_kept_as_written) {
  const auto format = parse_event_format(
      "net", test::read_file(test::data_file("formats/6.18/net/netif_receive_skb.format")));
  ASSERT_TRUE(format.has_value());
  EXPECT_EQ(format->find("skbaddr")->type, "void *");
  EXPECT_EQ(format->find("len")->type, "unsigned int");
  EXPECT_EQ(format->find("name")->type, "__data_loc char[]");
  EXPECT_EQ(format->find("nothing"), nullptr);
  EXPECT_THAT(format->print_format, testing::StartsWith("\"dev=%s"));
}

// ------------------------------------------------------------------------------ symbolic names

std::map<std::int64_t, std::string> drop_reasons(const fs::path& capture) {
  const auto reader = tracedat::Reader::open(capture);
  if (!reader) return {};
  const stream::EventCatalog catalog(reader->formats());
  const tracedat::FormatText* text = catalog.find({"skb", "kfree_skb"});
  if (text == nullptr) return {};
  return symbolic_names(*parse_event_format(text->system, text->text), "reason");
}

TEST(SymbolicNames, drop_reasons_are_numbered_differently_by_every_kernel) {
  const auto k61 = drop_reasons(test::data_file("6.1-udp_nic.dat"));
  EXPECT_THAT(k61, Contains(Pair(1, "NOT_SPECIFIED")));
  EXPECT_THAT(k61, Contains(Pair(2, "NO_SOCKET")));
  const auto k612 = drop_reasons(test::data_file("6.12-pingpong_lo.dat"));
  EXPECT_THAT(k612, Contains(Pair(2, "NOT_SPECIFIED")));
  EXPECT_THAT(k612, Contains(Pair(3, "NO_SOCKET")));
  const std::string text = test::read_file(test::data_file("formats/6.18/skb/kfree_skb.format"));
  const auto k618 = symbolic_names(*parse_event_format("skb", text), "reason");
  EXPECT_THAT(k618, Contains(Pair(2, "NOT_SPECIFIED")));
  // Not one of the list is passed over.
  const std::string list = text.substr(text.find("__print_symbolic"));
  EXPECT_EQ(k618.size(), static_cast<std::size_t>(std::count(list.begin(), list.end(), '{')));
  EXPECT_NE(k618, k612);
}

std::map<std::int64_t, std::string> names_of(const std::string& print_format) {
  return symbolic_names({"a", "b", 1, {}, print_format}, "x");
}

TEST(SymbolicNames, numbers_in_decimal_hex_and_below_zero) {
  EXPECT_THAT(
      names_of("\"%s\", __print_symbolic(REC->x, { 0x10, \"A\" }, {-1,\"B\"}, { 7, \"C,}\" })"),
      testing::ElementsAre(Pair(-1, "B"), Pair(7, "C,}"), Pair(16, "A")));
}

TEST(SymbolicNames, of_the_field_that_was_asked_for) {
  EXPECT_THAT(names_of("__print_symbolic(REC->xx, { 1, \"wrong\" }), "
                       "__print_symbolic(REC->x, { 1, \"right\" })"),
              testing::ElementsAre(Pair(1, "right")));
  EXPECT_THAT(names_of("__print_flags(REC->x, \"|\", { 1, \"A\" })"), IsEmpty());
  EXPECT_THAT(names_of(""), IsEmpty());
  EXPECT_THAT(names_of("__print_symbolic(REC->x,"), IsEmpty());
}

// ------------------------------------------------------------------------------ damaged texts

TEST(EventFormat, what_is_missing_is_named) {
  const auto error = [](std::string_view text) {
    const auto format = parse_event_format("kitchen", text);
    return format ? "" : format.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("kitchen has no name: line"));
  EXPECT_THAT(error("name: spoon\n"), HasSubstr("no ID: line"));
  EXPECT_THAT(error("name: spoon\nID: 70000\n"), HasSubstr("no ID: line"));
  EXPECT_THAT(error("name: spoon\nID: 1\n\tfield:int x;\toffset:8;\n"), HasSubstr("field:int x"));
  EXPECT_EQ(error("name: spoon\nID: 1\n"), "");
}

// Bytes replaced, removed and repeated: an error or a format, never a crash, and nothing that a
// decoder bound to it could read beyond the record.
TEST(EventFormat, damaged_texts_never_crash) {
  const std::string text =
      test::read_file(test::data_file("formats/6.18/net/netif_receive_skb.format"));
  const std::string record(32, '\xff');
  std::mt19937 random(6);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = random() % damaged.size();
      const std::size_t count = random() % 20;
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, std::min(count, damaged.size() - 1));
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), count));
          break;
        default:
          damaged[at] = "0123456789;:[]{}\"\n"[random() % 18];
      }
    }
    const auto format = parse_event_format("net", damaged);
    if (!format) continue;
    symbolic_names(*format, "reason");
    const auto decoder = Decoder<NetifReceiveSkb>::bind(*format);
    if (!decoder) continue;
    // Exactly as large as it says, so that a sanitizer sees the first byte beyond.
    const std::vector<std::uint8_t> bytes(record.begin(), record.end());
    NetifReceiveSkb event;
    const RawEvent raw{0, bytes.data(), static_cast<std::uint32_t>(bytes.size()), 1, 0, 0};
    if (decoder->decode(raw, event)) {
      EXPECT_LE(event.device.view().size(), bytes.size());
    }
  }
}

// include/trace/events/sched.h of each kernel.
TEST(FlagNames, states_of_sched_switch) {
  for (const char* kernel : {"6.1", "6.12", "6.18"}) {
    const std::string text =
        test::read_file(test::data_file("formats") / kernel / "sched" / "sched_switch.format");
    const auto names = flag_names(*parse_event_format("sched", text), "prev_state");
    EXPECT_THAT(names, testing::ElementsAre(Pair(1, "S"), Pair(2, "D"), Pair(4, "T"), Pair(8, "t"),
                                            Pair(0x10, "X"), Pair(0x20, "Z"), Pair(0x40, "P"),
                                            Pair(0x80, "I")))
        << kernel;
  }
}

TEST(FlagNames, none_where_the_text_ends_early) {
  const auto names = [](const std::string& print_format) {
    return flag_names({"a", "b", 1, {}, print_format}, "x");
  };
  EXPECT_THAT(names(""), IsEmpty());
  EXPECT_THAT(names("__print_flags(REC->x"), IsEmpty());
  EXPECT_THAT(names("__print_flags(REC->x, \""), IsEmpty());
  EXPECT_THAT(names("__print_flags(REC->x, \"|\", { 0x1, \"S"), IsEmpty());
  EXPECT_THAT(names("__print_flags(REC->x & 0xff, \"|\", { 0x1, \"S\" })"),
              testing::ElementsAre(Pair(1, "S")));
}

}  // namespace
}  // namespace skbtrail
