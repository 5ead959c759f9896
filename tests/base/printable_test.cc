#include "base/printable.h"

#include <gtest/gtest.h>

namespace skbtrail {
namespace {

TEST(Printable, valid_text_stays_as_it_is) {
  for (const char* text : {"", "nginx", "kworker/0:1-mm", "büro", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xc2\xa0"}) {
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, control_characters_become_question_marks) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(printable("a\nb\tc\x7f"), "a?b?c?");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\xc2\x9b\x33m"), "?3m");  // CSI in one character
  EXPECT_FALSE(is_printable("\x1b"));
  EXPECT_FALSE(is_printable("\xc2\x9b"));
}

TEST(Printable, bytes_that_are_no_utf8_become_replacement_characters) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(printable("\xff\x1b[31m"), mark + "?[31m");
  EXPECT_EQ(printable("fourteen bytes\xc3"), "fourteen bytes" + mark);  // cut by the kernel
  EXPECT_EQ(printable("\xe2\x82"), mark + mark);
  EXPECT_EQ(printable("\xc0\xaf"), mark + mark);             // "/", longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80").size(), 4 * mark.size());
  EXPECT_FALSE(is_printable("a\x80"));
}

}  // namespace
}  // namespace skbtrail
