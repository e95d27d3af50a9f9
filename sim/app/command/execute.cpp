// stagecraft execute: a plan under a schedule carried out for real, and its prediction beside it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/prepare_real_run.hpp"
#include "sim/base/system/file.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/table.hpp"
#include "sim/study/compare/describe_rounds.hpp"
#include "sim/validate/run_accuracy.hpp"

namespace stagecraft {
namespace {

struct ExecuteCommand {
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  RunOptions run;
  std::string backend;
  RealRunOptions real;
  std::string trace;
};

void add_flags(Flags& flags, ExecuteCommand& options) {
  constexpr int kMostRuns = 100;
  add_model_flags(flags, options.model);
  add_output_flags(flags, options.output, {"table", "json"});
  add_setting_flags(flags, options.settings);
  add_plan_flags(flags, options.run);
  add_run_schedule_flag(flags, options.run.schedule);
  flags.add("--backend", &options.backend, "who does the work: " + join(names_of(pipeline::backends())),
            {.required = true});
  flags.add("--attempts", &options.real.attempts,
            "where computations sleep: repeat a disturbed run until there were so many",
            {.check = whole_number(1, kMostRuns), .shows_default = true});
  flags.add("--runs", &options.real.runs,
            "backend cpu: so many runs, with measurements of the parts between them; the median run counts",
            {.check = whole_number(1, kMostRuns), .shows_default = true});
  flags.add("--measured", &options.real.measured,
            "a strategy that measures its plans, as dynamic, measures real runs instead of replays");
  add_pipeline_flags(flags, options.real);
  flags.add("--gpu-binary", &options.real.gpu_binary, "the program calibrate_gpu (default: beside this program)",
            {.name = "FILE"});
  flags.add("--carried-out", &options.real.carried_out,
            "backend gpu: instead of a run, the times that calibrate_gpu made of `export pipeline` elsewhere",
            {.name = "TIMES"});
  flags.add("--time-scale", &options.real.time_scale, "times of the run over those of the model (default auto)",
            {.name = "X"});
  flags.add("--bandwidth-scale", &options.real.bandwidth_scale,
            "bandwidths of the run over those of the model; sizes of transfers follow (default auto)", {.name = "X"});
  flags.add("--trace", &options.trace, "write the run as a Chrome/Perfetto trace", {.name = "FILE"});
}

std::string joined(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) {
    texts.push_back(to_text(value, 3));
  }
  return join(texts);
}

// A table of what was measured in each round, and what followed from it.
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

ExitStatus run(const ExecuteCommand& options) {
  const pipeline::BackendRow& row = find_by_name(pipeline::backends(), options.backend, "backend", {"--backend", 0, 0});
  const bool quiet = options.output.quiet;
  PreparedRealRun ready;
  RunRecord record;
  try {
    ready = prepare_real_run(row, study_of_model(options.model, settings_of(options.settings, options.model)).study,
                             options.run, options.real, quiet);
    if (!ready.run().feasible) {
      remark("infeasible: " + ready.run().why_not + "\n");
      return kNothingFeasible;
    }
    record = RealRun(options.real, row, ready.study, ready.prepared.front()).record(quiet);
    if (options.real.measured) {
      record.rounds = ready.run().rounds;
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
  const int width = quiet ? 0 : terminal_width() - 28;
  const std::string rounds = record.rounds.empty() ? "" : rounds_text(record.rounds);
  emit(options.output, {.table = [&] { return rounds + to_text(record, accuracy, use_color(), width); },
                        .json = [&] { return to_json(record); },
                        .csv = {}});
  return kDone;
}

} // namespace

Job command_execute(Flags& flags) { return make_job<ExecuteCommand>(flags, add_flags, run); }

} // namespace stagecraft
