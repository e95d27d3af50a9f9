// Real runs kept with the project: replays of their durations, and predictions, as reports/reality describes them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/statistics.hpp"
#include "sim/validate/run_accuracy.hpp"
#include "sim/validate/validators.hpp"
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

// Pipelines on two cores: uneven, of four schedules, with recompute, bound by computing and by memory, equal and
// unequal cores.
TEST_CASE("kept runs on cores are retold within half a per cent and predicted within five", "[study][run][reality]") {
  const Validation validation = validate(kRoot / "reports/reality-cores/runs");
  REQUIRE(validation.rows.size() >= 85);
  const std::vector<double> predicted = errors_of(validation.rows);
  CHECK(quantile(predicted, 0.5) <= 0.05);
  CHECK(quantile(predicted, 0.9) <= 0.10);
  const std::vector<double> retold = errors_of(validation.baselines.at("own durations"));
  CHECK(quantile(retold, 0.5) <= 0.005);
  CHECK(quantile(retold, 0.9) <= 0.02);
}

// Errors of the rows whose names begin so.
std::vector<double> errors_of(const std::vector<ValidationRow>& rows, const std::string& front) {
  std::vector<ValidationRow> some;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(some),
               [&](const ValidationRow& row) { return row.case_name.starts_with(front); });
  return errors_of(some);
}

// Operands of 4 MB on both cores: measuring how pairs of works slow each other removes at least half of the error.
TEST_CASE("contention for memory is predicted where it decides", "[study][run][reality]") {
  const Validation validation = validate(kRoot / "reports/reality-cores/runs");
  const auto median_of = [](const std::vector<ValidationRow>& rows) {
    const std::vector<double> errors = errors_of(rows, "elementwise-256-");
    REQUIRE(errors.size() == 5);
    return quantile(errors, 0.5);
  };
  const double predicted = median_of(validation.rows);
  CHECK(predicted <= 0.03);
  CHECK(predicted <= 0.5 * median_of(validation.baselines.at("no device slows another")));
  CHECK(predicted < median_of(validation.baselines.at("a slowdown per device")));
}

// How much longer the run predicted to be the fastest takes than the fastest, of the runs whose names begin so.
double regret(const std::vector<ValidationRow>& rows, const std::string& front) {
  const ValidationRow* chosen = nullptr;
  const ValidationRow* fastest = nullptr;
  for (const ValidationRow& row : rows) {
    if (row.case_name.starts_with(front)) {
      chosen = chosen == nullptr || row.predicted < chosen->predicted ? &row : chosen;
      fastest = fastest == nullptr || row.measured < fastest->measured ? &row : fastest;
    }
  }
  REQUIRE(chosen != nullptr);
  return chosen->measured / fastest->measured - 1;
}

// Equal replicas behind one port leave the lockstep of an exact replay as soon as they differ. Lockstep chose plans
// that take 7.5 and 39.8 % longer than the fastest.
TEST_CASE("replicas that drift apart find the fastest of kept runs", "[study][run][reality]") {
  const Validation validation = validate(kRuns);
  for (const auto& [contest, in_lockstep] : {std::pair<std::string, double>{"bert-large-ethernet-t4-cluster-", 0.07},
                                             std::pair<std::string, double>{"bert-large-four-generations-", 0.39}}) {
    CAPTURE(contest);
    CHECK(regret(validation.rows, contest) <= 0.02);
    CHECK(regret(validation.baselines.at("replicas in lockstep"), contest) >= in_lockstep);
  }
}

// Predicted 21 to 56 % too slow in lockstep. What is left: ports serve transfers of a few packets one after the other.
TEST_CASE("plans of equal replicas are predicted within a fifth, and no other changes", "[study][run][reality]") {
  const Validation validation = validate(kRuns);
  const std::vector<ValidationRow>& in_lockstep = validation.baselines.at("replicas in lockstep");
  double largest = 0, before = 0;
  for (const ValidationRow& row : in_lockstep) {
    const auto now = std::find_if(validation.rows.begin(), validation.rows.end(),
                                  [&](const ValidationRow& other) { return other.case_name == row.case_name; });
    REQUIRE(now != validation.rows.end());
    CAPTURE(row.case_name);
    const bool replicated =
        row.case_name.find("-dapple-") != std::string::npos || row.case_name.find("-pipedream-") != std::string::npos;
    CHECK((replicated || now->predicted == row.predicted));
    largest = std::max(largest, std::abs(now->error()));
    before = std::max(before, std::abs(row.error()));
  }
  CHECK(largest <= 0.2);
  CHECK(before >= 0.55);
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
