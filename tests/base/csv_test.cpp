// CSV with a header: cells by name, each with its place, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/csv.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

TEST_CASE("cells are found by the name of their column and know their place", "[base][csv]") {
  const CsvTable table("a,b,c\n1,\"x, \"\"y\"\"\",0.5\r\n\n2,,1e3\n", "t.csv", {"a", "c"});
  REQUIRE(table.rows() == 2); // an empty line is no row
  CHECK(table.at(0, "b").text == "x, \"y\"");
  CHECK(table.at(0, "b").where == Where{"t.csv", 2, 3});
  CHECK(table.at(0, "c").number() == near(0.5));
  CHECK(table.at(1, "a").where == Where{"t.csv", 4, 1});
  CHECK(table.at(1, "a").integer(0, 2) == 2);
  CHECK(table.at(1, "b").text.empty());
  CHECK(table.at(1, "c").number(0, 1000) == near(1000));
}

TEST_CASE("the columns of a file are known by its first line alone", "[base][csv]") {
  using Names = std::vector<std::string>;
  CHECK(csv_header("\xEF\xBB\xBF\"a\", b\tc ,d\r\n1,2\n") == Names{"a", "bc", "d"});
  CHECK(csv_header("a") == Names{"a"});
  CHECK(csv_header("a,,\n\"") == Names{"a", "", ""});
  CHECK(csv_header("") == Names{""});
}

TEST_CASE("a cell's parts know their places too", "[base][csv]") {
  const CsvTable table("a,list\n1,10x2;20x3\n", "t.csv", {"list"});
  const std::vector<CsvCell> parts = table.at(0, "list").split(';');
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].text == "20x3");
  CHECK(parts[1].where == Where{"t.csv", 2, 8});
  CHECK(CsvCell{}.split(';').empty());
}

TEST_CASE("bad CSV is refused with the place and the reason", "[base][csv][bad-input]") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(CsvTable(text, "t.csv", {"a"}), Catch::StartsWith("t.csv:" + why));
  };
  refused("", "1:1: an empty file");
  refused("b,c\n", "1:1: no column 'a'");
  refused("a,b,a\n", "1:5: a second column 'a'");
  refused("a,b\n1,2\n1\n", "3:1: 1 cells; allowed: 2");
  refused("a,b\n1,2,3\n", "2:1: 3 cells; allowed: 2");
  refused("a,b\n1,\"2\n", "2:3: a quote is not closed; allowed: ");
  refused("a,b\n\"1\"2,3\n", "2:1: text follows a closed quote");
  CHECK(CsvCell{"+0.5"}.number() == 0.5);
  CHECK_THROWS_WITH(CsvCell{"+-1"}.number(), Catch::Contains("not a finite number"));
  const CsvTable table("a,b\n1,two\n-3,1.5\n", "t.csv", {"a", "b"});
  CHECK_THROWS_WITH(table.at(0, "b").number(), Catch::StartsWith("t.csv:2:3: 'two' is not a"));
  CHECK_THROWS_WITH(table.at(1, "a").number(),
                    Catch::StartsWith("t.csv:3:1: '-3' is out of range; allowed: 0 or more"));
  CHECK_THROWS_WITH(table.at(1, "b").number(0, 1), Catch::Contains("allowed: 0 to 1"));
  CHECK_THROWS_WITH(table.at(1, "b").integer(0, 9), Catch::StartsWith("t.csv:3:4:"));
}

TEST_CASE("cells that are written read back as they were", "[base][csv]") {
  CHECK(csv_cell("plain; text") == "plain; text");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell(0.1) == "0.1");
  CHECK(csv_cell(1.0 / 3) == "0.3333333333333333");
  for (const std::string text :
       {"", "a,b", "say \"x\"", "two\nlines", "\r", "=1+1", "-x", "'=1", "''@", "'", "'plain"}) {
    const CsvTable table("a,b\n" + csv_cell(text) + ",1\n", "t.csv", {"a"});
    CHECK(table.at(0, "a").text == text);
  }
}

TEST_CASE("a text is never a formula of a spreadsheet, and a number always a number", "[base][csv]") {
  CHECK(csv_cell("=HYPERLINK(\"http://x\",1)") == "\"'=HYPERLINK(\"\"http://x\"\",1)\"");
  for (const std::string text : {"=1", "+x", "-1+2", "-inf", "@x", "\tx"}) {
    CHECK(csv_cell(text) == "'" + text);
  }
  CHECK(csv_cell("\rx") == "\"'\rx\"");
  CHECK(csv_cell("a=1") == "a=1");
  CHECK(csv_cell("-1.5e-3") == "-1.5e-3"); // a number, as the values of a sweep's axis are
  CHECK(csv_cell("+1") == "+1");
  CHECK(csv_cell("'quoted'") == "'quoted'");
  CHECK(csv_cell(-1.5) == "-1.5");
}

TEST_CASE("CSV that is not UTF-8 is refused with its place", "[base][csv][bad-input]") {
  CHECK_THROWS_WITH(CsvTable("a,b\n1,x\xff\n", "t.csv", {"a"}),
                    Catch::StartsWith("t.csv:2:4: the byte 0xff is not UTF-8"));
}

} // namespace
} // namespace stagecraft
