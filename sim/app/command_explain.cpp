// stagecraft explain: what holds a run back, and what would help most.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/analysis/explain.hpp"
#include "sim/app/given_run.hpp"
#include "sim/app/progress.hpp"
#include "sim/app/temporary_folder.hpp"
#include "sim/base/schema.hpp"
#include "sim/study/compare.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/validate/run_record.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

/// What is explained, by name, and the files that it was made from.
struct Subject {
  std::string model, platform, strategy, schedule;
  std::vector<std::string> inputs;
  Explanation explanation;
};

Json json_of(const Subject& subject) {
  return {{"schema", kSchema},
          {"model", subject.model},
          {"platform", subject.platform},
          {"strategy", subject.strategy},
          {"schedule", subject.schedule},
          {"inputs", subject.inputs},
          {"explanation", Json::parse(to_json(subject.explanation))}};
}

int tell(const Options& options, const Subject& subject) {
  emit(options, {.table =
                     [&] {
                       return subject.strategy + " under " + subject.schedule + ": " + subject.model + " on " +
                              subject.platform + "\n\n" + to_text(subject.explanation, use_color());
                     },
                 .json = [&] { return json_of(subject).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; },
                 .csv = {}});
  return kDone;
}

int tell_prepared(const Options& options, const Study& study, const Prepared& one, std::vector<std::string> inputs) {
  if (!one.run.feasible) {
    remark(one.run.strategy + " under " + one.run.schedule + " is infeasible: " + one.run.why_not + "\n");
    return kNothingFeasible;
  }
  const EngineRow& engine = *study.engine;
  return tell(options, {study.model->name, study.platform.name, one.run.strategy, one.run.schedule, std::move(inputs),
                        explain({*one.graph, one.timeline, study.platform, engine.replay})});
}

int explain_execution(const Options& options) {
  RunRecord record = read_run_record(options.model);
  record.timeline.window = std::max(1, record.timeline.iterations - 1); // the first is not yet the steady state
  const Platform platform = record.parts ? with_parts(record.platform, record.graph, *record.parts) : record.platform;
  const TaskGraph graph = record.parts ? with_parts(record.graph, *record.parts) : record.graph;
  return tell(options,
              {record.inputs.model,
               record.inputs.platform,
               record.inputs.strategy,
               record.inputs.schedule,
               {options.model},
               explain({graph, record.timeline, platform, record.shares_links ? replay_simgrid : replay_analytic})});
}

int explain_winner(Options options) {
  options.study = options.model;
  options.model.clear();
  std::vector<std::string> inputs;
  const Study study = study_from(options, &inputs);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Progress progress(options.quiet);
  const ComparisonResult result = compare(memo, [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  return tell_prepared(options, study, result.prepared[result.of_run.front()], std::move(inputs));
}

bool asks_for_a_run(const Options& options) {
  return !(options.strategy + options.schedule + options.plan + options.platform).empty() || options.devices > 0;
}

// The best point of a sweep, or the one asked for, from the inputs that its results keep.
int explain_point(const Options& options) {
  if (asks_for_a_run(options) || !settings_from(options).empty()) {
    throw InputError({options.model, 0, 0}, "its points have their settings; allowed: --point KEY alone");
  }
  SweepStore store(options.model, SweepStore::Mode::read);
  std::string key = options.point;
  if (key.empty()) {
    const std::vector<SweepStore::Asked> asked = store.asked();
    const std::vector<RankedPoint> best =
        asked.size() != 1 ? std::vector<RankedPoint>{}
                          : store.best(asked[0].sweep, read_goal(yaml::parse(asked[0].goal, "goal")), "", 1);
    if (best.empty()) {
      throw InputError({options.model, 0, 0},
                       "which of its points? allowed: --point KEY; `points FILE` lists the keys");
    }
    key = to_text(best.front().row.key);
  }
  const SweepStore::Found found = store.find(key);
  if (found.row.engine == kEstimate) {
    throw InputError({options.model, 0, 0}, "point " + key +
                                                " is known by closed forms alone; allowed: a point that "
                                                "was replayed");
  }
  const TemporaryFolder folder;
  const ReplayedPoint replayed = replay_point(found, folder.path());
  return tell_prepared(options, *replayed.study, replayed.prepared, {options.model});
}

// A study says what model it is of.
bool is_study(const std::string& name) {
  return name.ends_with(".yaml") && std::filesystem::exists(name) && yaml::load(name).find("model") != nullptr;
}

} // namespace

int command_explain(const Options& options) {
  if (options.model.ends_with(".json") && std::filesystem::exists(options.model) && is_run_record(options.model)) {
    return explain_execution(options);
  }
  if (SweepStore::is_one(options.model)) {
    return explain_point(options);
  }
  if (!options.point.empty()) {
    throw InputError({"--point", 0, 0}, "'" + options.model + "' has no points; allowed: a file that `sweep` wrote");
  }
  if (is_study(options.model)) {
    if (asks_for_a_run(options)) {
      throw InputError({options.model, 0, 0},
                       "the winner of a study is explained; allowed: --set compare.schedules=NAME "
                       "and the like, or a model with these flags");
    }
    return explain_winner(options);
  }
  std::vector<std::string> inputs;
  const Study study = study_from(options, &inputs);
  add_given_files(options, inputs);
  return tell_prepared(options, study, replay_given(options, study), std::move(inputs));
}

} // namespace stagecraft
