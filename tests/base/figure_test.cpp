// Figures: what gnuplot is told, what lies beside the picture, and what happens without one.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "sim/base/system/figure.hpp"
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("stagecraft-figure-" + std::to_string(getpid()));
  ~Folder() { fs::remove_all(path); }
};

const Figure kLine = {"line",
                      "a \"straight\" line",
                      "time [s]",
                      "way [m]",
                      "set key off\n",
                      {{"way", "using 1:2 with lines", figure_row({0, 0}) + figure_row({1, 0.125})},
                       {"", "using 1:2 with points", figure_row({1, 1})}}};

TEST_CASE("a figure's script has its style, its axes and its data by index", "[base][figure]") {
  const std::string script = to_gnuplot(kLine);
  CHECK_THAT(script, Catch::Contains("set output 'line.svg'"));
  CHECK_THAT(script, Catch::Contains("set title 'a \"straight\" line'\n"));
  CHECK_THAT(script, Catch::Contains("set xlabel 'time [s]'\n"));
  CHECK_THAT(script, Catch::Contains("plot 'line.dat' index 0 using 1:2 with lines title 'way'"));
  CHECK_THAT(script, Catch::Contains("'line.dat' index 1 using 1:2 with points notitle"));
}

TEST_CASE("a figure is 85 mm wide in both forms, with letters of 7.5 points that stay text", "[base][figure]") {
  const std::string script = to_gnuplot(kLine);
  CHECK_THAT(script, Catch::Contains("set terminal svg size 321,210 noenhanced font 'sans-serif,10'"));
  // 321 / 96 in = 85 mm; gnuplot writes 4/3 points for each at scale 1: 10 * 0.5625 * 4/3 = 7.5.
  CHECK_THAT(script, Catch::Contains("set terminal pdfcairo size 3.34375in,2.1875in noenhanced font 'sans-serif,10' "
                                     "fontscale 0.5625"));
}

TEST_CASE("a title is shown and never carried out", "[base][figure]") {
  const Folder folder;
  Figure figure = kLine;
  figure.title = "`touch here` @here \x1b[2J \xe2\x80\xae two\nlines";
  figure.series[0].title = "1\n2 2";
  figure.commands = "here = \"variable\"\n";
  CHECK_THAT(to_gnuplot(figure), Catch::Contains(R"(set title '`touch here` @here \x1b[2J \u202e two lines')"));
  const std::string why_not = draw(figure, folder.path);
  CHECK(!fs::exists(folder.path / "here"));
  CHECK_THAT(read_file(folder.path / "line.dat"), Catch::StartsWith("# 1\\x0a2 2\n0 0\n"));
  if (why_not.empty()) {
    CHECK_THAT(read_file(folder.path / "line.svg"), Catch::Contains("`touch here` @here \\x1b[2J \\u202e two lines"));
  }
}

TEST_CASE("script and data lie beside the picture, drawn or not", "[base][figure]") {
  const Folder folder;
  const std::string why_not = draw(kLine, folder.path);
  CHECK(read_file(folder.path / "line.gp") == to_gnuplot(kLine));
  CHECK(read_file(folder.path / "line.dat") == "# way\n0 0\n1 0.125\n\n\n# a \"straight\" line\n1 1\n");
  if (why_not.empty()) {
    CHECK_THAT(read_file(folder.path / "line.svg"), Catch::Contains("</svg>"));
  } else { // not installed
    CHECK_THAT(why_not, Catch::StartsWith("gnuplot: "));
  }
}

TEST_CASE("without data there is no picture, and a script that fails says why", "[base][figure]") {
  const Folder folder;
  CHECK(draw({.name = "none"}, folder.path) == "there is nothing to draw");
  CHECK(!fs::exists(folder.path));
  Figure broken = kLine;
  broken.commands = "set nonsense\n";
  CHECK_THAT(draw(broken, folder.path), Catch::StartsWith("gnuplot: "));
}

// Between backquotes in double quotes it would: "`command`".
TEST_CASE("gnuplot runs nothing that stands in a text", "[base][figure]") {
  CHECK(gnuplot_text("`touch here`") == "'`touch here`'");
  CHECK(gnuplot_text("it's \"so\"\n\\") == "'it''s \"so\" \\'");
  const Folder folder;
  Figure figure = kLine;
  figure.title = figure.x = figure.series.front().title = "it's `touch here`; \"`touch here`\"\nsystem('touch here')";
  draw(figure, folder.path);
  CHECK(fs::exists(folder.path / "line.gp"));
  CHECK(!fs::exists(folder.path / "here"));
}

TEST_CASE("names of files keep letters, digits, dots and dashes", "[base][figure]") {
  CHECK(file_name_of("ranking-mlp on two_cores, batch 64") == "ranking-mlp-on-two-cores-batch-64");
  CHECK(file_name_of("../a") == "..-a");
}

} // namespace
} // namespace stagecraft
