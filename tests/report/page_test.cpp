// The HTML report: sections, charts, timelines and tables of every kind of document.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "sim/analysis/judgement.hpp"
#include "sim/base/named_table.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/figure_frame.hpp"
#include "sim/report/page/documents.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/strategy_colors.hpp"
#include "sim/report/page/sweep/sweep_page.hpp"
#include "sim/report/validation.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/timeline/critical_path.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/report/small_run.hpp"

using namespace stagecraft;
using nlohmann::json;
using test::error_of;
using test::near;

namespace {

constexpr const char* kEvil = "</script><script>alert(1)</script> \" ' & <b>";

const Chart& chart_of(const DocumentPage& page, const std::string& name) {
  for (const PageSection& section : page.sections) {
    for (const Chart& chart : section.charts) {
      if (chart.name == name) {
        return chart;
      }
    }
  }
  FAIL("no chart " + name);
  throw std::logic_error(name);
}

// The text in a column of a row in the last table.
std::string cell_of(const DocumentPage& page, std::size_t row, const std::string& column) {
  const PageTable& table = page.sections.back().tables.front();
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  REQUIRE(found != table.columns.end());
  return table.rows.at(row).at(static_cast<std::size_t>(found - table.columns.begin())).text;
}

json data_of(const std::string& html) {
  const std::string begin = "id=\"data\">", end = "</script>";
  const std::size_t from = html.find(begin) + begin.size();
  return json::parse(html.substr(from, html.find(end, from) - from));
}

// A run of a strategy with an iteration time and a price, on two devices.
Run run_of(const std::string& strategy, const std::string& schedule, int micro_batches, double seconds,
           double dollars) {
  Run run;
  run.strategy = strategy;
  run.schedule = run.order = schedule;
  run.engine = "simgrid";
  run.micro_batches = micro_batches;
  run.feasible = true;
  run.devices = {"a", "b"};
  run.metrics.iteration = run.metrics.makespan = Seconds{seconds};
  run.metrics.busy = {Seconds{seconds / 2}, Seconds{seconds}};
  run.metrics.waiting = {Seconds{seconds / 2}, Seconds{}};
  run.metrics.exposed = {Seconds{}, Seconds{}};
  run.metrics.peak_memory = {Bytes{2e9}, Bytes{1e9}};
  run.cost_per_million_samples = Dollars{dollars};
  run.samples_per_second = 1 / seconds;
  run.estimate = Seconds{seconds * 0.9};
  return run;
}

Comparison small_comparison() {
  Comparison comparison{.model = "m", .platform = "p"};
  comparison.runs = {run_of("optimal", "zb-h1", 8, 1, 9), run_of("uniform", "1f1b", 8, 2, 3),
                     run_of("optimal", "1f1b", 4, 3, 5)};
  Run unfit;
  unfit.strategy = "single";
  unfit.why_not = "memory";
  comparison.runs.push_back(unfit);
  comparison.verdict = {"optimal wins."};
  return comparison;
}

// Rounded to quarters, which are exact in the numbers below.
std::vector<double> microseconds(const std::vector<double>& seconds) {
  std::vector<double> rounded;
  for (const double moment : seconds) {
    rounded.push_back(std::round(4e6 * moment) / 4);
  }
  return rounded;
}

} // namespace

TEST_CASE("texts from inputs are shown and never run", "[report][page]") {
  Page page{.title = kEvil, .subtitle = kEvil};
  PageSection section{.title = kEvil, .sentences = {kEvil}};
  section.charts = {bars_of("bars", kEvil, kEvil, {{kEvil, 1}})};
  section.tables = {{.title = kEvil, .columns = {kEvil}, .rows = {{{kEvil}}}}};
  page.sections = {section};
  page.inputs = {{kEvil, ""}};
  const std::string html = to_html(page);
  CHECK(html.find("<script>alert") == std::string::npos);
  CHECK(html.find("<b>") == std::string::npos);
  const json data = data_of(html);
  CHECK(data.at(0).at("charts").at(0).at("title") == kEvil);
  CHECK(data.at(0).at("tables").at(0).at("rows").at(0).at(0) == kEvil);
  // Eight scripts beside the data; each has the word that the policy asks for.
  const std::size_t policy = html.find("script-src 'nonce-");
  const std::string word = html.substr(policy + 18, 32);
  std::size_t allowed = 0;
  for (std::size_t at = html.find("<script nonce=\"" + word); at != std::string::npos;
       at = html.find("<script nonce=\"" + word, at + 1)) {
    ++allowed;
  }
  CHECK(allowed == 8);
}

TEST_CASE("what controls a terminal or turns text around stands in words on the page", "[report][page]") {
  const std::string sly = "a\x1b[2J\xe2\x80\xae"
                          "b\xc2\x85",
                    told = "a\\x1b[2J\\u202eb\\u0085";
  Page page{.title = sly};
  page.sections = {{.title = sly, .sentences = {sly}}};
  page.sections[0].charts = {bars_of("bars", sly, sly, {{sly, 1}})};
  page.inputs = {{sly, ""}};
  const std::string html = to_html(page);
  CHECK(html.find("\xe2\x80\xae") == std::string::npos);
  CHECK(html.find('\x1b') == std::string::npos);
  CHECK(html.find("<title>" + told + "</title>") != std::string::npos);
  CHECK(html.find("<li>" + told + "</li>") != std::string::npos);
  CHECK(data_of(html).at(0).at("charts").at(0).at("title") == told);
}

TEST_CASE("columns that are empty in every row are not shown", "[report][page]") {
  Page page{.title = "t"};
  page.sections = {{.title = "s", .sentences = {}}};
  page.sections[0].tables = {{.title = "t",
                              .columns = {"run", "time", "energy", "remarks"},
                              .rows = {{{"a"}, number_cell(Mark::kNone), number_cell(Mark::kNone), {""}},
                                       {{"b"}, number_cell(2), number_cell(Mark::kNone), {""}}}}};
  const json table = data_of(to_html(page)).at(0).at("tables").at(0);
  CHECK(table.at("columns") == json{"run", "time"});
  CHECK(table.at("rows") == json::parse(R"([["a", ["–", null]], ["b", ["2", 2.0]]])"));
}

TEST_CASE("the front is the marks that no other mark beats", "[report][page]") {
  // (1, 5) and (3, 2) stay; (2, 5) is no better than the first in y, (4, 2) than the last, (3, 4) than (3, 2).
  const std::vector<Mark> front =
      front_of({{.x = 4, .y = 2}, {.x = 3, .y = 4}, {.x = 1, .y = 5}, {.x = 3, .y = 2}, {.x = 2, .y = 5}});
  REQUIRE(front.size() == 2);
  CHECK((front[0].x == 1 && front[0].y == 5));
  CHECK((front[1].x == 3 && front[1].y == 2));
  CHECK(front_of({}).empty());
}

TEST_CASE("an axis is logarithmic where its marks are far apart or whole", "[report][page]") {
  const auto axis = [](std::vector<double> places) {
    Chart chart{
        .name = "c", .x = {.title = "", .logarithmic = true}, .y = {.title = ""}, .series = {{"", Look::points, {}}}};
    for (const double place : places) {
      chart.series[0].marks.push_back({.x = place, .y = 1});
    }
    return is_logarithmic(chart, false);
  };
  CHECK(axis({0.5, 6.1}));       // 12.2 times
  CHECK_FALSE(axis({0.5, 5.9})); // 11.8 times
  CHECK(axis({1, 2, 4}));
  CHECK_FALSE(axis({0, 100}));
  CHECK_FALSE(axis({})); // nothing to find powers of ten for
}

TEST_CASE("a chart for gnuplot", "[report][figures]") {
  Chart bars = bars_of("b", "title", "x [s]", {{"one", 2}, {"two", 4}});
  bars.series[0].marks[1].low = 3;
  bars.series[0].marks[1].high = 5;
  const Figure figure = figure_of(bars);
  REQUIRE(figure.series.size() == 2);
  CHECK(figure.series[0].rows == "2 0 0 2 -0.4 0.4\n4 1 0 4 0.6 1.4\n");
  CHECK(figure.series[1].rows == "4 1 3 5\n"); // the interval
  CHECK(figure.commands.find("set ytics ('one' 0, 'two' 1)") != std::string::npos);
  CHECK(figure.commands.find("set yrange [1.5:-0.5]") != std::string::npos); // the first is on top
}

TEST_CASE("long names of a figure's axes are cut in the middle, and numbered where that leaves two alike",
          "[report][figures]") {
  const std::string begin(24, 'b'), end(24, 'e');
  const auto tics = [](const Figure& figure, const std::string& which) {
    const std::size_t at = figure.commands.find("set " + which + "tics (");
    return figure.commands.substr(at, figure.commands.find('\n', at) - at);
  };
  // Beside a figure 30 letters have room: 14 of them, the mark of the cut, and 15. "ä" is one letter, of two bytes.
  const std::string fits(30, 'x');
  const Figure beside = figure_of(bars_of("b", "", "", {{begin + "ä" + end, 1}, {fits, 2}}));
  CHECK(tics(beside, "y") ==
        "set ytics ('" + std::string(14, 'b') + "…" + std::string(15, 'e') + "' 0, '" + fits + "' 1)");
  // They differ in the middle alone; 26 letters are left beside their numbers.
  const std::string left = std::string(12, 'b') + "…" + std::string(13, 'e');
  CHECK(tics(figure_of(bars_of("b", "", "", {{begin + "1" + end, 1}, {begin + "2" + end, 2}})), "y") ==
        "set ytics ('1: " + left + "' 0, '2: " + left + "' 1)");
  CHECK(beside.width == kColumnWidth); // whatever its names: the plot is narrower
  const auto below = [](std::size_t letters) {
    Chart chart{.name = "c", .title = "t", .series = {{"", Look::points, {{.x = 0, .y = 1}}}}};
    chart.x.names = {std::string(letters, 'a'), "b", "c"};
    return figure_of(chart);
  };
  // Three names of 12 letters are side by side in 36; longer ones are slanted, and the figure higher by 4 for each
  // letter.
  CHECK(tics(below(12), "x").find("rotate") == std::string::npos);
  CHECK(tics(below(13), "x").find(" rotate by -35") != std::string::npos);
  CHECK(below(13).height == below(12).height + 4 * 13);
  CHECK(tics(below(30), "x").find("'" + std::string(9, 'a') + "…" + std::string(10, 'a') + "'") != std::string::npos);
}

TEST_CASE("a figure is a column wide, and grows in height with what stands in it", "[report][figures]") {
  const auto height = [](int rows, int series) {
    Chart chart{.name = "c", .title = "t"};
    for (int one = 0; one < series; ++one) {
      chart.series.push_back({"series " + std::to_string(one), Look::bars, {}});
      for (int row = 0; row < rows; ++row) {
        chart.series.back().marks.push_back({.x = 1, .y = static_cast<double>(row)});
      }
    }
    for (int row = 0; row < rows; ++row) {
      chart.y.names.push_back("row " + std::to_string(row));
    }
    const Figure figure = figure_of(chart);
    CHECK(figure.width == kColumnWidth);
    return figure.height;
  };
  CHECK(height(20, 1) == height(10, 1) + 10 * 14);
  CHECK(height(10, 3) == height(10, 1));      // three names of eight letters stand in one row of the key
  CHECK(height(10, 4) == height(10, 1) + 13); // the fourth in a second
}

TEST_CASE("numbers of an axis stand far apart: 1, 2 or 5 times a power of ten", "[report][figures]") {
  CHECK(tic_distance(0, 90, 3) == near(50));
  CHECK(tic_distance(0, 90, 6) == near(20));
  CHECK(tic_distance(2.3, 10.9, 6) == near(2));
  CHECK(tic_distance(0, 3, 3) == near(1));
  CHECK(tic_distance(0, 0.004, 6) == near(0.001));
}

TEST_CASE("the values of a curve stand below it where they are few", "[report][figures]") {
  const auto tics = [](Look look, const std::vector<double>& values, bool logarithmic = true) {
    Chart chart{.name = "c", .title = "t", .x = {.logarithmic = logarithmic}, .series = {{"", look, {}}}};
    for (const double value : values) {
      chart.series[0].marks.push_back({.x = value, .y = 1});
    }
    const std::string commands = figure_of(chart).commands;
    const std::size_t at = commands.find("set xtics ") + 10;
    return commands.substr(at, commands.find('\n', at) - at);
  };
  CHECK(tics(Look::line, {24, 48}) == "(24, 48)");
  CHECK(tics(Look::line, {24, 48}, false) == "(24, 48)");
  CHECK(tics(Look::line, {10, 25, 50, 100, 200, 400}) == "(10, 25, 50, 100, 200, 400)");
  // Those that would run into a neighbour or the last are left out: the plot is 230 pixels wide, 2 digits take
  // 12 and a gap of 8. On a linear axis from 10 to 90 that is 7.
  CHECK(tics(Look::line, {10, 16, 18, 84, 90}, false) == "(10, 18, 90)");
  CHECK(tics(Look::line, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}) == "(1, 2, 5, 10, 20, 50)"); // many
  // Points may stand anywhere: 1, 2 or 5 times powers of ten, or, where fewer than two lie between them, equal
  // distances.
  CHECK(tics(Look::points, {19, 50}) == "(10, 20, 50)");
  CHECK(tics(Look::points, {24, 48}) == "(25, 30, 35, 40, 45)");
  CHECK(tics(Look::points, {24}) == "(24)");
  // Powers of ten alone where others would run into them: from 100000 to 200000 is ln 2 of ln 440 + 2 ln 1.1 of the
  // plot, 25 pixels, and six digits take 36 beside a gap.
  CHECK(tics(Look::points, {500, 220000}) == "(100, 1000, 10000, 100000)");
  CHECK(tics(Look::points, {500, 20000}) == "(100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)");
}

TEST_CASE("no point of a figure stands on the end of an axis", "[report][figures]") {
  const auto ranges = [](double low, double high, bool from_zero) {
    Chart chart{.name = "c", .title = "t", .x = {.title = "x"}, .y = {.title = "y", .from_zero = from_zero}};
    chart.series = {{"", Look::points, {{.x = 10, .y = low}, {.x = 20, .y = high}}}};
    const std::string commands = figure_of(chart).commands;
    CHECK(commands.find("set xrange [9.5:20.5]") != std::string::npos); // a twentieth of 10 on either side
    const std::size_t at = commands.find("set yrange ") + 11;
    return commands.substr(at, commands.find('\n', at) - at);
  };
  CHECK(ranges(40, 80, false) == "[38:82]");
  CHECK(ranges(40, 80, true) == "[0:84]");
  CHECK(ranges(1, 81, false) == "[0:85]"); // not below zero, where nothing is
  CHECK(ranges(-10, 10, false) == "[-11:11]");
  CHECK(ranges(40, 40, false) == "[38:42]"); // a twentieth of the value
}

TEST_CASE("the text of a line across a figure ends with the figure where names leave it no room", "[report][figures]") {
  const auto place = [](const std::string& name) {
    Chart chart = bars_of("c", "t", "x", {{name, 10}});
    chart.lines = {{4, "no plan is faster than 4 s"}};
    const std::string commands = figure_of(chart).commands;
    const std::size_t at = commands.find("faster than 4 s' at ") + 20;
    return commands.substr(at, commands.find(" offset", at) - at);
  };
  CHECK(place("short") == "4, graph 1 left"); // 26 letters of 5.2 pixels in six tenths of 261
  CHECK(place("a name of thirty letters beside") == "screen 0.98, graph 1 right");
}

TEST_CASE("the CSV of a figure has the columns that say something", "[report][figures]") {
  Chart chart{.name = "c", .title = "t", .x = {.title = "micro-batches"}, .y = {.title = "iteration [s]"}};
  chart.series = {{"", Look::line, {{.x = 2, .y = 1.5}, {.x = 4, .y = 1.25}}}};
  CHECK(figure_of(chart).csv == "micro-batches,iteration [s]\n2,1.5\n4,1.25\n");
  chart.series[0].name = "uniform";
  chart.series[0].marks[1].low = 1;
  chart.besides = "schedule";
  chart.series[0].marks[0].besides = "gpipe";
  chart.series[0].marks[1].text = "all, about it";
  CHECK(figure_of(chart).csv == "series,micro-batches,iteration [s],low,schedule,what\n"
                                "uniform,2,1.5,,gpipe,\nuniform,4,1.25,1,,\"all, about it\"\n");
}

TEST_CASE("a figure joins no names by lines, and shows a front of one point", "[report][figures]") {
  Chart chart{.name = "c", .title = "t", .series = {{"s", Look::line, {{.x = 0, .y = 1}, {.x = 1, .y = 2}}}}};
  CHECK(figure_of(chart).series[0].style.find("with linespoints") != std::string::npos);
  chart.x.names = {"one", "two"};
  CHECK(figure_of(chart).series[0].style.find("with points") != std::string::npos);
  chart.series = {{"front", Look::front, {{.x = 1, .y = 2}}}};
  const Figure figure = figure_of(chart);
  REQUIRE(figure.series.size() == 2);
  CHECK(figure.series[1].style.find("with points") != std::string::npos);
  CHECK(figure.series[1].rows == "1 2\n");
  chart.series = {{"step", Look::steps, {{.x = 1, .y = 2}}}};
  CHECK(figure_of(chart).series.size() == 2);
  chart.series[0].marks.push_back({.x = 2, .y = 2}); // that a line shows
  CHECK(figure_of(chart).series.size() == 1);
}

TEST_CASE("numbers in cells are white where cells are dark", "[report][figures]") {
  const auto inks = [](std::vector<double> values, bool least_is_best = false) {
    Chart chart{.name = "c", .title = "t", .least_is_best = least_is_best, .series = {{"", Look::cells, {}}}};
    for (const double value : values) {
      chart.series[0].marks.push_back({.x = 0, .y = 0, .value = value});
    }
    return figure_of(chart).series.at(1).rows;
  };
  // A quarter of the scale is dark, from its least: from 4 to 8 up to 5.
  CHECK(inks({4, 4.9, 5, 8}) == "0 0 4 1\n0 0 4.9 1\n0 0 5 0\n0 0 8 0\n");
  CHECK(inks({4, 7, 7.1, 8}, true) == "0 0 4 0\n0 0 7 0\n0 0 7.1 1\n0 0 8 1\n");
  // By the logarithm, from 1 to 16, up to 2.
  CHECK(inks({1, 1.9, 2, 16}) == "0 0 1 1\n0 0 1.9 1\n0 0 2 0\n0 0 16 0\n");
  CHECK(inks({3}) == "0 0 3 0\n");
}

TEST_CASE("the colours of a figure have numbers, by the logarithm too", "[report][figures]") {
  const auto commands = [](double most) {
    return figure_of({.name = "c", .title = "t", .series = {{"", Look::cells, {{.value = 2}, {.value = most}}}}})
        .commands;
  };
  CHECK(commands(10).find("logscale") == std::string::npos); // five times
  CHECK(commands(10).find("set cbrange [2:10]") != std::string::npos);
  CHECK(
      commands(11).find("set logscale cb\nset format cb '%g'\nset cbtics (1, 2, 5, 10, 20, 50)\nset cbrange [2:11]") !=
      std::string::npos);
}

TEST_CASE("a trace becomes tracks", "[report][page]") {
  const test::SmallRun run =
      test::run({.ranks = 3, .micro_batches = 4, .optimizer = 0.25, .bytes = 3e7, .bandwidth = 2e7, .iterations = 2});
  const JsonDocument document = read_json_document("trace", chrome_trace(run.graph, run.timeline, run.platform));
  REQUIRE(document.timelines.size() == 1);
  const Tracks& tracks = document.timelines[0];
  // Three devices with 8 computations and an optimizer step in each of two iterations.
  std::size_t devices = 0, computed_on_path = 0, links = 0;
  for (std::size_t track = 0; track < tracks.tracks.size(); ++track) {
    const auto& [group, name] = tracks.tracks[track];
    links += group == "links" ? 1 : 0;
    CHECK((group == "devices") == (links == 0)); // first all of the devices, and what they send below each
    if (group == "devices" && !name.ends_with(" pipeline") && !name.ends_with(" pipeline #2")) {
      CHECK(name == run.platform.devices[devices++].name);
      const std::uint32_t begin = tracks.track_begin[track], end = tracks.track_begin[track + 1];
      CHECK(end - begin == 2 * (8 + 1));
      computed_on_path += std::count(tracks.critical.begin() + begin, tracks.critical.begin() + end, 1);
    }
  }
  CHECK(devices == 3);
  CHECK(tracks.levels.size() == 3);
  for (std::size_t track = 0; track < tracks.tracks.size(); ++track) { // in order, and none over another
    for (std::size_t bar = tracks.track_begin[track] + 1; bar < tracks.track_begin[track + 1]; ++bar) {
      CHECK(tracks.start[bar] >= tracks.finish[bar - 1] - 1e-9);
    }
  }
  CHECK(tracks.end() == near(run.timeline.end()));
  // F of all micro-batches at a stage share a kind; the label has a place for the number.
  const BarKind& first = tracks.kinds[tracks.kind[0]];
  CHECK(first.label == "F{}@0");
  CHECK(first.category == "forward");
  std::size_t on_path = 0;
  for (const PathStep& step : critical_path(run.graph, run.timeline)) {
    const Work& work = run.graph.works[run.graph.work[step.entry % run.graph.tasks()]];
    on_path += work.computes() ? 1 : 0;
  }
  CHECK(computed_on_path == on_path);
}

TEST_CASE("a tower of brackets is refused where it gets too high", "[report][page]") {
  CHECK_THAT(error_of([] { read_json_document("f.json", "{\"runs\": " + std::string(300, '[')); }),
             Catch::StartsWith("f.json:1:109: values lie more than 100 deep"));
}

TEST_CASE("a trace of another program begins at its first event", "[report][page]") {
  // Microseconds since 1970, which a double tells to 0.25, and threads whose ids are texts.
  const JsonDocument document = read_json_document("trace", R"({"traceEvents": [
    {"ph": "X", "name": "b", "pid": 7, "tid": "stream 20", "ts": 1700000000000100.0, "dur": 50},
    {"ph": "X", "name": "a", "pid": 7, "tid": "stream 7", "ts": 1700000000000000.5, "dur": 99.5},
    {"ph": "X", "name": "c", "pid": 7, "tid": "stream 7", "ts": 1700000000000100.0, "dur": 1},
    {"ph": "C", "name": "memory", "pid": 7, "ts": 1700000000000002.5, "args": {"bytes": 8}}]})");
  const Tracks& tracks = document.timelines.at(0);
  REQUIRE(tracks.tracks.size() == 2);
  CHECK(tracks.tracks[0].name == "stream 20"); // the first that is named
  CHECK(tracks.tracks[1].name == "stream 7");
  CHECK(microseconds(tracks.start) == std::vector<double>{99.5, 0, 99.5});
  CHECK(microseconds(tracks.finish) == std::vector<double>{149.5, 99.5, 100.5});
  CHECK(microseconds(tracks.levels.at(0).seconds) == std::vector<double>{2});
  const JsonDocument before = read_json_document(
      "trace", R"({"traceEvents": [{"ph": "X", "ts": -5, "dur": 1}, {"ph": "X", "ts": 5, "dur": 1}]})");
  CHECK(microseconds(before.timelines.at(0).start) == std::vector<double>{0, 10});
}

TEST_CASE("events begin and end bars, and bars in bars are in a row below", "[report][page]") {
  // On one thread: outer from 0 to 10 with inner from 2 to 4 and from 4 to 8, then another; its ends are told first.
  const JsonDocument document = read_json_document("trace", R"({"traceEvents": [
    {"ph": "E", "tid": 1, "ts": 4}, {"ph": "E", "tid": 1, "ts": 10},
    {"ph": "B", "tid": 1, "ts": 0, "name": "outer", "cat": "forward"}, {"ph": "B", "tid": 1, "ts": 2, "name": "inner"},
    {"ph": "X", "tid": 1, "ts": 4, "dur": 4, "name": "inner"}, {"ph": "X", "tid": 1, "ts": 10, "dur": 1, "name": "last"},
    {"ph": "B", "tid": 1, "ts": 20, "name": "never ended"}, {"ph": "E", "tid": 2, "ts": 1}, {"ph": "X", "tid": 1},
    {"ph": "i", "ts": 1}, {"ph": "i", "ts": 2}, {"ph": "C", "ts": 1, "args": {"load": 3}}, {"ph": "s", "ts": 1}]})");
  const Tracks& tracks = document.timelines.at(0);
  REQUIRE(tracks.tracks.size() == 2);
  CHECK(tracks.tracks[0].name == "1");
  CHECK(tracks.tracks[1].name == "1 #2");
  CHECK(tracks.track_begin == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(microseconds(tracks.start) == std::vector<double>{0, 10, 2, 4});
  CHECK(microseconds(tracks.finish) == std::vector<double>{10, 11, 4, 8});
  CHECK(tracks.kinds[tracks.kind[0]].category == "forward");
  CHECK(tracks.levels.empty());
  const std::map<std::string, std::size_t> left_out = {{"arrows", 1},
                                                       {"bars without a moment", 1},
                                                       {"begins without an end", 1},
                                                       {"counters without bytes", 1},
                                                       {"ends without a begin", 1},
                                                       {"instants", 2}};
  CHECK(tracks.left_out == left_out);
}

TEST_CASE("the page of a trace says which events it does not draw", "[report][page]") {
  const auto sentences = [](const std::string& events) {
    return read_document("trace", "{\"traceEvents\": [" + events + "]}").sections.at(0).sentences;
  };
  CHECK(read_document("trace", R"({"timeline": {}, "traceEvents": []})").sections.at(0).timelines.empty());
  const std::string bar = R"({"ph": "X", "ts": 0, "dur": 1, "args": {"critical": "yes"}})"; // no boolean: it is not
  CHECK(sentences(bar).empty());
  CHECK(sentences(bar + R"(, {"ph": "i", "ts": 0}, {"ph": "b", "ts": 0})") ==
        std::vector<std::string>{"Not drawn of its events: asynchronous events (1), instants (1)."});
}

TEST_CASE("a comparison as a page", "[report][page]") {
  const DocumentPage page = read_document("c.json", to_json(small_comparison(), false));
  CHECK(page.title == "m on p");
  CHECK(page.sections.at(0).fold.sentences == std::vector<std::string>{"optimal wins."});
  const Chart& ranked = chart_of(page, "ranked-strategies");
  CHECK(ranked.y.names == std::vector<std::string>{"optimal, zb-h1, M 8", "uniform, 1f1b, M 8"});
  const Chart& front = chart_of(page, "front-dollars");
  REQUIRE(front.series.size() == 3);        // optimal, uniform, the front
  CHECK(front.series[2].marks.size() == 2); // (1 s, 9) and (2 s, 3) beat (3 s, 5)
  const Chart& map = chart_of(page, "strategies-schedules");
  CHECK(map.series[0].marks.size() == 3); // uniform never ran under zb-h1
  const PageTable& table = page.sections.back().tables.at(0);
  CHECK(table.rows.size() == 4);
  CHECK(table.rows[3].back().text == "memory");
}

// A number that no count holds once left the conversion undefined.
TEST_CASE("a count of a document that is no whole number of 32 bits counts as missing", "[report][page]") {
  using nlohmann::json;
  const auto count_of = [](const json& value) { return whole_at(json{{"micro_batches", value}}, "micro_batches", 1); };
  CHECK(count_of(2147483647) == 2147483647);
  CHECK(count_of(-2147483648LL) == -2147483647 - 1);
  CHECK(count_of(8.0) == 8);
  for (const json& value : {json(2147483648LL), json(-2147483649LL), json(1e308), json(-1e308), json(0.5), json("8"),
                            json(nullptr), json::array()}) {
    CHECK(count_of(value) == 1);
  }
  CHECK(whole_at(json::object(), "micro_batches", 7) == 7);
}

TEST_CASE("a page has the same remarks on runs as the terminal", "[report][page]") {
  Comparison comparison = small_comparison();
  comparison.rank = RankBy::throughput; // of exact training the first would not be first
  Run& run = comparison.runs[0];
  run.note = "n";
  run.staleness = {0, 1};
  run.recompute = {"selective", {.early = false, .except_last_micro_batch = true}};
  const std::string remarks = "n; asynchronous: weights up to 1.0 steps old; "
                              "recomputes: selective, lazy, not of the last micro-batch";
  CHECK(join(remarks_of(run), "; ") == remarks);
  const DocumentPage compared = read_document("c.json", to_json(comparison, false));
  CHECK(compared.sections.back().tables.at(0).rows.at(0).back().text == remarks);
  CHECK(compared.sections.back().tables.at(0).rows.at(1).back().text.empty());
  const DocumentPage replayed = read_document("r.json", to_json(run, {"m", "p"}, false));
  CHECK(replayed.sections.at(0).sentences.back() == remarks + ".");
}

// The fastest of three is asynchronous: charts and findings are of the two others.
TEST_CASE("asynchronous runs stand apart on a page, with their staleness", "[report][page]") {
  Comparison comparison = small_comparison();
  std::rotate(comparison.runs.begin(), comparison.runs.begin() + 1, comparison.runs.begin() + 3);
  comparison.runs[2].staleness = {0.5, 0}; // optimal under zb-h1, in 1 s
  REQUIRE(comparison.runs[2].metrics.iteration < comparison.runs[0].metrics.iteration);
  const std::string text = to_json(comparison, false);
  CHECK(json::parse(text).at("rank") == "exact");
  const DocumentPage page = read_document("c.json", text);
  // The best of each strategy are all runs, so that no further chart shows these.
  CHECK(chart_of(page, "ranked-strategies").y.names ==
        std::vector<std::string>{"uniform, 1f1b, M 8", "optimal, 1f1b, M 4"});
  CHECK(chart_of(page, "ranked-asynchronous").y.names == std::vector<std::string>{"optimal, zb-h1, M 8"});
  const auto apart = std::find_if(page.sections.begin(), page.sections.end(), [](const PageSection& section) {
    return section.title == "Asynchronous schedules, as throughput only";
  });
  REQUIRE(apart != page.sections.end());
  REQUIRE(apart->tables.at(0).rows.size() == 1);
  CHECK(apart->tables[0].rows[0][0].text == "3"); // its rank
  const auto& columns = apart->tables[0].columns;
  const auto staleness = std::find(columns.begin(), columns.end(), "staleness [steps]");
  REQUIRE(staleness != columns.end());
  CHECK(apart->tables[0].rows[0][static_cast<std::size_t>(staleness - columns.begin())].text == "0.5");
  CHECK(page.sections.back().tables.at(0).rows.size() == 3); // and what is infeasible

  // By throughput all compete, as in older documents, which do not say how they are ranked.
  std::rotate(comparison.runs.begin(), comparison.runs.begin() + 2, comparison.runs.begin() + 3);
  comparison.rank = RankBy::throughput;
  json older = json::parse(to_json(comparison, false));
  CHECK(older.at("rank") == "throughput");
  older.erase("rank");
  for (const std::string& one : {to_json(comparison, false), older.dump()}) {
    const DocumentPage mixed = read_document("c.json", one);
    CHECK(chart_of(mixed, "ranked-runs").y.names.size() == 3);
    CHECK(std::none_of(mixed.sections.begin(), mixed.sections.end(),
                       [&](const PageSection& section) { return section.title == apart->title; }));
    CHECK(mixed.sections.back().tables.at(0).rows.size() == 4);
  }
}

TEST_CASE("runs say what they recompute where they differ in it", "[report][page]") {
  Comparison comparison = small_comparison();
  for (Run& run : comparison.runs) {
    run.recompute.what = "full";
  }
  const DocumentPage same = read_document("c.json", to_json(comparison, false));
  CHECK(chart_of(same, "ranked-runs").y.names.at(0) == "optimal, zb-h1, M 8");
  CHECK(cell_of(same, 0, "recompute").empty());
  comparison.runs[1].recompute = {};
  const DocumentPage page = read_document("c.json", to_json(comparison, false));
  CHECK(chart_of(page, "ranked-runs").y.names.at(0) == "optimal, zb-h1, M 8, recompute full");
  CHECK(chart_of(page, "ranked-runs").y.names.at(1) == "uniform, 1f1b, M 8");
  CHECK(cell_of(page, 1, "recompute") == "none");
  CHECK(cell_of(page, 3, "recompute") == "full"); // what does not fit says it too
}

TEST_CASE("whiskers of bars are named, and are of the run as predicted where that is known", "[report][page]") {
  Comparison comparison = small_comparison();
  const DocumentPage without = read_document("c.json", to_json(comparison, false));
  CHECK(chart_of(without, "ranked-runs").note.empty());
  CHECK(std::isnan(chart_of(without, "ranked-runs").series[0].marks[0].low));

  Run& run = comparison.runs[0];
  run.perturbed = {10, Seconds{1.5}, Seconds{2}, Seconds{2.5}};
  const DocumentPage disturbed = read_document("c.json", to_json(comparison, false));
  CHECK(chart_of(disturbed, "ranked-runs").note == "Whiskers: 5 to 95 % in perturbed worlds.");
  CHECK(chart_of(disturbed, "ranked-runs").series[0].marks[0].low == 1.5);

  run.confidence = {{10, Seconds{0.8}, Seconds{1}, Seconds{1.25}}, 0.75};
  const DocumentPage both = read_document("c.json", to_json(comparison, false));
  const Chart& ranked = chart_of(both, "ranked-runs");
  CHECK(ranked.note == "Whiskers: 5 to 95 %, as far as the cost model's errors leave it open.");
  CHECK((ranked.series[0].marks[0].low == 0.8 && ranked.series[0].marks[0].high == 1.25));
  CHECK(std::isnan(ranked.series[0].marks[1].low)); // another run, of which nothing is known
  CHECK(cell_of(both, 0, "confidence median [s]") == "1");
  CHECK(cell_of(both, 0, "best in [%]") == "75");
  CHECK(cell_of(both, 0, "perturbed 95 % [s]") == "2.5");
}

TEST_CASE("every metric with a place on the page is a column there, in units of its heading",
          "[report][page][metrics]") {
  Comparison comparison = small_comparison();
  Run& run = comparison.runs[0];
  run.speedup = 1.5;
  run.lower_bound = Seconds{0.8};
  run.metrics.bubble_fraction = 0.25;
  run.energy_per_sample = Joules{3};
  run.tokens_per_second = 1000;
  run.mfu = 0.5;
  run.hfu = 0.625;
  run.perturbed = {10, Seconds{1.5}, Seconds{2}, Seconds{2.5}};
  run.confidence = {{10, Seconds{0.75}, Seconds{1.125}, Seconds{1.25}}, 0.625};
  const DocumentPage page = read_document("c.json", to_json(comparison, false));
  const PageTable& table = page.sections.back().tables.front();
  std::size_t at = static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), "recompute") -
                                            table.columns.begin());
  for (const Metric& metric : metrics_by<&Metric::page>()) {
    INFO(metric.name);
    REQUIRE(++at < table.columns.size());
    CHECK(table.columns[at] == metric.title());
    REQUIRE(table.rows.at(0).at(at).number.has_value());
    CHECK(*table.rows.at(0).at(at).number == near(metric.scale * value_of(metric, run)));
    CHECK(std::isnan(*table.rows.at(3).at(at).number)); // of what does not fit
  }
}

TEST_CASE("further keys of runs stand in the JSON as they are", "[report]") {
  const std::string text =
      to_json(small_comparison(), false, {{1, {{"timeline", "{\"traceEvents\": []}"}, {"empty", ""}}}});
  const json document = json::parse(text);
  CHECK(document.at("runs").at(1).at("timeline").at("traceEvents").empty());
  CHECK_FALSE(document.at("runs").at(1).contains("empty"));
  CHECK_FALSE(document.at("runs").at(0).contains("timeline"));
  CHECK(document.at("runs").at(1).at("strategy") == "uniform");
}

TEST_CASE("a validation as a page", "[report][page]") {
  Validation validation;
  validation.source = "s";
  for (const auto& [measured, predicted] : std::vector<std::pair<double, double>>{{1, 1.1}, {2, 2}, {4, 3}}) {
    validation.rows.push_back({.case_name = "c",
                               .metric = "iteration_seconds",
                               .measured = measured,
                               .predicted = predicted,
                               .contest = "k"});
  }
  const DocumentPage page = read_document("v.json", to_json(validation));
  CHECK(page.title == "Validation: s");
  CHECK(chart_of(page, "predicted-iteration-seconds").series.at(0).marks.size() == 3);
  CHECK(chart_of(page, "ranking-k").series.at(0).marks.at(2).y == 4);
  CHECK(page.sections.at(0).sentences.at(0).find("-25.0 %") != std::string::npos); // 3 for 4
  // Errors of 10, 0 and 25 %.
  CHECK(page.answer.sentence.find("Half of 3 predictions for s are within 10.0 %") == 0);
}

// Two networks, two strategies; the second network with the second strategy is not feasible.
TEST_CASE("a sweep as a page", "[report][page]") {
  SweepResults results{.name = "n",
                       .inputs = {"i.yaml"},
                       .axes = {{"platform.network.bandwidth", {"10 Gb/s", "100 Gb/s"}}, {"strategy", {"a", "b"}}}};
  results.value = {0, 0, 0, 1, 1, 0};
  results.iteration = {1, 0.5, 0.25};
  results.samples_per_second = {10, 20, 40};
  results.dollars_per_million = {1, 3, 2};
  results.joules_per_sample = {Mark::kNone, 0, Mark::kNone};
  results.peak_memory = {1e9, 1e9, 2e9};
  results.keys = {"k0", "k1", "k2"};
  results.infeasible = 1;
  results.reasons = {{"memory", 1, "network bandwidth 100 Gb/s, b"}};
  const DocumentPage page = sweep_page(results);
  CHECK(page.inputs == results.inputs);
  const Chart& curve = chart_of(page, "throughput-by-network-bandwidth");
  REQUIRE(curve.series.size() == 2);
  CHECK(curve.series[0].name == "a");
  CHECK(curve.series[0].marks.size() == 2);
  CHECK(curve.series[0].marks[1].x == near(100)); // Gb/s
  CHECK(curve.series[1].marks.size() == 1);
  const Chart& map = chart_of(page, "cost-over-network-bandwidth-strategy");
  CHECK(map.series[0].marks.size() == 3);
  // The best cell has the brightest colour, whether the largest or the least value is best.
  const Chart& other = chart_of(page, "throughput-over-network-bandwidth-strategy");
  CHECK(figure_of(map).commands.find("set palette negative defined") != std::string::npos);
  CHECK(figure_of(other).commands.find("set palette defined") != std::string::npos);
  const std::vector<std::string>& findings = page.sections.at(0).sentences;
  CHECK(page.answer.sentence ==
        "Of 4 combinations, the fastest is network bandwidth 100 Gb/s, a: 40 samples per second.");
  CHECK(page.answer.basis.back().value == "3 feasible, 1 not, 0 failed");
  // The best by bandwidth are 20 and 40, by strategy 40 and 20: a factor of 2 each. The cheapest costs 1 for 2.
  REQUIRE(findings.size() == 3);
  CHECK(findings.at(0).find("factor of 2") != std::string::npos);
  CHECK(findings.at(1).find("factor of 2") != std::string::npos);
  CHECK(findings.at(2).find("Cost: the best is 1 USD per million samples") == 0);
  // No energy is known, so no chart shows it.
  for (const PageSection& section : page.sections) {
    for (const Chart& chart : section.charts) {
      CHECK(chart.name.find("energy") == std::string::npos);
    }
  }
  // Sorted and filtered in the unit of the column's title: 100 Gb/s after 10.
  const PageTable& points = page.sections.back().tables.at(0);
  CHECK(points.columns.at(0) == "network bandwidth [Gb/s]");
  CHECK(points.rows.at(0).at(0).text == "100 Gb/s");
  CHECK(points.rows.at(0).at(0).number.value() == near(100));
  CHECK_FALSE(points.rows.at(0).at(1).number.has_value()); // a strategy
  CHECK(page.sections.back().tables.at(1).rows.at(0).at(1).text == "memory");
  CHECK(page.sections.back().tables.at(1).rows.at(0).at(2).text == "network bandwidth 100 Gb/s, b");
}

// Three keys that advance together, one of them the number of micro-batches, which runs repeat: one axis.
TEST_CASE("an axis of several keys has their names in short, and explains their values", "[report][page]") {
  SweepResults results{.name = "n",
                       .axes = {{"platform.network.bandwidth + training.micro_batches + model.dropout_rate",
                                 {"1.40491809684 GB/s + 4 + 1", "10 Gb/s + 8 + 2"}},
                                {"micro_batches", {"4", "8"}}}};
  results.value = {0, 0, 1, 1};
  results.iteration = {1, 0.5};
  results.samples_per_second = {10, 20};
  results.dollars_per_million = results.joules_per_sample = {0, 0};
  results.peak_memory = {1e9, 1e9};
  results.keys = {"k0", "k1"};
  const DocumentPage page = sweep_page(results);
  const std::vector<std::string>& findings = page.sections.at(0).sentences;
  CHECK(findings.back() ==
        "By network bandwidth + micro-batches + dropout rate the best samples per second differ by a "
        "factor of 2: 10 Gb/s + 8 + 2 best, 1.405 GB/s + 4 + 1 worst.");
  CHECK(std::count_if(findings.begin(), findings.end(), [](auto& one) { return one.starts_with("By "); }) == 1);
  const Chart& curve = chart_of(page, "throughput-by-network-bandwidth-micro-batches-dropout-rate");
  CHECK(curve.x.names == std::vector<std::string>{"1.405 GB/s + 4 + 1", "10 Gb/s + 8 + 2"});
}

// The second sweep lacks the axis that the first varies. Both vary the number of micro-batches, which runs repeat.
TEST_CASE("points of a sweep that lacks an axis are on no chart along it", "[report][page]") {
  SweepResults results{.name = "n",
                       .answers = {{"n", "least time", {}}, {"n", "least time", {}}},
                       .axes = {{"training.micro_batches", {"4", "8"}},
                                {"platform.network.bandwidth", {"10 Gb/s", "100 Gb/s"}},
                                {"micro_batches", {"4", "8"}}}};
  results.value = {0, kNoValue, 0, 1, kNoValue, 1, 0, 0, 0, 0, 1, 0};
  results.iteration = {1, 0.5, 0.25, 0.125};
  results.samples_per_second = {10, 20, 40, 80};
  results.dollars_per_million = results.joules_per_sample = results.peak_memory = std::vector<double>(4, Mark::kNone);
  results.keys = {"k0", "k1", "k2", "k3"};
  results.answers[0].best = {{1, 0.5, "0.5 s"}};
  results.answers[1].best = {{3, 0.125, "0.125 s"}};
  const DocumentPage page = sweep_page(results);
  const Chart& curve = chart_of(page, "throughput-by-network-bandwidth");
  REQUIRE(curve.series.size() == 1);
  REQUIRE(curve.series[0].marks.size() == 2);
  CHECK(curve.x.names.empty()); // Gb/s
  CHECK(curve.series[0].marks[0].y == 40);
  CHECK(chart_of(page, "throughput-by-micro-batches").series[0].marks.size() == 2);
  const PageSection& asked = page.sections.at(1);
  REQUIRE(asked.tables.size() == 2);
  CHECK(asked.tables[0].title == "The best by sweep 1, n: least time");
  CHECK(asked.tables[1].title == "The best by sweep 2, n: least time");
  const std::vector<std::string>& columns = asked.tables[0].columns;
  CHECK(std::count(columns.begin(), columns.end(), "micro-batches") == 1);
  // If the values of an axis are lists, the run's own value says more.
  results.axes[0].values[1] = "[4, 8]";
  const DocumentPage lists = sweep_page(results);
  const std::vector<std::string>& told = lists.sections.at(1).tables.at(0).columns;
  CHECK(std::count(told.begin(), told.end(), "micro-batches") == 2);
}

TEST_CASE("of many strategies seven keep their names and the others share one", "[report][page]") {
  SweepResults results{.name = "n", .axes = {{"strategy", {}}, {"platform.devices", {"1", "2"}}}};
  for (std::uint32_t strategy = 0; strategy < 10; ++strategy) {
    results.axes[0].values.push_back("s" + std::to_string(strategy));
    results.value.insert(results.value.end(), {strategy, strategy % 2});
    results.iteration.push_back(1);
    results.samples_per_second.push_back(1 + strategy);
    results.dollars_per_million.push_back(1 + strategy);
    results.joules_per_sample.push_back(Mark::kNone);
    results.peak_memory.push_back(Mark::kNone);
    results.keys.push_back("k" + std::to_string(strategy));
  }
  const DocumentPage page = sweep_page(results);
  for (const char* name : {"front-cost", "throughput-by-devices"}) {
    INFO(name);
    const Chart& chart = chart_of(page, name);
    REQUIRE(chart.series.size() >= 8);
    CHECK(chart.series[0].name == "s0");
    CHECK(chart.series[6].name == "s6");
    CHECK(chart.series[7].name == "others");
  }
  CHECK(chart_of(page, "front-cost").series[7].marks.size() == 3); // s7, s8, s9
}

// Three points of two strategies; the fastest is expensive and breaks the constraints.
SweepResults constrained() {
  SweepResults results{.name = "n",
                       .axes = {{"platform.network.bandwidth", {"10 Gb/s", "100 Gb/s"}}, {"strategy", {"a", "b"}}}};
  results.value = {0, 0, 1, 0, 1, 1};
  results.iteration = {1, 0.5, 0.25};
  results.samples_per_second = {10, 20, 40};
  results.dollars_per_million = {1, 3, 2};
  results.joules_per_sample = results.peak_memory = {Mark::kNone, Mark::kNone, Mark::kNone};
  results.keys = {"k0", "k1", "k2"};
  results.constraints = "memory at most 1 GB";
  results.outside = {0, 0, 1};
  return results;
}

TEST_CASE("charts of a sweep leave out what breaks its constraints, and have all points too", "[report][page]") {
  const DocumentPage page = sweep_page(constrained());
  const Chart& curve = chart_of(page, "throughput-by-network-bandwidth");
  REQUIRE(curve.series.size() == 1); // of strategy a alone
  CHECK(curve.series[0].marks.at(1).y == 20);
  REQUIRE(curve.all.size() == 1);
  REQUIRE(curve.all[0].series.size() == 2);
  CHECK(curve.all[0].series[1].marks.at(0).text.ends_with(", outside the constraints"));
  CHECK(curve.series[0].color == strategy_color("a")); // on every page
  CHECK(curve.all[0].series[0].color == strategy_color("a"));
  CHECK(curve.all[0].series[1].color == strategy_color("b"));
  const Chart& map = chart_of(page, "throughput-over-network-bandwidth-strategy");
  CHECK(map.series[0].marks.size() == 2);
  CHECK(map.all.at(0).series[0].marks.size() == 3);
  const Chart& front = chart_of(page, "front-cost");
  REQUIRE(front.series.size() == 3); // a, what is outside, the front
  CHECK(front.series[1].look == Look::faint);
  CHECK(front.series[1].marks.size() == 1);
  CHECK(front.series[2].marks.size() == 2);               // 20 and 10 per second, for 3 and 1
  CHECK(front.all.at(0).series.back().marks.size() == 2); // 40 and 10 per second, for 2 and 1
  for (const PageSection& section : page.sections) {
    CHECK(section.all.label.empty() == section.charts.empty());
  }
  CHECK(page.sections.at(1).all.off ==
        "1 of 3 points does not keep to the constraints (memory at most 1 GB) and is left out.");
  CHECK(page.answer.sure.find("2 feasible points keep to the constraints (memory at most 1 GB)") == 0);
  CHECK(page.answer.sentence.find("20 samples per second") != std::string::npos);
  const PageTable& table = page.sections.back().tables.at(0);
  CHECK(table.rows.at(0).at(table.columns.size() - 2).text == "kept");
  CHECK(table.rows.at(2).at(table.columns.size() - 2).text == "not kept");
  const std::vector<Figure> figures = figures_of(Page{.title = "", .sections = page.sections});
  CHECK(figures.at(0).commands.find("1 of 3 points does not keep") != std::string::npos);
}

TEST_CASE("constraints that all points keep, that no point keeps, or that differ leave charts as they are",
          "[report][page]") {
  SweepResults results = constrained();
  results.outside = {0, 0, 0};
  DocumentPage page = sweep_page(results);
  CHECK(page.answer.sure == "All feasible points keep to the constraints (memory at most 1 GB).");
  CHECK(chart_of(page, "throughput-by-network-bandwidth").all.empty());
  CHECK(page.sections.at(1).all.label.empty());

  results.outside = {1, 1, 1};
  page = sweep_page(results);
  CHECK(page.answer.sure == "No feasible point keeps to the constraints (memory at most 1 GB).");
  const Chart& curve = chart_of(page, "throughput-by-network-bandwidth");
  CHECK(curve.series.empty());
  CHECK(curve.note == "No point keeps to the constraints.");
  CHECK(curve.all.at(0).series.size() == 2);

  results.outside.clear();
  results.constraints.clear();
  results.constraints_differ = true;
  page = sweep_page(results);
  CHECK(page.answer.sure.find("different constraints") != std::string::npos);
  CHECK(chart_of(page, "throughput-by-network-bandwidth").series.size() == 2);
}

// Every pair of a value of `across` and one of `down`, counted from 1; the throughput is the product.
SweepResults product(std::size_t across, std::size_t down) {
  SweepResults results{.name = "n", .axes = {{"a.across", {}}, {"a.down", {}}}};
  for (std::size_t value = 0; value < across; ++value) {
    results.axes[0].values.push_back(std::to_string(value + 1) + " us");
  }
  for (std::size_t value = 0; value < down; ++value) {
    results.axes[1].values.push_back(std::to_string(value + 1));
  }
  for (std::uint32_t x = 0; x < across; ++x) {
    for (std::uint32_t y = 0; y < down; ++y) {
      results.value.insert(results.value.end(), {x, y});
      results.samples_per_second.push_back((x + 1.0) * (y + 1.0));
      results.iteration.push_back(1);
      results.keys.emplace_back("k");
    }
  }
  results.dollars_per_million = results.joules_per_sample = results.peak_memory =
      std::vector<double>(results.iteration.size(), Mark::kNone);
  return results;
}

TEST_CASE("mappings stand on axes without brackets and quotes", "[report][page]") {
  SweepResults results = product(2, 2);
  results.axes[0] = {"loader", {R"({"workers": "2", "decode": "1 ms"})", "none"}};
  const DocumentPage page = sweep_page(results);
  CHECK(chart_of(page, "throughput-by-loader").x.names == std::vector<std::string>{"workers: 2, decode: 1 ms", "none"});
}

TEST_CASE("neighbouring values share a cell where a map would have too many", "[report][page]") {
  // 50 x 50 are 2 500 cells, the most of a map; 51 make 26 columns of two values, the last of one.
  const DocumentPage whole = sweep_page(product(50, 50)), more = sweep_page(product(51, 50));
  CHECK(chart_of(whole, "throughput-over-across-down").series[0].marks.size() == 2500);
  CHECK(chart_of(whole, "throughput-over-across-down").note.empty());
  CHECK(chart_of(more, "throughput-over-across-down").x.names.size() == 26);
  CHECK(chart_of(more, "throughput-over-across-down").x.names.back() == "51 us");

  // 120 x 60: the wider side gives way until 40 x 60 are left.
  const DocumentPage page = sweep_page(product(120, 60));
  const Chart& map = chart_of(page, "throughput-over-across-down");
  CHECK(map.note == "A cell is the best of 3 neighbouring values across.");
  CHECK(map.x.names.size() == 40);
  CHECK(map.x.names.at(1) == "4 to 6 us");
  CHECK(map.y.names.size() == 60);
  CHECK(map.y.names.at(1) == "2");
  REQUIRE(map.series[0].marks.size() == 2400);
  for (const Mark& mark : map.series[0].marks) { // the best of a cell is its last value
    CHECK(mark.value == near(3 * (mark.x + 1) * (mark.y + 1)));
  }

  const DocumentPage both = sweep_page(product(200, 200)); // 4 each: 50 x 50
  CHECK(chart_of(both, "throughput-over-across-down").note ==
        "A cell is the best of 4 neighbouring values across and 4 neighbouring values down.");
  const auto columns = [](std::size_t across) {
    return chart_of(sweep_page(product(across, 2)), "throughput-over-across-down").x.names.size();
  };
  CHECK(columns(100) == 100); // the most on a side
  CHECK(columns(101) == 51);
  CHECK(columns(2000) == 100);
}

TEST_CASE("a large cloud is thinned without regard to axes, and says so", "[report][page]") {
  // The last axis changes from point to point: every second point, as of 4 000 for 2 000, has one of its values alone.
  for (const auto& [across, drawn] : std::vector<std::pair<std::size_t, std::size_t>>{{1000, 2000}, {2000, 2000}}) {
    SweepResults results = product(across, 2);
    for (std::size_t point = 0; point < results.points(); ++point) {
      results.dollars_per_million[point] = 1 + static_cast<double>(point % 2);
    }
    const DocumentPage page = sweep_page(results);
    const Chart& front = chart_of(page, "front-cost");
    const std::vector<Mark>& cloud = front.series.at(0).marks;
    CHECK(cloud.size() == drawn);
    // 1 000 of each are expected; 5 standard deviations, the square root of 4 000 / 16 each, are 80.
    const auto dear = std::count_if(cloud.begin(), cloud.end(), [](const Mark& mark) { return mark.y == 2; });
    CHECK(std::abs(dear - 1000) < 80);
    CHECK(front.note == (across == 1000 ? "" : "2000 of 4000 points are drawn, picked by lot; the front is of all."));
  }
}

TEST_CASE("neighbouring values share a point of a curve that has more than a window can show", "[report][page]") {
  CHECK(chart_of(sweep_page(product(2000, 2)), "throughput-by-across").note.empty());
  CHECK(chart_of(sweep_page(product(2000, 2)), "throughput-by-across").series[0].marks.size() == 2000);
  const DocumentPage page = sweep_page(product(4001, 2)); // 1 333 times three, and two more
  const Chart& curve = chart_of(page, "throughput-by-across");
  CHECK(curve.note == "A point is the best of 3 neighbouring values.");
  REQUIRE(curve.series[0].marks.size() == 1334);
  for (std::size_t at = 0; at < 1334; ++at) { // the best is the last, at the second value of the other axis
    CHECK(curve.series[0].marks[at].y == near(2.0 * static_cast<double>(std::min<std::size_t>(3 * at + 3, 4001))));
  }
}

TEST_CASE("a chart's note stands below the title of its figure, in lines that it holds", "[report][figures]") {
  const std::string forty(40, 'x'), long_note = forty + " " + forty + "\nend";
  const Figure figure = figure_of({.name = "c", .title = "t", .note = long_note});
  CHECK(figure.commands.find("set label 't'.\"\\n\".'" + forty + "'.\"\\n\".'" + forty + "'.\"\\n\".'end' at screen") !=
        std::string::npos);
}

TEST_CASE("a validation without rows has no errors to tell", "[report][validation]") {
  Validation validation{.source = "s"};
  validation.skipped = {{"a case", "no such device"}};
  std::string text = to_text(validation, false);
  CHECK_THAT(text, Catch::StartsWith("no row was predicted\n\nskipped"));
  CHECK_THAT(text, !Catch::Contains("%"));
  validation.rows = {{.case_name = "a", .metric = "iteration_seconds", .group = "g", .measured = 1, .predicted = 1.5}};
  text = to_text(validation, false);
  CHECK_THAT(text, !Catch::Contains("no row") && Catch::Contains("all") && Catch::Contains("50.00 %"));
}

// An example of every kind of document; a kind without one fails the test.
TEST_CASE("every kind of document has findings and something to look at", "[report][page]") {
  const test::SmallRun run = test::run({});
  const std::string trace = chrome_trace(run.graph, run.timeline, run.platform);
  Judgement judgement{.name = "j"};
  judgement.plans = {{.planner = "a",
                      .model = "m",
                      .platform = "p",
                      .feasible = true,
                      .iteration = Seconds{2},
                      .estimate = Seconds{1},
                      .lower_bound = Seconds{1}},
                     {.planner = "b",
                      .model = "m",
                      .platform = "p",
                      .feasible = true,
                      .iteration = Seconds{3},
                      .estimate = Seconds{3},
                      .lower_bound = Seconds{1}}};
  score(judgement);
  Validation validation{.source = "s"};
  validation.rows = {{.case_name = "c", .metric = "iteration_seconds", .measured = 1, .predicted = 2}};
  const std::map<std::string_view, std::string> examples = {
      {"buy",
       R"({"model": "m", "answer": "Take o.", "verdict": ["Take o.", "Surely.", "The plan."], "runs": [], "choices": [
          {"offer": "o", "devices": 8, "days": 3, "usd": 5, "interval": {"low_days": 2, "high_days": 4}},
          {"offer": "large", "devices": 8, "days": null, "why_not": "does not fit"}]})"},
      {"compare", to_json(small_comparison(), false)},
      {"replay", to_json(run_of("optimal", "zb-h1", 8, 1, 9), {"m", "p", {"s.yaml"}}, false, {{"timeline", trace}})},
      {"explain",
       R"({"strategy": "s", "schedule": "t", "explanation": {"summary": ["why"], "shares": [{"cause": "forward", "seconds": 1}]}})"},
      {"validate", to_json(validation)},
      {"calibrate predict",
       R"({"device": "d", "rows": [{"kernel": "k", "source": "fit", "measured": 1, "predicted": 2}]})"},
      {"calibrate show",
       R"({"device": "d", "measured": 1, "rows": [], "fits": [{"fit": "f", "form": "g", "points": 3, "median_ape": 0.1}]})"},
      {"judge", to_json(judgement, false)},
      {"adapt",
       R"({"model": "m", "platform": "p", "phases": [], "policies": [{"policy": "never", "iterations": 4, "total_seconds": 8,
          "rounds": [{"first_iteration": 0, "iterations": 4, "iteration_seconds": 2}]}]})"},
      {"a trace", trace},
  };
  for (const std::string_view kind : document_kinds()) {
    INFO(kind);
    REQUIRE(examples.contains(kind));
    const DocumentPage page = read_document("x.json", examples.at(kind));
    CHECK_FALSE(page.title.empty());
    std::size_t shown = 0;
    for (const PageSection& section : page.sections) {
      shown += section.charts.size() + section.tables.size() + section.timelines.size();
    }
    CHECK(shown > 0);
    CHECK_FALSE(page.answer.sentence.empty());
    CHECK(page.answer.sentence.ends_with('.'));
    CHECK(to_html({.title = page.title, .sections = page.sections}).find("</html>") != std::string::npos);
  }
  const DocumentPage replayed = read_document("x.json", examples.at("replay"));
  CHECK(replayed.title == "optimal, zb-h1, M 8 of m on p");
  CHECK(replayed.answer.sentence == "Training m on 2 devices takes 1.000 s per step.");
  CHECK(replayed.sections.at(1).timelines.at(0).title == replayed.title);
  CHECK(replayed.inputs == std::vector<std::string>{"s.yaml"});
  CHECK(read_document("x.json", R"({"strategy": "s", "schedule": "t", "iteration_seconds": null})").title ==
        "s, t, M 1"); // of before results said it
  CHECK(read_document("x.json", examples.at("calibrate show")).title == "Calibration of d");
  const DocumentPage judged = read_document("x.json", examples.at("judge"));
  CHECK(judged.answer.sentence.find("a comes nearest") == 0);
  CHECK(chart_of(judged, "regret").series.at(0).marks.at(1).x == near(50)); // 3 s for 2 s
  const DocumentPage adapted = read_document("x.json", examples.at("adapt"));
  CHECK(chart_of(adapted, "iterations").series.at(0).marks.back().x == 4);
}

TEST_CASE("a document that is no result is refused with a list of what is", "[report][page]") {
  CHECK(error_of([] { read_document("x.json", "{"); }).find("x.json:1:2: no JSON") == 0);
  CHECK(error_of([] { read_document("x.json", "[1]"); }).find("allowed: an object") != std::string::npos);
  const std::string other = error_of([] { read_document("x.json", "{\"schema\": \"stagecraft/1\"}"); });
  for (const std::string_view kind : document_kinds()) {
    CHECK(other.find(kind) != std::string::npos);
  }
  CHECK(error_of([] { read_document("x.json", R"({"runs": [1], "verdict": []})"); }).find("compare") !=
        std::string::npos);
}

TEST_CASE("figures of a page have names of their own", "[report][figures]") {
  const PageSection section{
      .title = "", .sentences = {}, .charts = {bars_of("b", "", "", {{"p", 1}}), bars_of("b", "", "", {{"p", 1}})}};
  const std::vector<Figure> figures = figures_of(Page{.title = "", .sections = {section, section}});
  std::set<std::string> names;
  for (const Figure& figure : figures) {
    names.insert(figure.name);
  }
  CHECK(names == std::set<std::string>{"b", "b-2", "b-3", "b-4"});
}
