// Errors of predictions by hand.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/report/validation_charts.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

std::vector<ValidationRow> rows_of(const std::string& metric, const std::vector<std::pair<double, double>>& pairs) {
  std::vector<ValidationRow> rows;
  for (const auto& [measured, predicted] : pairs) {
    rows.push_back({"case", metric, "", measured, predicted});
  }
  return rows;
}

TEST_CASE("errors over rows", "[report][validation]") {
  // Errors +10 %, -20 %, 0, +30 %.
  const Accuracy accuracy = accuracy_of(rows_of("m", {{10, 11}, {20, 16}, {30, 30}, {10, 13}}));
  CHECK(accuracy.mape == near(0.15));
  CHECK(accuracy.median_ape == near(0.15));
  CHECK(accuracy.p90_ape == near(0.27)); // 0.7 of the way from the third to the fourth
  CHECK(accuracy.max_ape == near(0.3));
  CHECK(accuracy.bias == near(0.05));
  CHECK(accuracy_of({}).mape == 0);
}

TEST_CASE("rank correlation, ties sharing their mean rank", "[report][validation]") {
  CHECK(accuracy_of(rows_of("m", {{1, 10}, {2, 20}, {3, 400}})).spearman.value() == near(1));
  CHECK(accuracy_of(rows_of("m", {{1, 3}, {2, 2}, {3, 1}})).spearman.value() == near(-1));
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
  CHECK(accuracy_of(rows_of("m", {{1, 1}, {2, 2}, {2, 3}, {4, 4}})).spearman.value() == near(4.5 / std::sqrt(4.5 * 5)));
  CHECK_FALSE(accuracy_of(rows_of("m", {{1, 1}, {2, 2}})).spearman); // too few
  // Two metrics of three rows, one in order and one in reverse; put together as one they would be in order nearly.
  std::vector<ValidationRow> both = rows_of("m", {{1, 1}, {2, 2}, {3, 3}});
  const std::vector<ValidationRow> other = rows_of("n", {{100, 103}, {101, 102}, {102, 101}});
  both.insert(both.end(), other.begin(), other.end());
  CHECK(std::abs(accuracy_of(both).spearman.value()) < 1e-12);
}

// Three runs of one contest and one of another: a ranking of the first; errors of 10, 0 and 50 % in ascending order.
TEST_CASE("a validation as figures", "[report][validation][figures]") {
  Validation validation;
  validation.rows = rows_of("iteration_seconds", {{2, 3}, {1, 1.1}, {4, 4}, {8, 8}});
  for (ValidationRow& row : validation.rows) {
    row.contest = row.measured < 8 ? "a on b, batch 4" : "other";
  }
  const std::vector<Figure> figures = figures_of(charts_of(validation));
  REQUIRE(figures.size() == 3);
  CHECK(figures[0].name == "predicted-iteration-seconds");
  CHECK(figures[0].x == "measured iteration [s]");
  CHECK(figures[0].series[0].rows == "2 3\n1 1.1\n4 4\n");
  CHECK(figures[1].name == "errors-iteration-seconds");
  CHECK(figures[1].series[0].rows == "0.01 33.3333\n10 66.6667\n50 100\n");
  CHECK(figures[2].name == "ranking-a-on-b-batch-4");
  CHECK(figures[2].series[0].rows == "1 1\n2 2\n3 4\n");
  CHECK(figures[2].series[1].rows == "1 1.1\n2 3\n3 4\n");
}

TEST_CASE("a validation as JSON, CSV and text", "[report][validation]") {
  Validation validation{.source = "data", .rows = rows_of("m", {{10, 11}}), .skipped = {{"other", "no clock"}}};
  validation.baselines["plain"] = rows_of("m", {{10, 20}});
  const std::string json = to_json(validation);
  for (const char* key : {"\"schema\"", "\"rows\"", "\"mape\"", "\"median_ape\"", "\"p90_ape\"", "\"max_ape\"",
                          "\"bias\"", "\"spearman\"", "\"baselines\"", "\"plain\"", "\"skipped\"", "\"no clock\""}) {
    CHECK_THAT(json, Catch::Contains(key));
  }
  CHECK_THAT(to_csv(validation),
             Catch::StartsWith("case,metric,group,measured,predicted,error,status,assumed,why\ncase,m,,10,11,0.1"));
  CHECK_THAT(to_text(validation, false), Catch::Contains("10.00 %") && Catch::Contains("baseline: plain"));
  validation.rows = rows_of("layer_seconds", {{0.00021, 0.00042}}); // too small for fixed decimals
  CHECK_THAT(to_text(validation, false), Catch::Contains("210.0 us") && Catch::Contains("420.0 us"));
}

TEST_CASE("rows that are not scored, and those that were skipped, are in the table and in the CSV",
          "[report][validation]") {
  const auto row = [](const char* name) {
    return ValidationRow{.case_name = name,
                         .metric = "model_flops_per_device_second",
                         .group = "g",
                         .measured = 100e12,
                         .predicted = 110e12,
                         .low = 90e12,
                         .high = 120e12,
                         .assumed = {"a thing", "that it fits, though a device lacks 1 GiB"}};
  };
  Validation validation{.source = "data",
                        .calibration = {row("taught")},
                        .skipped = {{"gone", "no such device", "iteration_seconds", "g"}}};
  const std::string alone = to_text(validation, false);
  CHECK_THAT(alone, !Catch::Contains("no row was predicted") && Catch::Contains("taught") &&
                        Catch::Contains("not scored") && Catch::Contains("rows that constants were fitted on"));
  CHECK(predicts_any(validation));
  CHECK(sentence_on_unscored(validation) ==
        "1 row is skipped, each with its reason; 1 row is predicted but not scored, "
        "since constants rest on their models");
  validation.rows = {row("ours")};
  const std::string csv = to_csv(validation);
  CHECK_THAT(csv, Catch::StartsWith("case,metric,group,measured,predicted,error,low,high,family,status,assumed,why\n"));
  CHECK_THAT(csv, Catch::Contains(",scored,\"a thing; that it fits, though a device lacks 1 GiB\",\ntaught,"));
  CHECK_THAT(csv, Catch::Contains(",not scored,") &&
                      Catch::EndsWith("gone,iteration_seconds,g,,,,,,,skipped,,no such device\n"));
  const std::string text = to_text(validation, TableView{.columns = {"all"}});
  CHECK_THAT(text, Catch::Contains("low") && Catch::Contains("90.00 TFLOP/s") && Catch::Contains("120.0 TFLOP/s"));
  CHECK_THAT(text, Catch::Contains("2  a thing\n") && Catch::Contains("2  that it fits\n"));
  validation = {.source = "data", .verdict_rows = {{"a", "g", false, false}, {"b", "g", false, true}}};
  CHECK(predicts_any(validation));
  CHECK_THAT(to_csv(validation), Catch::EndsWith("\na,out_of_memory,g,1,1,,right,,\nb,out_of_memory,g,1,0,,wrong,,\n"));
  CHECK_THAT(to_text(validation, false), Catch::StartsWith("case") && Catch::Contains("wrong"));
}

} // namespace
} // namespace stagecraft
