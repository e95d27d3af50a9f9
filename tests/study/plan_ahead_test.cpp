// Planning in several processes gives what planning in one gives, and leaves nothing to be planned again.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/plan_ahead.hpp"
#include "sim/study/planning/fit_changes.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Memory binds: some runs do not fit, with changes of each kind, and a reference asks for the plans of the others.
const std::string kTight =
    chain_study("training: {global_batch: 8, micro_batches: [1, 2, 4], recompute: [none, full]}\n"
                "compare: {strategies: [single, uniform, optimal, dapple, dynamic, best-known],\n"
                "          schedules: [gpipe, 1f1b, zb-h1, search]}\n",
                "{devices: 2, memory: 30 MB}");

TEST_CASE("a comparison is the same with any number of workers", "[study][plan-ahead]") {
  const Study read = study(kTight);
  const auto compared = [&](int workers) {
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    std::vector<std::size_t> ends; // of planning, then of changes
    const auto progress = [&](std::size_t done, std::size_t all) {
      CHECK(done <= all);
      if (done == all) {
        ends.push_back(all);
      }
    };
    const ComparisonResult result = compare(memo, {.progress = progress, .workers = workers});
    CHECK(ends == std::vector{scenarios_of(read).size(), memo.fit_changes.size()});
    return to_json(result.comparison, false);
  };
  const std::string one = compared(1);
  CHECK_THAT(one, Catch::Contains("micro_batches: ") && Catch::Contains("more memory per device"));
  CHECK(compared(2) == one);
  CHECK(compared(7) == one);
}

TEST_CASE("a batch of fewer samples than replicas that does not fit has no change of samples", "[study][plan-ahead]") {
  const Study read = study(chain_study("training: {global_batch: 2, micro_batches: 1, parallel: {zero: 1}}\n"
                                       "compare: {strategies: [mesh], schedules: [1f1b]}\n",
                                       "{devices: 4, memory: 20 MB}"));
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Comparison comparison = compare(memo, {}).comparison;
  REQUIRE(comparison.runs.size() == 1);
  CHECK_FALSE(comparison.runs.front().feasible);
}

TEST_CASE("changes are looked for as far as rows are shown, and until the verdict has one", "[study][plan-ahead]") {
  const Study read = study(kTight);
  const auto compared = [&](std::size_t changes) {
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    return compare(memo, {.changes = changes}).comparison;
  };
  const Comparison all = compared(1000);
  const auto first = std::find_if(all.runs.begin(), all.runs.end(), [](const Run& run) { return !run.feasible; });
  const auto named = std::find_if(first, all.runs.end(), [](const Run& run) { return !run.would_fit.empty(); });
  REQUIRE(named != all.runs.end());
  CHECK(std::count_if(first, all.runs.end(), [](const Run& run) { return !run.would_fit.empty(); }) > 10);
  for (const long shown : {0, 1, 10}) {
    const Comparison some = compared(static_cast<std::size_t>(shown));
    CHECK(some.verdict == all.verdict);
    for (std::size_t i = 0; i < all.runs.size(); ++i) {
      const auto at = all.runs.begin() + static_cast<long>(i);
      const bool looked = at < first + shown || at <= named;
      CHECK(some.runs[i].would_fit == (looked ? all.runs[i].would_fit : ""));
    }
  }
}

TEST_CASE("after planning ahead in other processes nothing is left to plan", "[study][plan-ahead]") {
  const Study read = study(kTight);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const std::vector<Scenario> scenarios = scenarios_of(read);
  plan_ahead(memo, scenarios, 3);
  const std::size_t ahead = memo.plans.plannings();
  std::vector<Scenario> unplanned;
  std::copy_if(scenarios.begin(), scenarios.end(), std::back_inserter(unplanned), [&](const Scenario& scenario) {
    return std::holds_alternative<Infeasible>(plan_scenario(memo, scenario).result);
  });
  CHECK(ahead > 0);
  CHECK(memo.plans.plannings() == ahead);
  find_changes_ahead(memo, unplanned, 3);
  const std::size_t plannings = memo.plans.plannings();
  const std::size_t changes = memo.fit_changes.size();
  CHECK(plannings > ahead);
  CHECK(changes > 0);
  for (const Scenario& scenario : unplanned) {
    smallest_fitting_change(memo, scenario);
  }
  CHECK(memo.plans.plannings() == plannings);
  CHECK(memo.fit_changes.size() == changes);
}

} // namespace
} // namespace stagecraft::test
