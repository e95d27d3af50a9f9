// Real runs that are kept with the project, retold and predicted: what reports/reality says of them, every time alike.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/statistics.hpp"
#include "sim/study/run_accuracy.hpp"
#include "sim/study/validators.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

const fs::path kRuns = kRoot / "reports/reality/runs";

std::vector<double> errors_of(const std::vector<ValidationRow>& rows) {
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    errors.push_back(std::abs(row.error()));
  }
  return errors;
}

TEST_CASE("kept runs are retold within half a per cent and predicted within three", "[study][run][reality]") {
  const Validation validation = validate(kRuns);
  REQUIRE(validation.rows.size() >= 24);
  const std::vector<double> predicted = errors_of(validation.rows);
  CHECK(quantile(predicted, 0.5) <= 0.03);
  CHECK(quantile(predicted, 0.9) <= 0.08);
  const std::vector<double> retold = errors_of(validation.baselines.at("own durations"));
  CHECK(quantile(retold, 0.5) <= 0.005);
  CHECK(quantile(retold, 0.9) <= 0.02);
}

// Two stages on two cores: uneven, of two schedules, multi-layer perceptrons and a transformer, equal and unequal
// cores.
TEST_CASE("kept runs on cores are retold within half a per cent and predicted within five", "[study][run][reality]") {
  const Validation validation = validate(kRoot / "reports/reality-cores/runs");
  REQUIRE(validation.rows.size() >= 36);
  const std::vector<double> predicted = errors_of(validation.rows);
  CHECK(quantile(predicted, 0.5) <= 0.05);
  CHECK(quantile(predicted, 0.9) <= 0.10);
  const std::vector<double> retold = errors_of(validation.baselines.at("own durations"));
  CHECK(quantile(retold, 0.5) <= 0.005);
  CHECK(quantile(retold, 0.9) <= 0.02);
}

// The runs of one model on one platform compete; there are at least 24 of the first.
TEST_CASE("the simulator ranks kept runs as reality does", "[study][run][reality]") {
  std::vector<double> measured, predicted;
  for (const ValidationRow& row : validate(kRuns).rows) {
    if (row.case_name.starts_with("vgg16-mixed-v100-p100-")) {
      measured.push_back(row.measured);
      predicted.push_back(row.predicted);
    }
  }
  REQUIRE(measured.size() >= 24);
  CHECK(spearman(measured, predicted).value() >= 0.95);
  const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
  CHECK(measured[chosen] <= 1.02 * *std::min_element(measured.begin(), measured.end()));
}

TEST_CASE("a kept run is compared task by task", "[study][run][reality]") {
  const fs::path file = *fs::directory_iterator(kRuns);
  const RunRecord record = read_run_record(file);
  const RunAccuracy accuracy = accuracy_of(record);
  int tasks = 0;
  for (const KindErrors& kind : accuracy.kinds) {
    tasks += kind.tasks;
  }
  CHECK(tasks == record.graph.executed() * record.timeline.iterations);
  for (std::size_t device = 0; device < accuracy.device_measured.size(); ++device) {
    double all = accuracy.device_measured[device].busy;
    for (const double waiting : accuracy.device_measured[device].waiting) {
      all += waiting;
    }
    CHECK(all <= accuracy.measured * (1 + 1e-9)); // what comes after its last task is in no gap
  }
  CHECK(to_json(record, accuracy) == to_json(read_run_record(file), accuracy_of(read_run_record(file))));
}

} // namespace
} // namespace stagecraft::test
