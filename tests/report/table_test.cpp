// Text tables: alignment, widths, and bytes that a terminal must not get.
// SPDX-License-Identifier: Apache-2.0
#include "sim/report/table.hpp"
#include "sim/report/terminal.hpp"
#include "tests/catch.hpp"

using namespace stagecraft;

TEST_CASE("a table aligns its columns and leaves no blanks at line ends") {
  const Table table{{{"strategy"}, {"iteration", Align::right}, {"note"}},
                    {{{"uniform"}, {"12.30 ms"}, {"as long as it likes to be"}},
                     {{"antichain"}, {"1.5 s"}, {""}},
                     {{"optimal"}},
                     {{""}, {"2 s"}}}};
  CHECK(to_text(table, false) == "strategy   iteration  note\n"
                                 "---------  ---------  ----\n"
                                 "uniform     12.30 ms  as long as it likes to be\n"
                                 "antichain      1.5 s\n"
                                 "optimal\n"
                                 "                 2 s\n");
}

TEST_CASE("a table counts characters, not bytes") {
  const Table table{{{"a"}, {"b"}}, {{{"2.5 µs"}, {"x"}}, {{"—"}, {"y"}}}};
  CHECK(to_text(table, false) == "a       b\n"
                                 "------  -\n"
                                 "2.5 µs  x\n"
                                 "—       y\n");
}

TEST_CASE("colours change nothing but colours") {
  const Table table{{{"a"}, {"b", Align::right}}, {{{"yes", Style::good}, {"no", Style::bad}}, {{"so"}, {"10"}}}};
  CHECK(to_text(table, true) == "\x1b[1ma\x1b[0m     \x1b[1mb\x1b[0m\n"
                                "\x1b[2m---\x1b[0m  \x1b[2m--\x1b[0m\n"
                                "\x1b[32myes\x1b[0m  \x1b[31mno\x1b[0m\n"
                                "so   10\n");
}

TEST_CASE("a table without rows is its header; a row too long is a bug") {
  CHECK(to_text({{{"name"}}, {}}, false) == "name\n----\n");
  CHECK_THROWS_AS(to_text({{{"name"}}, {{{"a"}, {"b"}}}}, false), std::logic_error);
}

TEST_CASE("names end no line of a table and change no colour") {
  CHECK(to_text({{{"name"}}, {{{"two\nlines"}}, {{"\x1b[31mred"}}}}, false) ==
        "name\n----\ntwo\\x0alines\n\\x1b[31mred\n");
}

// What JSON itself does not escape in strings, DEL and above, is escaped as JSON does: a document that is printed
// remains one. The bytes below never stand in JSON's strings as they are.
TEST_CASE("a terminal gets no control bytes but line ends and our colours") {
  CHECK(printable("a\tb\n", false) == "a\tb\n");
  CHECK(printable("\x1b[31mred\x07\x7f\r", false) == "\\x1b[31mred\\x07\\u007f\\x0d");
  CHECK(printable(with_style("name", "1;32"), true) == "\x1b[1;32mname\x1b[0m");
  CHECK(printable("\x1b]0;title\x07", true) == "\\x1b]0;title\\x07");
  CHECK(printable("\x1b[2J", true) == "\\x1b[2J");
  CHECK(printable("\xc3\xa9\xc2\x9b", false) == "\xc3\xa9\\u009b"); // the eight-bit form of ESC [
  CHECK(printable("a\xe2\x80\xae"
                  "b\xff",
                  true) == "a\\u202eb\\xff"); // right to left, and no UTF-8
}
