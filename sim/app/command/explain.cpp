// stagecraft explain: what holds a run back, and what would help most.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/explain.hpp"

#include <nlohmann/json.hpp>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/temporary_folder.hpp"
#include "sim/app/run/run_of.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/result/expected.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/validate/run_accuracy.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainCommand {
  ModelOptions model; ///< MODEL may also be a study, a result, results of a sweep, or a run of `execute`
  OutputOptions output;
  SettingOptions settings;
  RunOptions run;
  std::string point;
};

void add_flags(Flags& flags, ExplainCommand& options) {
  add_model_flags(flags, options.model,
                  {.help = "a name in workloads/, a file (.yaml, .onnx, PipeDream .txt, .json), a study, a "
                           "result of `compare` or `replay`, the results of a sweep, or a run that `execute` wrote"});
  add_result_flags(flags, options.output, {"table", "json", "html", "md"});
  add_setting_flags(flags, options.settings);
  add_plan_flags(flags, options.run);
  flags.add("--point", &options.point,
            "where MODEL is a file that `sweep` wrote: the point whose key begins so (default: the best)",
            {.name = "KEY"});
  add_run_schedule_flag(flags, options.run.schedule);
}

/// Names of what is explained, and the files that it was made from.
struct Subject {
  std::string model, platform, strategy, schedule;
  std::vector<std::string> inputs;
  Explanation explanation;
  std::string expected{}; ///< where measurements would lie, in words
};

Json json_of(const Subject& subject) {
  return {{"schema", kSchema},
          {"model", subject.model},
          {"platform", subject.platform},
          {"strategy", subject.strategy},
          {"schedule", subject.schedule},
          {"inputs", subject.inputs},
          {"explanation", Json::parse(to_json(subject.explanation))},
          {"expected", subject.expected.empty() ? Json() : Json(subject.expected)}};
}

ExitStatus tell(const OutputOptions& options, const Subject& subject) {
  emit(options, {.table =
                     [&] {
                       return subject.strategy + " under " + subject.schedule + ": " + subject.model + " on " +
                              subject.platform + "\n\n" + to_text(subject.explanation, use_color()) +
                              (subject.expected.empty() ? "" : subject.expected + "\n");
                     },
                 .json = [&] { return json_of(subject).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; },
                 .csv = {}});
  return kDone;
}

ExitStatus tell_prepared(const OutputOptions& options, const Study& study, const Prepared& one,
                         std::vector<std::string> inputs) {
  if (!one.run.feasible) {
    remark(one.run.strategy + " under " + one.run.schedule + " is infeasible: " + one.run.why_not + "\n");
    return kNothingFeasible;
  }
  remark_note(one.run.note);
  const EngineRow& engine = *study.engine;
  StudyCosts costs(study);
  const WholeRun whole = whole_run(costs, one);
  return tell(options, {study.model->name, study.platform.name, one.run.strategy, one.run.schedule, std::move(inputs),
                        explain({whole.graph, whole.timeline, study.platform, engine.replay, folded_of(one, whole),
                                 slowest_devices(study.platform, study.training.device_spread)}),
                        expected_in_words(one.run)});
}

ExitStatus explain_execution(const std::string& file, const OutputOptions& output) {
  RunRecord record = read_run_record(file);
  record.timeline.window = std::max(1, record.timeline.iterations - 1); // the first is not yet in steady state
  const Platform platform = record.parts ? with_parts(record.platform, record.graph, *record.parts) : record.platform;
  const ReplayFunction engine = record.shares_links ? replay_simgrid : replay_analytic;
  TaskGraph graph = record.parts ? with_parts(record.graph, *record.parts) : record.graph;
  const ReplayRequest exact{graph, platform, record.timeline.iterations};
  if (std::optional<TaskGraph> drawn = let_drift(record, graph, platform, engine({&exact, 1}).front().end())) {
    graph = *std::move(drawn);
  }
  return tell(output, {record.inputs.model,
                       record.inputs.platform,
                       record.inputs.strategy,
                       record.inputs.schedule,
                       {file},
                       explain({graph, record.timeline, platform, engine})});
}

bool asks_for_a_run(const ExplainCommand& options) {
  const RunOptions& run = options.run;
  return !(run.strategy + run.schedule + run.plan + options.model.platform).empty() || options.model.devices > 0;
}

// Explains the best point of a sweep, or the one asked for, from the inputs that its results keep.
ExitStatus explain_point(const ExplainCommand& options) {
  const std::string& file = options.model.model;
  if (asks_for_a_run(options) || !settings_of(options.settings, options.model).empty()) {
    throw InputError({file, 0, 0}, "its points have their settings; allowed: --point KEY alone");
  }
  SweepStore store(file, SweepStore::Mode::read);
  std::string key = options.point;
  if (key.empty()) {
    const std::vector<SweepStore::Asked> asked = store.asked();
    const std::vector<RankedPoint> best =
        asked.size() != 1 ? std::vector<RankedPoint>{} : store.best(asked[0].sweep, asked[0].goal, "", 1);
    if (best.empty()) {
      throw InputError({file, 0, 0}, "which of its points? allowed: --point KEY; `points FILE` lists the keys");
    }
    key = to_text(best.front().row.key);
  }
  const SweepStore::Found found = store.find(key);
  if (found.row.engine == kEstimate) {
    throw InputError({file, 0, 0}, "point " + key +
                                       " is known by closed forms alone; allowed: a point that "
                                       "was replayed");
  }
  const TemporaryFolder folder;
  const ReplayedPoint replayed = replay_point(found, folder.path());
  return tell_prepared(options.output, *replayed.study, replayed.prepared, {file});
}

ExitStatus run(const ExplainCommand& options) {
  const std::string& what = options.model.model;
  if (what.ends_with(".json") && std::filesystem::exists(what) && is_run_record(what)) {
    return explain_execution(what, options.output);
  }
  if (SweepStore::is_one(what)) {
    return explain_point(options);
  }
  if (!options.point.empty()) {
    throw InputError({"--point", 0, 0}, "'" + what + "' has no points; allowed: a file that `sweep` wrote");
  }
  GivenRun asked = run_of(options.model, options.settings, options.run, options.output.quiet);
  return tell_prepared(options.output, asked.given.study, asked.prepared, std::move(asked.given.inputs));
}

} // namespace

Job command_explain(Flags& flags) { return make_job<ExplainCommand>(flags, add_flags, run); }

} // namespace stagecraft
