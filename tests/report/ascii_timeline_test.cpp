// Timelines as pictures of text.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <regex>
#include <sstream>

#include "sim/report/ascii_timeline.hpp"
#include "tests/catch.hpp"
#include "tests/report/small_run.hpp"

using namespace stagecraft;
using test::SmallRequest;

namespace {

std::string picture(const test::SmallRun& run, const PictureOptions& options) {
  std::vector<std::string> names;
  for (std::size_t device = 0; device < run.graph.devices.size(); ++device) {
    names.push_back(std::to_string(device));
  }
  return ascii_timeline(run.graph, run.timeline, names, options);
}

// The expected picture begins with a line break, so that it stands in the source as it looks.
void check_picture(const SmallRequest& request, const PictureOptions& options, const std::string& expected) {
  CHECK("\n" + picture(test::run(request), options) == expected);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

} // namespace

TEST_CASE("1f1b in unit times is the picture of the papers") {
  check_picture({.schedule = "1f1b", .ranks = 4, .micro_batches = 8}, {.plain_numbers = true}, R"(
0  F0 F1 F2 F3 ..................B0### F4 B1### F5 B2### F6 B3### F7 B4### ...B5### ...B6### ...B7###
1  ...F0 F1 F2 ............B0### F3 B1### F4 B2### F5 B3### F6 B4### F7 B5### ...B6### ...B7### ......
2  ......F0 F1 ......B0### F2 B1### F3 B2### F4 B3### F5 B4### F6 B5### F7 B6### ...B7### ............
3  .........F0 B0### F1 B1### F2 B2### F3 B3### F4 B4### F5 B5### F6 B6### F7 B7### ..................
   +--------------+--------------+--------------+--------------+--------------+--------------+--------
   0              5              10             15             20             25             30
   F= forward   B# backward   . idle
)");
}

// Device 0 goes on with the next forward when its backward ends, at 6 s.
TEST_CASE("several iterations, one after the other") {
  check_picture({.schedule = "gpipe", .ranks = 2, .micro_batches = 1, .iterations = 3},
                {.iteration = 1, .iterations = 2, .plain_numbers = true}, R"(
0  F0 .........B0### F0 .........B0###
1  ...F0 B0### .........F0 B0### ......
   +--------------+--------------+-----
   0              5              10
   F= forward   B# backward   . idle
)");
}

TEST_CASE("backward split in two, and the optimizer") {
  check_picture({.schedule = "zb-h1", .ranks = 2, .micro_batches = 3, .optimizer = 1}, {.plain_numbers = true}, R"(
0  F0 F1 ...B0 W0 F2 B1 W1 B2 W2 OOO
1  ...F0 B0 F1 B1 W0 F2 B2 W1 W2 OOO
   +--------------+--------------+--
   0              5              10
   F= forward   B# input gradient   W+ weight gradient   O optimizer   . idle
)");
}

TEST_CASE("chunks are named where there is room") {
  const SmallRequest request{.schedule = "interleaved", .ranks = 2, .micro_batches = 2, .chunks = 2};
  check_picture(request, {.plain_numbers = true}, R"(
0  F0.0 F1.0 F0.1 F1.1 ..........B0.1##### .....B1.1##### B0.0##### B1.0#####
1  .....F0.0 F1.0 F0.1 B0.1##### F1.1 B1.1##### B0.0##### B1.0##### ..........
   +---------+---------+---------+---------+---------+---------+---------+----
   0         2         4         6         8         10        12        14
   F= forward   B# backward   . idle   F0.1 micro-batch 0, chunk 1
)");
}

TEST_CASE("times with units: columns of equal time") {
  check_picture({.schedule = "gpipe", .ranks = 2, .micro_batches = 2, .forward = 0.010, .backward = 0.020},
                {.width = 30},
                R"(
0  F0 F1= ..........B1### B0####
1  ...F0= F1 B1#### B0### .......
   +----------------+------------
   0                50 ms
   F= forward   B# backward   . idle
)");
}

TEST_CASE("two pictures on one scale: nothing follows the end of a run, and a run may go beyond the edge") {
  const SmallRequest request{.schedule = "gpipe", .ranks = 2, .micro_batches = 2};
  check_picture(request, {.until = 12, .plain_numbers = true}, R"(
0  F0 F1 .........B1### B0###
1  ...F0 F1 B1### B0### ......
   +--------------+--------------+-----
   0              5              10
   F= forward   B# backward   . idle
)");
  check_picture(request, {.until = 5, .plain_numbers = true}, R"(
0  F0 F1 .........
1  ...F0 F1 B1###
   +--------------+
   0              5
   F= forward   B# backward   . idle
)");
}

TEST_CASE("a short task shows where its column is idle, else what fills most of the column") {
  // Columns of 1 s. F of 0.02 s stands alone on device 0 and right before B on device 1; O of 0.08 s likewise.
  const SmallRequest request{
      .schedule = "gpipe", .ranks = 2, .micro_batches = 1, .forward = 0.02, .backward = 9.94, .optimizer = 0.08};
  check_picture(request, {.width = 20}, R"(
0  =.........B0#######
1  B0####### .........O
   +---------+---------+
   0         10 s      20 s
   F= forward   B# backward   O optimizer   . idle
)");
}

TEST_CASE("a task of half a column takes one from a neighbour that keeps another") {
  // Columns of 1 s. F2, 4.8 to 5.4 s, fills most of none, but B2, 5.4 to 7.2 s, can do without column 5.
  const SmallRequest request{.schedule = "accumulate", .ranks = 1, .micro_batches = 5, .forward = 0.6, .backward = 1.8};
  check_picture(request, {.width = 12}, R"(
0  =#=##=#=#=##
   +---------+-
   0         10 s
   F= forward   B# backward
)");
}

TEST_CASE("each iteration is drawn from its own start") {
  const auto run = test::run({.ranks = 3, .micro_batches = 5, .optimizer = 1, .iterations = 3});
  CHECK(picture(run, {.iteration = 2}) == picture(run, {.iteration = 0}));
  CHECK_THROWS_AS(picture(run, {.iteration = 3}), std::logic_error);
}

TEST_CASE("in colour the same columns, without fill") {
  const auto run = test::run({.ranks = 2, .micro_batches = 3, .optimizer = 1});
  const std::string plain = picture(run, {.plain_numbers = true});
  const std::string coloured = picture(run, {.color = true, .plain_numbers = true});
  const std::string bare = std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), "");
  CHECK(coloured.find("48;5;75mF0 \x1b[0m") != std::string::npos);
  CHECK(lines_of(bare)[0] == std::regex_replace(lines_of(plain)[0], std::regex("[#O=]"), " "));
}

TEST_CASE("many devices and thousands of tasks keep within the width") {
  const auto run =
      test::run({.ranks = 64, .micro_batches = 256, .forward = 0.01, .backward = 0.023, .optimizer = 0.05});
  const auto lines = lines_of(picture(run, {.width = 80}));
  REQUIRE(lines.size() == 64 + 3);
  for (std::size_t device = 0; device < 64; ++device) {
    CHECK(lines[device].size() <= 4 + 80);
    CHECK(lines[device].find('#') != std::string::npos);
  }
}
