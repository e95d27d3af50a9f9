// stagecraft execute: a plan under a schedule carried out for real, and its prediction beside it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/given_run.hpp"
#include "sim/app/real_run.hpp"
#include "sim/base/file.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/table.hpp"
#include "sim/study/describe_rounds.hpp"
#include "sim/study/plan_scenario.hpp"
#include "sim/study/prepare.hpp"
#include "sim/study/replay_prepared.hpp"
#include "sim/validate/run_accuracy.hpp"

namespace stagecraft {
namespace {

// What --plan or --strategy and --schedule say, ready to run; or why it cannot.
struct Asked {
  Study study;
  GivenPlan given;
  std::optional<ScheduleFile> orders;
  std::vector<Prepared> prepared;

  const Run& run() const { return prepared.front().run; }
};

// The plan of a strategy that asks for replays of its plans and gets real runs.
PlanResult plan_by_runs(const Options& options, const pipeline::BackendRow& row, const Study& study,
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
  request.evaluate = [&](const Plan& plan) -> Evaluation {
    Scenario given = scenario;
    given.strategy = nullptr;
    given.plan = &plan;
    const Prepared prepared = run_scenario(memo, given);
    const Run& run = prepared.run;
    if (!run.feasible) {
      return {.why_not = run.why_not};
    }
    const Evaluation measured = RealRun(options, row, study, prepared).evaluate();
    if (!options.quiet) {
      remark("a plan measured: " + to_text(measured.iteration) + " an iteration\n");
    }
    return measured;
  };
  return make_plan(*scenario.strategy, request);
}

Asked ask(const Options& options, const pipeline::BackendRow& row) {
  Asked asked{study_from(options), {}, {}, {}};
  asked.study.training.blocking_sends |= row.holds_cores;
  asked.study.training.ordered_sends = true; // as connections are
  const Study& study = asked.study;
  Scenario scenario;
  asked.orders = given_orders(options.schedule);
  if (asked.orders) {
    if (const auto defects = schedule_defects(*asked.orders); !defects.empty()) {
      throw InputError({options.schedule, 0, 0}, "the schedule cannot run: " + join(defects, "; "));
    }
    scenario.orders = &asked.orders->schedule;
  } else {
    scenario.schedule = &find_by_name(schedules(), options.schedule, "schedule", {"--schedule", 0, 0});
  }
  asked.given = given_plan(options, study);
  asked.given.put_into(scenario);
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
        options.strategy.empty() ? PlanResult{asked.given.plan} : plan_by_runs(options, row, study, scenario, memo);
    if (Plan* plan = std::get_if<Plan>(&result)) {
      asked.given = {nullptr, std::move(*plan)};
      asked.given.put_into(scenario);
    }
  }
  asked.prepared = prepare(memo, {scenario});
  replay(memo.costs, asked.prepared);
  return asked;
}

std::string joined(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) {
    texts.push_back(to_text(value, 3));
  }
  return join(texts);
}

// What was measured round by round, and what followed from it.
std::string rounds_text(const std::vector<RunRound>& rounds) {
  Table table{{{"round", Align::right},
               {"iteration", Align::right},
               {"largest waiting", Align::right},
               {"mean", Align::right},
               {"operators"},
               {"weights"},
               {"then"}},
              {}};
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    const RunRound& one = rounds[round];
    std::vector<std::string> operators;
    for (const RunRound::Group& stage : one.stages) {
      operators.push_back(std::to_string(stage.operators.size()));
    }
    const auto share = [&](Seconds waiting) { return percent(waiting / one.iteration, 1); };
    const bool ran = one.why_not.empty();
    table.rows.push_back({{std::to_string(round)},
                          {ran ? to_text(one.iteration) : "-"},
                          {ran ? share(one.largest_waiting) : "-"},
                          {ran ? share(one.mean_waiting) : "-"},
                          {join(operators)},
                          {joined(one.weights)},
                          {one.action}});
  }
  return to_text(table, use_color()) + "\n";
}

} // namespace

int command_export_pipeline(const Options& given) {
  const pipeline::BackendRow& row = find_by_name(pipeline::backends(), "gpu", "backend", {"export", 0, 0});
  Options options = given;
  options.schedule = given.schedule.empty() ? "1f1b" : given.schedule;
  const Asked asked = ask(options, row);
  if (!asked.run().feasible) {
    remark("infeasible: " + asked.run().why_not + "\n");
    return kNothingFeasible;
  }
  emit(options, gpu::to_text(RealRun(options, row, asked.study, asked.prepared.front()).pipeline()));
  return kDone;
}

int command_execute(const Options& options) {
  const pipeline::BackendRow& row = find_by_name(pipeline::backends(), options.backend, "backend", {"--backend", 0, 0});
  Asked asked;
  RunRecord record;
  try {
    asked = ask(options, row);
    if (!asked.run().feasible) {
      remark("infeasible: " + asked.run().why_not + "\n");
      return kNothingFeasible;
    }
    record = RealRun(options, row, asked.study, asked.prepared.front()).record();
    if (options.measured) {
      record.rounds = asked.run().rounds;
    }
  } catch (const pipeline::Unavailable& reason) {
    remark("backend '" + std::string(row.name) + "' cannot run here: " + reason.what() + "\n");
    return kNoHardware;
  } catch (const pipeline::ExecutionFailure& failure) {
    remark("the run ended early: " + std::string(failure.what()) + "\n");
    return kNothingFeasible;
  }
  const RunAccuracy accuracy = accuracy_of(record);
  if (!options.trace.empty()) {
    write_file(options.trace, chrome_trace(record.graph, record.timeline, record.platform));
  }
  const int width = options.quiet ? 0 : terminal_width() - 28;
  const std::string rounds = record.rounds.empty() ? "" : rounds_text(record.rounds);
  emit(options, {.table = [&] { return rounds + to_text(record, accuracy, use_color(), width); },
                 .json = [&] { return to_json(record); },
                 .csv = {}});
  return kDone;
}

} // namespace stagecraft
