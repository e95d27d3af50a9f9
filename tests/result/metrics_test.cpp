// Every row of the table of metrics, in every form that a run takes. A new row is tested by these loops at once.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>
#include <set>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/result/metrics_table.hpp"
#include "tests/result/run_keys.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

// Runs that between them have a figure for every metric, and the best of them once more as if it did not fit.
Comparison all_kinds() {
  Comparison comparison =
      test::compare_text("model: gpt2\nplatform: nvlink-v100\n"
                         "training: {global_batch: 16, micro_batches: [4, 8], optimizer: sgd}\n"
                         "loader: {decode: 1 ms}\n"
                         "perturb: {samples: 5, jitter: 0.1}\n"
                         "confidence: 5\n"
                         "compare: {strategies: [uniform, optimal], schedules: [1f1b, pipedream]}\n")
          .comparison;
  comparison.runs.push_back(comparison.runs.front());
  comparison.runs.back().feasible = false;
  comparison.runs.back().why_not = "memory";
  return comparison;
}

Json parsed(const Comparison& comparison) { return Json::parse(to_json(comparison, false)).at("runs"); }

// What stands at the end of a path of keys; null where they do not lead there.
Json at_path(const Json& run, std::string path) {
  for (char& c : path) {
    c = c == '.' ? '/' : c;
  }
  const Json::json_pointer pointer("/" + path);
  return run.contains(pointer) ? run.at(pointer) : Json();
}

// The JSON of a feasible run, as one number.
double number_in(const Json& run, const Metric& metric) {
  const Json found = at_path(run, std::string(metric.path()));
  switch (metric.shape) {
  case MetricShape::number:
    break;
  case MetricShape::count:
    CHECK(found.is_number_integer());
    break;
  case MetricShape::per_device:
    CHECK(found.size() == run.at("devices").size());
    return *std::max_element(found.begin(), found.end());
  case MetricShape::length:
    CHECK(found.is_array());
    return static_cast<double>(found.size());
  case MetricShape::largest:
    return found.is_null() ? 0 : found.at(0).is_number() ? found.get<std::vector<double>>().front() : kNoFigure;
  }
  return found.is_null() ? kNoFigure : found.get<double>();
}

constexpr double kLeast = std::numeric_limits<double>::lowest(); // a rounding may leave less than 0

bool same(double one, double other) { return one == other || (std::isnan(one) && std::isnan(other)); }

TEST_CASE("a run in JSON has the names that stay", "[result]") {
  const Json runs = parsed(all_kinds());
  for (const Json& run : runs) {
    for (const char* key : test::kRunKeys) {
      CAPTURE(key);
      CHECK(run.contains(key));
    }
    const bool late = run.at("schedule") == "pipedream";
    CHECK(run.at("exact_training") == (run.at("feasible") == true ? Json(!late) : Json()));
  }
}

TEST_CASE("the interval is that of measured runs, or else of draws", "[result]") {
  Comparison comparison;
  Run& run = comparison.runs.emplace_back();
  run.feasible = true;
  const auto interval = [&] { return parsed(comparison).front().at("interval"); };
  CHECK(interval().is_null());
  run.confidence = RunConfidence{.iteration = {40, Seconds{2}, Seconds{3}, Seconds{5}}};
  CHECK(interval() ==
        Json{{"level", 0.9}, {"low_seconds", 2}, {"high_seconds", 5}, {"basis", "40 draws of errors of costs"}});
  run.expected = RunExpected{.low = Seconds{1}, .high = Seconds{4}, .family = "times", .models = 9, .median = 0.1};
  CHECK(interval() ==
        Json{{"level", 0.9}, {"low_seconds", 1}, {"high_seconds", 4}, {"basis", "times, 9 models, median error 10 %"}});
  run.feasible = false;
  CHECK(interval().is_null());
}

TEST_CASE("texts of runs read back from CSV whatever they contain, and none is a formula", "[result]") {
  for (const std::string text : {"a,b", "say \"x\"", "two\nlines", "=1+1", "-x", "'=1", ";"}) {
    CAPTURE(text);
    Run run;
    run.strategy = run.schedule = run.engine = run.why_not = run.would_fit = text;
    const std::string csv = to_csv(Comparison{.runs = {run}});
    const CsvTable table(csv, "t.csv", {});
    REQUIRE(table.rows() == 1);
    for (const char* column : {"strategy", "schedule", "engine", "why_not", "would_fit"}) {
      CHECK(table.at(0, column).text == text);
    }
    CHECK(csv.find("\n=") == std::string::npos);
    CHECK(csv.find(",=") == std::string::npos);
  }
}

TEST_CASE("every metric has its own name, a description, and one function that gives it", "[result][metrics]") {
  std::set<std::string_view> names;
  for (const Metric& metric : kMetrics) {
    INFO(metric.name);
    CHECK(names.insert(metric.name).second);
    CHECK(!metric.help.empty());
    CHECK((metric.value == nullptr) != (metric.per_device == nullptr));
    CHECK((metric.per_device != nullptr) == (metric.shape == MetricShape::per_device));
    CHECK(metric.scale > 0);
    CHECK((metric.scale == 1 || !metric.heading.empty()));
  }
}

TEST_CASE("every metric is in JSON: its value where a run is feasible, null elsewhere", "[result][metrics]") {
  const Comparison comparison = all_kinds();
  const Json runs = parsed(comparison);
  for (const Metric& metric : kMetrics) {
    INFO(metric.name);
    bool known = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Run& run = comparison.runs[i];
      if (run.feasible) {
        CHECK(same(number_in(runs[i], metric), value_of(metric, run)));
        known = known || !std::isnan(value_of(metric, run));
      } else if (metric.is_key()) {
        REQUIRE(runs[i].contains(std::string(metric.path())));
        CHECK(runs[i].at(std::string(metric.path())).is_null());
      } else if (metric.shape != MetricShape::length) { // names of devices and stages are no figures
        CHECK(at_path(runs[i], std::string(metric.path())).is_null());
      }
    }
    CHECK(known);
  }
}

TEST_CASE("CSV has the metrics with a place, in that order, and no others", "[result][metrics]") {
  const Comparison comparison = all_kinds();
  const std::string text = to_csv(comparison);
  const CsvTable table(text, "runs.csv", {});
  std::size_t last = 0;
  for (const Metric& metric : metrics_by<&Metric::csv>()) {
    const std::size_t at = ("," + text.substr(0, text.find('\n')) + ",").find("," + std::string(metric.name) + ",");
    INFO(metric.name);
    REQUIRE(at != std::string::npos);
    CHECK(at > last);
    last = at;
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const Run& run = comparison.runs[i];
      const CsvCell& cell = table.at(i, metric.name);
      if (!run.feasible || (metric.per_device == nullptr && std::isnan(metric.value(run)))) {
        CHECK(cell.text.empty());
      } else if (metric.per_device == nullptr) {
        CHECK(cell.number(kLeast) == metric.value(run));
      } else {
        std::vector<double> values;
        for (const CsvCell& part : cell.split(';')) {
          values.push_back(part.number(kLeast));
        }
        CHECK(values == metric.per_device(run));
      }
    }
  }
  for (const Metric& metric : kMetrics) {
    INFO(metric.name);
    CHECK((metric.csv > 0 || metric.shape == MetricShape::length || !table.has(metric.name)));
  }
}

} // namespace
} // namespace stagecraft
