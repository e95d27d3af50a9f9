// stagecraft replay: one run, its timeline and its memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/run/infeasible_run.hpp"
#include "sim/app/run/question.hpp"
#include "sim/app/run/run_of.hpp"
#include "sim/base/count_of.hpp"
#include "sim/base/system/file.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/memory_report.hpp"
#include "sim/result/setting_json.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/timeline/device_names.hpp"

namespace stagecraft {
namespace {

struct ReplayCommand {
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  RunOptions run;
  bool timeline = false;
  std::string trace, memory_series;
  int iterations = 0; ///< iterations to show; 0: as many as the figures need, and the picture draws the last of them
};

void add_flags(Flags& flags, ReplayCommand& options) {
  constexpr int kMostIterations = 1000;
  add_model_flags(flags, options.model,
                  {.help = "a name in workloads/, a file (.yaml, .onnx, PipeDream .txt, .json), a study, or a result"});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_setting_flags(flags, options.settings);
  add_money_flags(flags, options.settings);
  add_plan_flags(flags, options.run);
  add_run_schedule_flag(flags, options.run.schedule);
  flags.add("--timeline", &options.timeline, "put the timeline into the JSON");
  flags.add("--trace", &options.trace, "write the timeline as a Chrome/Perfetto trace", {.name = "FILE"});
  flags.add("--iterations", &options.iterations, "iterations to show in the picture, the trace and the memory series",
            {.check = whole_number(1, kMostIterations)});
  flags.add("--memory-series", &options.memory_series, "write each device's memory over time as CSV", {.name = "FILE"});
}

// The run's timeline with the number of iterations asked for, where it has another. The figures stay those of the run.
std::optional<Timeline> other_timeline(int iterations, const Study& study, const Prepared& run) {
  if (iterations == 0 || iterations == run.timeline.iterations) {
    return std::nullopt;
  }
  const double tasks = static_cast<double>(run.graph->tasks()) * iterations;
  constexpr double kMostTasks = 1e8; // a few GB
  if (tasks > kMostTasks) {
    throw InputError({"--iterations", 0, 0}, "tasks x iterations is too large; allowed: at most 100000000");
  }
  const TaskGraph graph = replayed_graph(study, run);
  const ReplayRequest request{graph, study.platform, iterations};
  return std::move(study.engine->replay({&request, 1}).front());
}

// What of the devices is simulated and shown, where it is not all of them; else "".
std::string folded_sentence(const Run& run) {
  return run.classes.empty() ? ""
                             : "Folded: of " + count_of(run.devices.size(), "device") + " " +
                                   std::to_string(run.classes.size()) + " are simulated and shown, each for up to " +
                                   std::to_string(run.folded_replicas) + " that are alike; --unfold simulates all.\n";
}

ExitStatus run(const ReplayCommand& options) {
  GivenRun asked = run_of(options.model, options.settings, options.run, options.output.quiet);
  GivenStudy& given = asked.given;
  const Study& study = given.study;
  const Prepared& one = asked.prepared;
  const RunOrigin origin{study.model->name, study.platform.name, std::move(given.inputs)};
  if (!one.run.feasible) {
    return report_infeasible(options.output, one.run, origin);
  }
  const std::optional<Timeline> other = other_timeline(options.iterations, study, one);
  const Timeline& shown = other ? *other : one.timeline;
  const std::string trace =
      options.timeline || !options.trace.empty() ? chrome_trace(*one.graph, shown, study.platform) : "";
  if (!options.trace.empty()) {
    write_file(options.trace, trace);
  }
  if (const std::string said = trace_remark(*one.graph); !trace.empty() && !said.empty() && !options.output.quiet) {
    remark(said + "\n");
  }
  const bool series = options.timeline || !options.memory_series.empty();
  const MemoryReport memory = report_memory(*one.graph, shown, device_names(*one.graph, study.platform), series);
  if (!options.memory_series.empty()) {
    write_file(options.memory_series, memory_csv(memory));
  }
  Comparison comparison{study.model->name, study.platform.name, study.training.global_batch, {one.run}, {}};
  comparison.bound_holds_for = "whose kernels and iterations overlap no more"; // as those of this one
  comparison.verdict = make_verdict(comparison);
  const auto json = [&] {
    return to_json(one.run, origin, true,
                   {{"setting", setting_json({*study.model, study.training, study.platform, study.engine->name,
                                              program_version()})},
                    {"question", question_json(given, options.run, options.output.file)},
                    {"memory", memory_json(memory, options.timeline)},
                    {"timeline", options.timeline ? trace : ""}});
  };
  const auto table = [&] {
    PictureOptions picture;
    picture.width = terminal_width() - 28;
    picture.color = use_color();
    picture.iterations = std::max(options.iterations, 1);
    picture.iteration = shown.iterations - picture.iterations;
    std::string text;
    for (const std::string& sentence : comparison.verdict) {
      text += sentence + "\n";
    }
    text += memory_sentence(memory) + "\n" + folded_sentence(one.run);
    for (const std::string& noted : remarks_of(one.run)) {
      text += "Note: " + noted + ".\n";
    }
    return text + "\n" + ascii_timeline(*one.graph, shown, device_names(*one.graph, study.platform), picture);
  };
  emit(options.output, {.table = table, .json = json, .csv = [&] { return to_csv(comparison); }});
  return kDone;
}

} // namespace

Job command_replay(Flags& flags) { return make_job<ReplayCommand>(flags, add_flags, run); }

} // namespace stagecraft
