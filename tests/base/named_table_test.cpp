// Name tables: look-up, and the nearest name to a typing error.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

struct Row {
  std::string_view name;
  int value;
};

const std::vector<Row> kTable = {{"gpipe", 1}, {"1f1b", 2}, {"interleaved", 3}};

TEST_CASE("a name finds its row", "[base][names]") {
  CHECK(find_by_name(kTable, "1f1b", "schedule", {"x"}).value == 2);
  CHECK(names_of(kTable) == std::vector<std::string>{"gpipe", "1f1b", "interleaved"});
}

TEST_CASE("an unknown name is an error that lists the known ones", "[base][names]") {
  CHECK_THROWS_WITH(find_by_name(kTable, "gpip", "schedule", {"a.yaml", 2, 5}),
                    "a.yaml:2:5: unknown schedule 'gpip'; did you mean 'gpipe'? known: gpipe, 1f1b, interleaved");
  CHECK_THROWS_WITH(find_by_name(kTable, "something else", "schedule", {"command line"}),
                    "command line: unknown schedule 'something else'; known: gpipe, 1f1b, interleaved");
  CHECK_THROWS_WITH(find_by_name(kTable, "", "schedule", {"x"}),
                    "x: unknown schedule ''; known: gpipe, 1f1b, interleaved");
  CHECK(nearest("", {"M"}).empty()); // one letter away, but nobody meant it
}

TEST_CASE("letters of another case name a row, unless two differ in nothing else", "[base][names]") {
  CHECK(find_by_name(kTable, "GPipe", "schedule", {"x"}).value == 1);
  CHECK(find_by_name(kTable, "1F1B", "schedule", {"x"}).value == 2);
  const std::vector<Row> alike = {{"Mb", 1}, {"MB", 2}};
  CHECK(find_by_name(alike, "MB", "unit", {"x"}).value == 2); // as written comes first
  CHECK_THROWS_AS(find_by_name(alike, "mb", "unit", {"x"}), InputError);
  CHECK(same_name("BF16", "bf16"));
  CHECK_FALSE(same_name("bf16", "bf1"));
}

TEST_CASE("a message tells what was written and what was meant", "[base][names]") {
  const auto message = [](std::string_view name) {
    return "a.yaml:2:5: " + unknown_name("key", name, {"seed", "set"});
  };
  CHECK(correction_in(message("sed")) == Correction{"sed", "seed"});
  CHECK(correction_in("--x: '10 Gs' has the unknown unit 'Gs'; did you mean 'B'? allowed: 'B'") ==
        Correction{"Gs", "B"});
  CHECK_FALSE(correction_in(message("something else")));
  CHECK_FALSE(correction_in(""));
}

TEST_CASE("the nearest name is within two edits, or a third of its letters", "[base][names]") {
  const std::vector<std::string> names = {"bandwidth", "latency"};
  CHECK(nearest("bandwith", names) == "bandwidth");  // a letter lost
  CHECK(nearest("bandwidht", names) == "bandwidth"); // two changed
  CHECK(nearest("bndwdt", names) == "");             // three of six lost
  CHECK(nearest("latencyxx", names) == "latency");   // two too many
  CHECK(nearest("latencyxxx", names) == "latency");  // three of ten
  CHECK(nearest("latencyxxxx", names) == "");        // four of eleven
  CHECK(nearest("xyz", names) == "");
  CHECK(nearest("lat", {}) == "");
  CHECK(nearest(std::string(65, 'a'), {std::string(65, 'a')}) == ""); // too long to be a name
}

TEST_CASE("the first of equally near names wins", "[base][names]") {
  CHECK(nearest("zb-h3", {"zb-h1", "zb-h2"}) == "zb-h1");
}

TEST_CASE("names are joined by commas", "[base][names]") {
  CHECK(join({}) == "");
  CHECK(join({"a"}) == "a");
  CHECK(join({"a", "b"}) == "a, b");
  CHECK(join({"a", "b"}, "; ") == "a; b");
}

TEST_CASE("a family's name brings its members, a missing last letter the name, and another program's word ours",
          "[base]") {
  CHECK(unknown_name("device", "H100", {"h100-pcie", "h100-sxm", "a100"}) ==
        "unknown device 'H100'; several begin so: h100-pcie, h100-sxm; known: h100-pcie, h100-sxm, a100");
  CHECK(unknown_name("platform", "dgx-h10", {"dgx-h100", "dgx-h100-cluster"}) ==
        "unknown platform 'dgx-h10'; did you mean 'dgx-h100'? known: dgx-h100, dgx-h100-cluster");
  CHECK(unknown_name("precision", "bfloat16", {"fp32", "bf16"}) ==
        "unknown precision 'bfloat16'; did you mean 'bf16'? known: fp32, bf16");
}

} // namespace
} // namespace stagecraft
