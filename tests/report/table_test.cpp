// Text tables: alignment, widths, and bytes that a terminal must not get.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

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

namespace {

Table runs() {
  return {
      {{"strategy"}, {"iteration", Align::right}, {"bubble", Align::right}, {"peak memory", Align::right}, {"remarks"}},
      {{{"uniform"}, {"900.0 ms"}, {"10.0 %"}, {"1.5 GiB"}, {"the same split as parameters"}},
       {{"optimal"}, {"1.100 s"}, {"2.0 %"}, {"900.0 MiB"}, {""}},
       {{"single"}, {"infeasible"}, {""}, {""}, {"needs 40.00 GiB"}}}};
}

} // namespace

TEST_CASE("columns that do not fit are named below the table, and texts at the end are cut") {
  // 8 + 2 + 10 are taken, the next column needs 8 more, and 24 are kept for the texts behind a gap of 2.
  CHECK(to_text(runs(), TableView{.width = 46}) == "strategy   iteration  remarks\n"
                                                   "--------  ----------  -------\n"
                                                   "uniform     900.0 ms  the same split as param…\n"
                                                   "optimal      1.100 s\n"
                                                   "single    infeasible  needs 40.00 GiB\n"
                                                   "(to fit 46 columns without bubble, peak\n"
                                                   "memory, and with 'remarks' cut; a wider\n"
                                                   "terminal shows everything)\n");
  const std::string whole = to_text(runs(), false);
  CHECK(to_text(runs(), TableView{.width = 200}) == whole);
  CHECK(to_text(runs(), TableView{.width = 46, .columns = {"all"}}) == whole);
}

TEST_CASE("a table that is as wide as the terminal is whole, and one column more is not") {
  std::size_t widest = 0;
  std::istringstream lines(to_text(runs(), false));
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, display_width(line));
  }
  CHECK(to_text(runs(), TableView{.width = widest}) == to_text(runs(), false));
  CHECK(to_text(runs(), TableView{.width = widest - 1}) != to_text(runs(), false));
}

TEST_CASE("a text of the last column goes on below where the view says so") {
  CHECK(to_text({{{"name"}, {"what it is"}}, {{{"optimal"}, {"the least bottleneck of all pipelines of stages"}}}},
                TableView{.width = 36, .wrap = true}) == "name     what it is\n"
                                                         "-------  ----------\n"
                                                         "optimal  the least bottleneck of all\n"
                                                         "         pipelines of stages\n");
}

TEST_CASE("columns are chosen by their titles, in the order asked for") {
  CHECK(to_text(runs(), TableView{.width = 40, .columns = {"Peak-Memory", "strategy"}}) == "peak memory  strategy\n"
                                                                                           "-----------  --------\n"
                                                                                           "    1.5 GiB  uniform\n"
                                                                                           "  900.0 MiB  optimal\n"
                                                                                           "             single\n");
  CHECK_THROWS_WITH(to_text(runs(), TableView{.columns = {"bubbel"}}),
                    Catch::Contains("--columns: unknown column 'bubbel'; did you mean 'bubble'? known: strategy"));
}

TEST_CASE("rows are sorted by the size of what they show, those without a value last") {
  using Order = std::vector<std::size_t>;
  CHECK(sorted_rows(runs(), "") == Order{0, 1, 2});
  CHECK(sorted_rows(runs(), "iteration") == Order{0, 1, 2}); // 0.9 s and 1.1 s, and no time
  CHECK(sorted_rows(runs(), "-iteration") == Order{1, 0, 2});
  CHECK(sorted_rows(runs(), "bubble") == Order{1, 0, 2});
  CHECK(sorted_rows(runs(), "peak memory") == Order{1, 0, 2}); // 900 MiB are less than 1.5 GiB
  CHECK(sorted_rows(runs(), "strategy") == Order{1, 2, 0});
  CHECK(sorted_rows(runs(), "-strategy") == Order{0, 2, 1});
  const Table money{{{"price"}}, {{{"~141.89 USD"}}, {{"+15 USD"}}, {{"20.00 USD"}}}};
  CHECK(sorted_rows(money, "price") == Order{1, 2, 0});
  CHECK_THROWS_WITH(sorted_rows(runs(), "-bubbel"), Catch::Contains("--sort: unknown column 'bubbel'"));
}

TEST_CASE("a line stands for rows that are left out") {
  Table table{{{"name"}}, {{{"a"}}, {{"b"}}}, {{1, "… 3 more"}, {2, "… 4 more"}}};
  CHECK(to_text(table, false) == "name\n----\na\n… 3 more\nb\n… 4 more\n");
}

TEST_CASE("a table in Markdown shows its texts as they are") {
  CHECK(to_markdown({{{"name"}, {"n", Align::right}}, {{{"a|b_c"}, {"1"}}, {{"d"}}}}) ==
        "| name | n |\n|---|---:|\n| a\\|b\\_c | 1 |\n| d |  |\n");
  CHECK(to_markdown(runs(), {"bubble"}) == "| bubble |\n|---:|\n| 10.0 % |\n| 2.0 % |\n|  |\n");
}
