// stagecraft train: a small perceptron trained by a plan's own tasks, beside the same training on one device.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/given_run.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/report/table.hpp"
#include "sim/study/compare/plan_notes.hpp"
#include "sim/study/compare/prepare.hpp"
#include "sim/study/planning/plan_scenario.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/training.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

struct TrainCommand {
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  RunOptions run;
  int steps = 20;
};

void add_flags(Flags& flags, TrainCommand& options) {
  constexpr int kMostSteps = 1000;
  add_model_flags(flags, options.model);
  add_output_flags(flags, options.output, {"table", "json"});
  add_setting_flags(flags, options.settings);
  add_plan_flags(flags, options.run);
  flags.add("--schedule", &options.run.schedule, "see `list schedules`, or all", {.required = true});
  flags.add("--steps", &options.steps, "steps of the optimiser",
            {.check = whole_number(1, kMostSteps), .shows_default = true});
}

constexpr int kMostLayers = 4; // layers of a stage: more would show nothing new

/// The result of one schedule, or why there is none.
struct Outcome {
  std::string schedule, why_not;
  bool synchronous = true;
  int micro_batches = 1;
  double difference = 0; ///< largest difference of a weight from gradient accumulation on one device
  pipeline::TrainingResult result;
};

std::string exponent(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", value);
  return text.data();
}

pipeline::TrainingSetup setup_of(const Plan& plan, int steps, std::uint64_t seed) {
  pipeline::TrainingSetup setup;
  setup.iterations = steps;
  setup.seed = seed;
  for (const Stage& stage : plan.stages) {
    setup.layers.push_back(std::clamp(static_cast<int>(stage.operators.size()), 1, kMostLayers));
    std::vector<pipeline::ReplicaShare>& shares = setup.shares.emplace_back();
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
      shares.push_back({stage.devices[i], stage.share(i)});
    }
    setup.samples = std::max(setup.samples, 4 * static_cast<int>(stage.devices.size()));
  }
  return setup;
}

Outcome train(const Prepared& prepared, const Study& study, int steps) {
  Outcome outcome{.schedule = prepared.run.schedule,
                  .why_not = prepared.run.why_not,
                  .synchronous = prepared.schedule.flushes,
                  .micro_batches = prepared.run.micro_batches};
  const bool sharded = std::any_of(prepared.plan.stages.begin(), prepared.plan.stages.end(),
                                   [](const Stage& stage) { return stage.tensor_parallel > 1; });
  if (prepared.twin >= 0 && outcome.why_not.empty()) {
    outcome.why_not = "the same order as a schedule above";
  } else if (sharded) {
    outcome.why_not = "the perceptron's layers are not split (tensor parallelism)";
  }
  if (prepared.graph == nullptr || !outcome.why_not.empty()) {
    return outcome;
  }
  const Channels channels = channels_of(*prepared.graph);
  const pipeline::Setting setting{*prepared.graph, study.platform, channels};
  try {
    const pipeline::TrainingSetup setup = setup_of(prepared.plan, steps, study.seed);
    pipeline::Training training(setting, prepared.schedule, setup);
    pipeline::execute(setting, training, {steps, false});
    outcome.result = training.result();
    outcome.difference = pipeline::largest_difference(
        outcome.result.layers, pipeline::train_sequentially(setup, outcome.micro_batches).layers);
  } catch (const std::invalid_argument& reason) {
    outcome.why_not = reason.what();
  }
  return outcome;
}

std::vector<Scenario> scenarios_of(const std::string& schedule, StudyMemo& memo, const GivenPlan& given) {
  std::vector<Scenario> scenarios;
  for (const ScheduleRow& row : schedules()) {
    if (schedule != "all" && schedule != row.name) {
      continue;
    }
    Scenario scenario{.schedule = &row};
    given.put_into(scenario);
    scenario.micro_batches = choose_micro_batches(memo, scenario);
    scenarios.push_back(scenario);
  }
  return scenarios;
}

template <class T> T largest(const std::vector<T>& values) { return *std::max_element(values.begin(), values.end()); }

std::string table_of(const std::vector<Outcome>& outcomes) {
  Table table{{{"schedule"},
               {"weights off by", Align::right},
               {"loss first", Align::right},
               {"last", Align::right},
               {"staleness", Align::right},
               {"versions", Align::right},
               {"held", Align::right},
               {""}},
              {}};
  for (const Outcome& outcome : outcomes) {
    if (!outcome.why_not.empty()) {
      table.rows.push_back({{outcome.schedule}, {}, {}, {}, {}, {}, {}, {outcome.why_not, Style::dim}});
      continue;
    }
    const pipeline::TrainingResult& result = outcome.result;
    table.rows.push_back({{outcome.schedule},
                          {exponent(outcome.difference)},
                          {to_text(result.losses.front(), 4)},
                          {to_text(result.losses.back(), 4)},
                          {to_text(largest(result.staleness), 2)},
                          {std::to_string(largest(result.versions))},
                          {std::to_string(largest(result.held))},
                          {outcome.synchronous ? "" : "asynchronous", Style::dim}});
  }
  return to_text(table, use_color());
}

std::string json_of(const std::vector<Outcome>& outcomes) {
  Json json = {{"schema", kSchema}, {"rows", Json::array()}};
  for (const Outcome& outcome : outcomes) {
    Json row = {{"schedule", outcome.schedule}, {"micro_batches", outcome.micro_batches}};
    row["why_not"] = outcome.why_not.empty() ? Json() : Json(outcome.why_not);
    const bool ran = outcome.why_not.empty();
    row["synchronous"] = ran ? Json(outcome.synchronous) : Json();
    row["weights_difference"] = ran ? Json(outcome.difference) : Json();
    row["replicas_difference"] = ran ? Json(outcome.result.replicas_differ) : Json();
    row["losses"] = outcome.result.losses;
    row["staleness"] = outcome.result.staleness;
    row["versions"] = outcome.result.versions;
    row["held"] = outcome.result.held;
    json["rows"].push_back(std::move(row));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ExitStatus run(const TrainCommand& options) {
  if (options.run.schedule != "all") {
    find_by_name(schedules(), options.run.schedule, "schedule", {"--schedule", 0, 0});
  }
  const Study study = study_of_model(options.model, settings_of(options.settings, options.model)).study;
  const GivenPlan given = given_plan(options.run, study);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  if (given.strategy == nullptr) {
    remark_note(plan_notes(given.plan, *study.model, study.training));
  }
  std::vector<Outcome> outcomes;
  try {
    for (const Prepared& prepared : prepare(memo, scenarios_of(options.run.schedule, memo, given))) {
      outcomes.push_back(train(prepared, study, options.steps));
    }
  } catch (const pipeline::ExecutionFailure& failure) {
    remark("the run ended early: " + std::string(failure.what()) + "\n");
    return kNothingFeasible;
  }
  emit(options.output,
       {.table = [&] { return table_of(outcomes); }, .json = [&] { return json_of(outcomes); }, .csv = {}});
  const bool any =
      std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) { return outcome.why_not.empty(); });
  return any ? kDone : kNothingFeasible;
}

} // namespace

Job command_train(Flags& flags) { return make_job<TrainCommand>(flags, add_flags, run); }

} // namespace stagecraft
