// What an H200 did, kept with the project: the pages' figures follow from the kept files.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "sim/validate/run_accuracy.hpp"
#include "sim/validate/validators.hpp"
#include "tests/reports/reports.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// The mean error of a metric over cases whose names begin with one of these; of all without any.
double mean_error(const Validation& validation, const std::string& metric, const std::vector<std::string>& fronts) {
  double sum = 0;
  int rows = 0;
  for (const ValidationRow& row : validation.rows) {
    const bool meant = fronts.empty() || std::any_of(fronts.begin(), fronts.end(), [&](const std::string& front) {
                         return row.case_name.starts_with(front);
                       });
    if (row.metric == metric && meant) {
      sum += std::abs(row.error());
      ++rows;
    }
  }
  REQUIRE(rows > 0);
  return sum / rows;
}

TEST_CASE("reports/witness-h200 says how far off steps of PyTorch are", "[validate][witness][reports]") {
  const Validation validation = validate(kRoot / "reports/witness-h200/measured", {.shipped = kRoot});
  const auto whole = [&](const std::string& metric, const std::vector<std::string>& fronts) {
    return std::to_string(std::lround(100 * mean_error(validation, metric, fronts))) + " %";
  };
  const std::string captured = "captured_step_seconds", eager = "eager_step_seconds";
  check_says("witness-h200", "it is " + whole(captured, {}) + " and " + whole(eager, {}) +
                                 "; on models that taught nothing** (GPT-2 355M, BERT-large, VGG-16) **" +
                                 whole(captured, {"gpt2-medium", "bert", "vgg"}) + " and " +
                                 whole(eager, {"gpt2-medium", "bert", "vgg"}) + ",**");
  check_says("witness-h200", "Captured steps of the two transformers among these are " +
                                 whole(captured, {"gpt2-medium", "bert"}) + " off, of VGG-16 " +
                                 whole(captured, {"vgg"}));
  check_says("witness-h200", "Peak memory is " + whole("eager_peak_bytes", {}) + " too low in the mean");
}

TEST_CASE("kept pipelines on parts of an H200 are predicted as their page says", "[validate][run][reports]") {
  const Validation validation = validate(kRoot / "reports/reality-gpu/runs");
  REQUIRE(validation.rows.size() == 30);
  std::vector<double> errors;
  for (const ValidationRow& row : validation.rows) {
    CHECK(row.error() < 0); // always too short
    errors.push_back(std::abs(row.error()));
  }
  check_says("reality-gpu", "an iteration's time is " + percent(quantile(errors, 0.5), 1) + " off in the median, " +
                                percent(quantile(errors, 0.9), 1) + " at the 90th percentile and " +
                                percent(quantile(errors, 1), 1) + " at most");
}

} // namespace
} // namespace stagecraft::test
