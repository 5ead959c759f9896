#include "skbtrail/decoder.h"

#include <gmock/gmock.h>

#include "support/page_builder.h"

namespace skbtrail::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Address : std::uint64_t {};

struct Numbers {
  std::int64_t value = 0;
  static constexpr auto fields = std::tuple{field("value", &Numbers::value)};
};

struct Pointer {
  Address address{};
  std::uint16_t narrow = 0;
  static constexpr auto fields =
      std::tuple{field("address", &Pointer::address), field("narrow", &Pointer::narrow)};
};

struct WithText {
  Text text;
  static constexpr auto fields = std::tuple{field("text", &WithText::text)};
};

struct Bytes {
  std::span<const std::uint8_t> bytes;
  static constexpr auto fields = std::tuple{field("bytes", &Bytes::bytes)};
};

struct Optional {
  std::int32_t always = 0;
  std::optional<std::uint32_t> sometimes;
  std::optional<Text> text;
  static constexpr auto fields =
      std::tuple{field("always", &Optional::always), field("sometimes", &Optional::sometimes),
                 field("text", &Optional::text)};
};

FieldFormat number(std::string name, std::uint32_t offset, std::uint32_t size, bool is_signed) {
  FieldFormat format;
  format.name = std::move(name);
  format.type = "int";
  format.offset = offset;
  format.size = size;
  format.is_signed = is_signed;
  return format;
}

FieldFormat array(std::string name, std::uint32_t offset, std::uint32_t size) {
  FieldFormat format = number(std::move(name), offset, size, true);
  format.type = "char[]";
  format.is_array = true;
  return format;
}

FieldFormat located(std::string name, std::uint32_t offset, bool relative) {
  FieldFormat format = number(std::move(name), offset, 4, true);
  format.type = relative ? "__rel_loc char[]" : "__data_loc char[]";
  (relative ? format.is_rel_loc : format.is_data_loc) = true;
  return format;
}

EventFormat format_of(std::vector<FieldFormat> fields) {
  return {"test", "event", 1, std::move(fields), ""};
}

RawEvent raw(const std::string& bytes) {
  return {0,
          reinterpret_cast<const std::uint8_t*>(bytes.data()),
          static_cast<std::uint32_t>(bytes.size()),
          1,
          0,
          0};
}

// Binds and decodes; a failure of either fails the test.
template <class Event>
Event decode(const EventFormat& format, const std::string& bytes) {
  Event event;
  const auto decoder = Decoder<Event>::bind(format);
  EXPECT_TRUE(decoder.has_value()) << (decoder ? "" : decoder.error().message);
  if (decoder) {
    EXPECT_TRUE(decoder->decode(raw(bytes), event));
  }
  return event;
}

template <class Event>
std::string bind_error(const EventFormat& format) {
  const auto decoder = Decoder<Event>::bind(format);
  if (decoder) return "";
  EXPECT_EQ(decoder.error().kind, ErrorKind::unsupported);
  return decoder.error().message;
}

TEST(Decoder, every_width_with_and_without_sign) {
  const std::string bytes = "12345678\xfe\xff\xff\xff\xff\xff\xff\xff";
  for (const std::uint32_t size : {1U, 2U, 4U, 8U}) {
    EXPECT_EQ(decode<Numbers>(format_of({number("value", 8, size, true)}), bytes).value, -2)
        << size;
    const auto expected = size == 8 ? std::int64_t{-2} : (std::int64_t{1} << (size * 8)) - 2;
    EXPECT_EQ(decode<Numbers>(format_of({number("value", 8, size, false)}), bytes).value, expected)
        << size;
  }
}

TEST(Decoder, enums_and_narrow_members) {
  const std::string bytes("\x00\x88\x77\x66\x55\x44\x33\xff\x34\x12\x78\x56", 12);
  const auto event = decode<Pointer>(
      format_of({number("address", 0, 8, false), number("narrow", 8, 4, false)}), bytes);
  EXPECT_EQ(event.address, Address{0xff33445566778800});
  EXPECT_EQ(event.narrow, 0x1234);
}

TEST(Decoder, char_arrays_end_at_the_first_nul_or_at_their_size) {
  const EventFormat format = format_of({array("text", 2, 6)});
  EXPECT_EQ(decode<WithText>(format, std::string("..abc\0xyz", 9)).text, "abc");
  EXPECT_EQ(decode<WithText>(format, "..abcdefgh").text, "abcdef");
}

TEST(Decoder, byte_arrays_keep_their_zeros) {
  EXPECT_THAT(
      decode<Bytes>(format_of({array("bytes", 1, 3)}), std::string("\x09\x01\x00\x02", 4)).bytes,
      ElementsAre(1, 0, 2));
}

std::string located_at(std::uint16_t offset, std::uint16_t size, const std::string& rest) {
  std::string bytes = "head";
  test::put(bytes, static_cast<std::uint32_t>(offset | size << 16));
  return bytes + rest;
}

TEST(Decoder, data_loc_counts_from_the_start_of_the_record) {
  const EventFormat format = format_of({located("text", 4, false)});
  EXPECT_EQ(decode<WithText>(format, located_at(10, 5, std::string("__eth0\0", 7))).text, "eth0");
  EXPECT_EQ(decode<WithText>(format, located_at(10, 3, "__eth0")).text, "eth");
  EXPECT_EQ(decode<WithText>(format, located_at(10, 0, "__eth0")).text, "");
}

TEST(Decoder, rel_loc_counts_from_the_end_of_its_field) {
  const EventFormat format = format_of({located("text", 4, true)});
  EXPECT_EQ(decode<WithText>(format, located_at(2, 4, "__eth0")).text, "eth0");
}

TEST(Decoder, a_loc_that_points_outside_the_record_gives_an_empty_string) {
  for (const bool relative : {false, true}) {
    const EventFormat format = format_of({located("text", 4, relative)});
    const std::uint16_t base = relative ? 0 : 8;
    EXPECT_EQ(decode<WithText>(format, located_at(base + 0, 4, "eth0")).text, "eth0");
    EXPECT_EQ(decode<WithText>(format, located_at(base + 0, 5, "eth0")).text, "");
    EXPECT_EQ(decode<WithText>(format, located_at(base + 1, 4, "eth0")).text, "");
    EXPECT_EQ(decode<WithText>(format, located_at(base + 5, 0, "eth0")).text, "");
    EXPECT_EQ(decode<WithText>(format, located_at(0xffff, 0xffff, "eth0")).text, "");
  }
}

TEST(Decoder, optional_fields_are_there_or_not) {
  const std::string bytes("\x01\0\0\0\x02\0\0\0ab\0\0", 12);
  const auto without = decode<Optional>(format_of({number("always", 0, 4, true)}), bytes);
  EXPECT_EQ(without.always, 1);
  EXPECT_FALSE(without.sometimes.has_value());
  EXPECT_FALSE(without.text.has_value());
  const auto with =
      decode<Optional>(format_of({number("always", 0, 4, true), number("sometimes", 4, 4, false),
                                  array("text", 8, 4)}),
                       bytes);
  EXPECT_EQ(with.sometimes, 2U);
  EXPECT_EQ(with.text, "ab");
}

// The struct may be used again for the next record.
TEST(Decoder, an_absent_optional_field_is_reset) {
  const auto decoder = Decoder<Optional>::bind(format_of({number("always", 0, 4, true)}));
  ASSERT_TRUE(decoder.has_value());
  Optional event;
  event.sometimes = 5;
  EXPECT_TRUE(decoder->decode(raw("1234"), event));
  EXPECT_FALSE(event.sometimes.has_value());
}

TEST(Decoder, a_missing_required_field_is_named) {
  EXPECT_THAT(bind_error<Optional>(format_of({number("sometimes", 0, 4, false)})),
              HasSubstr("test:event has no field \"always\""));
  EXPECT_THAT(bind_error<WithText>(format_of({})), HasSubstr("\"text\""));
}

TEST(Decoder, a_field_of_another_kind_is_refused_and_named) {
  EXPECT_THAT(bind_error<Numbers>(format_of({number("value", 0, 3, true)})),
              HasSubstr("\"value\""));
  EXPECT_THAT(bind_error<Numbers>(format_of({array("value", 0, 4)})), HasSubstr("\"value\""));
  EXPECT_THAT(bind_error<Numbers>(format_of({located("value", 0, false)})), HasSubstr("\"value\""));
  EXPECT_THAT(bind_error<WithText>(format_of({number("text", 0, 8, false)})),
              HasSubstr("\"text\""));
  FieldFormat wide = located("text", 0, false);
  wide.size = 8;
  EXPECT_THAT(bind_error<WithText>(format_of({wide})), HasSubstr("\"text\""));
}

TEST(Decoder, a_record_shorter_than_its_fields_is_refused) {
  const auto decoder = Decoder<Pointer>::bind(
      format_of({number("address", 0, 8, false), number("narrow", 8, 2, false)}));
  ASSERT_TRUE(decoder.has_value());
  Pointer event;
  EXPECT_TRUE(decoder->decode(raw("0123456789"), event));
  EXPECT_FALSE(decoder->decode(raw("012345678"), event));
  EXPECT_FALSE(decoder->decode(raw(""), event));
}

// The end of a field must not wrap around 32 bits.
TEST(Decoder, an_offset_near_the_end_of_32_bits_is_refused_by_every_record) {
  const auto decoder = Decoder<Numbers>::bind(format_of({number("value", 0xfffffffc, 8, false)}));
  ASSERT_TRUE(decoder.has_value());
  Numbers event;
  EXPECT_FALSE(decoder->decode(raw("0123456789"), event));
}

}  // namespace
}  // namespace skbtrail::stream
