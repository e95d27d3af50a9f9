// Planning in several processes gives what planning in one gives, and leaves nothing to be planned again.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/fit_changes.hpp"
#include "sim/study/plan_ahead.hpp"
#include "sim/study/plan_scenario.hpp"
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
    std::size_t last = 0;
    const ComparisonResult result = compare(
        memo,
        [&](std::size_t done, std::size_t all) {
          CHECK(done >= last);
          CHECK(all == scenarios_of(read).size());
          last = done;
        },
        workers);
    CHECK(last == scenarios_of(read).size());
    return to_json(result.comparison, false);
  };
  const std::string one = compared(1);
  CHECK_THAT(one, Catch::Contains("micro_batches: ") && Catch::Contains("more memory per device"));
  CHECK(compared(2) == one);
  CHECK(compared(7) == one);
}

TEST_CASE("after planning ahead in other processes nothing is left to plan", "[study][plan-ahead]") {
  const Study read = study(kTight);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const std::vector<Scenario> scenarios = scenarios_of(read);
  plan_ahead(memo, scenarios, 3);
  const std::size_t plannings = memo.plans.plannings();
  const std::size_t changes = memo.fit_changes.size();
  CHECK(plannings > 0);
  CHECK(changes > 0);
  for (const Scenario& scenario : scenarios) {
    if (std::holds_alternative<Infeasible>(plan_scenario(memo, scenario).result)) {
      smallest_fitting_change(memo, scenario);
    }
  }
  CHECK(memo.plans.plannings() == plannings);
  CHECK(memo.fit_changes.size() == changes);
}

} // namespace
} // namespace stagecraft::test
