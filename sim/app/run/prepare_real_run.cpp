// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/prepare_real_run.hpp"

#include "sim/app/common/output.hpp"
#include "sim/study/compare/plan_notes.hpp"
#include "sim/study/compare/prepare.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

// The plan of a strategy that searches by replays, and here gets real runs in their place.
PlanResult plan_by_runs(const RealRunOptions& options, bool quiet, const pipeline::BackendRow& row, const Study& study,
                        const Scenario& scenario, StudyMemo& memo) {
  if (!scenario.strategy->searches || scenario.schedule == nullptr) {
    std::vector<std::string> searching;
    for (const StrategyRow& strategy : strategies()) {
      if (strategy.searches) {
        searching.emplace_back(strategy.name);
      }
    }
    throw InputError({"--measured", 0, 0},
                     "asks for a named schedule and a strategy that measures its plans; allowed: " + join(searching));
  }
  PlanRequest request = plan_request(memo, scenario);
  request.replay = nullptr; // real runs decide
  request.evaluate = [&](const Plan& plan) -> Evaluation {
    Scenario given = scenario;
    given.strategy = nullptr;
    given.plan = &plan;
    const Prepared prepared = run_scenario(memo, given);
    const Run& run = prepared.run;
    if (!run.feasible) {
      return {.why_not = run.why_not};
    }
    Evaluation measured = RealRun(options, row, study, prepared).evaluate();
    if (!quiet) {
      remark("a plan measured: " + to_text(measured.iteration) + " an iteration\n");
    }
    return measured;
  };
  return make_plan(*scenario.strategy, request);
}

} // namespace

PreparedRealRun prepare_real_run(const pipeline::BackendRow& row, Study given_study, const RunOptions& run,
                                 const RealRunOptions& options, bool quiet) {
  PreparedRealRun ready{std::move(given_study), {}, {}, {}};
  if (ready.study.training.clip_gradients) {
    throw InputError({"training.clip_gradients", 0, 0}, "a real run does not clip gradients; allowed: false");
  }
  if (ready.study.training.sharding.by_unit()) {
    throw InputError({"training.parallel", 0, 0},
                     "a real run gathers no weights and reduces no gradients unit by unit; "
                     "allowed: zero 0, or zero 1 with 'gather: after-step'");
  }
  if (ready.study.training.offload.on()) {
    throw InputError({"training.offload", 0, 0}, "a real run leaves nothing to hosts; allowed: no 'offload'");
  }
  if (ready.study.training.fp8->products) {
    throw InputError({"training.fp8", 0, 0}, "a real run has no products in 8 bits; allowed: none");
  }
  if (row.holds_cores) {
    ready.study.training.blocking_sends = BlockingSends::always;
  }
  ready.study.training.ordered_sends = true; // because connections keep the order of sends
  ready.study.training.all_reduce = &kHopByHop;
  const Study& study = ready.study;
  Scenario scenario;
  ready.schedule = given_runnable_schedule(run.schedule, study);
  ready.schedule.put_into(scenario);
  ready.given = given_plan(run, study);
  ready.given.put_into(scenario);
  if (ready.given.strategy == nullptr) {
    remark_note(plan_notes(ready.given.plan, *study.model, study.training));
  }
  if (options.measured && row.runs_elsewhere()) {
    throw InputError({"--measured", 0, 0},
                     "backend '" + std::string(row.name) + "' measures no plans; allowed: another backend");
  }
  if (!options.carried_out.empty() && !row.runs_elsewhere()) {
    throw InputError({"--carried-out", 0, 0}, "is of backend gpu; allowed: --backend gpu");
  }
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  scenario.micro_batches = choose_micro_batches(memo, scenario);
  if (options.measured) {
    PlanResult result =
        run.strategy.empty() ? PlanResult{ready.given.plan} : plan_by_runs(options, quiet, row, study, scenario, memo);
    if (Plan* made = std::get_if<Plan>(&result)) {
      ready.given = {nullptr, std::move(*made)};
      ready.given.put_into(scenario);
    }
  }
  ready.prepared = prepare(memo, {scenario});
  replay(memo.costs, ready.prepared);
  return ready;
}

} // namespace stagecraft
