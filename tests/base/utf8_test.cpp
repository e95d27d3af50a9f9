// UTF-8: what is, what is not, where it is not, and what of it is shown in words.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/utf8.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"

namespace stagecraft {
namespace {

TEST_CASE("the first and the last code point of each length are UTF-8", "[base][utf8]") {
  const auto is = [](std::string_view text, char32_t code) {
    const CodePoint point = code_point_at(text, 0);
    CHECK(point.code == code);
    CHECK(point.bytes == text.size());
    CHECK(!first_bad_byte(text));
  };
  is(std::string_view("\0", 1), 0);
  is("\x7f", 0x7f);
  is("\xc2\x80", 0x80); // 110 00010 10 000000
  is("\xdf\xbf", 0x7ff);
  is("\xe0\xa0\x80", 0x800);
  is("\xed\x9f\xbf", 0xd7ff); // the last before the surrogates
  is("\xee\x80\x80", 0xe000); // the first after them
  is("\xef\xbf\xbf", 0xffff);
  is("\xf0\x90\x80\x80", 0x10000);
  is("\xf4\x8f\xbf\xbf", 0x10ffff);
}

TEST_CASE("what is next to a limit, cut or out of place is not UTF-8", "[base][utf8][bad-input]") {
  for (const std::string_view text : {
           "\x80", "\xbf",                                             // a continuation without a lead
           "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", // overlong: '/', U+7F, U+7FF and U+FFFF
           "\xed\xa0\x80", "\xed\xbf\xbf",                             // surrogates
           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff",         // above U+10FFFF
           "\xc3", "\xe2\x82", "\xf0\x9f\x98",                         // cut at the end
           "\xc3(", "\xe2(\xa1", "\xf0\x90(\xbc",                      // cut by another character
       }) {
    CAPTURE(text);
    CHECK(first_bad_byte(text) == 0);
    CHECK(first_bad_byte("a\xc3\xa9" + std::string(text)) == 3);
  }
}

TEST_CASE("a file that is not UTF-8 is refused with the line and the byte in it", "[base][utf8][bad-input]") {
  CHECK_NOTHROW(check_utf8("na\xc3\xafve\n", "t.csv"));
  CHECK(test::error_of([] { check_utf8("\xff", "t.csv"); }) ==
        "t.csv:1:1: the byte 0xff is not UTF-8; allowed: text in UTF-8");
  CHECK(test::error_of([] { check_utf8("a\nbc\n\xc3\xa9\xe9 is Latin 1\n", "t.csv"); }) ==
        "t.csv:3:3: the byte 0xe9 is not UTF-8; allowed: text in UTF-8");
}

TEST_CASE("controls of terminals and of the direction of text are shown in words", "[base][utf8]") {
  CHECK(with_visible_controls("na\xc3\xafve\t\xf0\x9f\x98\x80\n") == "na\xc3\xafve\t\xf0\x9f\x98\x80\n");
  CHECK(with_visible_controls("\x1b[2J\r\x7f\xc2\x9b") == "\\x1b[2J\\x0d\\u007f\\u009b");
  CHECK(with_visible_controls("a\xe2\x80\xae"
                              "b") == "a\\u202eb");
  CHECK(with_visible_controls("a\xff\xc3") == "a\\xff\\xc3");
  for (const char32_t code : {U'\x61c', U'\x200e', U'\x200f', U'\x202a', U'\x202e', U'\x2066', U'\x2069', U'\x80',
                              U'\x9f', U'\x1f', U'\x7f'}) {
    CHECK(is_control(code));
  }
  for (const char32_t code :
       {U'\x20', U'\xa0', U'\x61b', U'\x200d', U'\x2010', U'\x2029', U'\x202f', U'\x2065', U'\x206a'}) {
    CHECK(!is_control(code));
  }
}

TEST_CASE("a text within a line has no line ends", "[base][utf8]") {
  CHECK(on_one_line("a\nb\tc\xc2\x85") == "a\\x0ab\\x09c\\u0085");
}

TEST_CASE("a text in double quotes is a string of JSON and YAML", "[base][utf8]") {
  CHECK(in_double_quotes("say \"\\\" \xc3\xa9\n") == "\"say \\\"\\\\\\\" \xc3\xa9\\u000a\"");
  CHECK(in_double_quotes("\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf\x7f") == "\"\\u202e\\u2028\\ufeff\\u007f\"");
  CHECK(in_double_quotes("\xff") == "\"\xef\xbf\xbd\"");
}

TEST_CASE("an excerpt ends between two characters", "[base][utf8]") {
  CHECK(excerpt("short") == "short");
  const std::string sixty(60, 'x');
  CHECK(excerpt(sixty) == sixty);
  CHECK(excerpt(sixty + "y") == sixty);
  CHECK(excerpt("abc\xc3\xa9", 4) == "abc"); // e with an accent has two bytes
  CHECK(excerpt("abc\xc3\xa9", 5) == "abc\xc3\xa9");
  for (std::size_t most = 1; most < 4; ++most) {
    CHECK(excerpt("\xf0\x9f\x98\x80", most).empty());
  }
}

} // namespace
} // namespace stagecraft
