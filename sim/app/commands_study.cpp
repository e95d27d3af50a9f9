// Commands about many runs, and what shows them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/commands.hpp"

namespace stagecraft {
namespace {

void add_sweep_flags(CLI::App& sweep, Options& options) {
  constexpr int kMostWorkers = 1024;
  sweep.add_option("STUDY", options.study, "a study file with the key 'sweep'")->required();
  add_study_flags(sweep, options);
  add_confidence_flag(sweep, options);
  sweep.add_flag("--count", options.count, "say how many points there are, and run none");
  sweep.add_option("--workers", options.workers, "processes that work (default: one per core)")
      ->type_name("N")
      ->check(whole_number(1, kMostWorkers));
  sweep.add_option("--results", options.results, "keep the results in this folder, as sweep.sqlite")->type_name("DIR");
  sweep.add_option("--shard", options.shard, "run part I of N alone, to be merged with the others")->type_name("I/N");
  sweep.add_flag("--retry", options.retry, "run points again that failed");
}

} // namespace

void add_study_commands(CommandList& list) {
  Options& options = list.options;
  list.group = "Studies";
  const std::vector<std::string> with_csv = {"table", "json", "csv"};
  CLI::App& sweep =
      list.add("sweep", "every combination of the study's axes, its results kept in a file", command_sweep);
  add_sweep_flags(sweep, options);
  CLI::App& points = list.add("points", "the results of sweeps as CSV or JSON lines; one point again", command_points);
  points.add_option("FILE", options.file, "that `sweep` wrote")->required();
  points.add_option("--format", options.format, "of the result")
      ->check(CLI::IsMember({"csv", "jsonl"}))
      ->default_str("csv");
  points.add_option("-o,--output", options.output, "write to this file instead of stdout")->type_name("FILE");
  points.add_option("--replay", options.point, "the point whose key begins so, alone, from its kept inputs")
      ->type_name("KEY");
  CLI::App& merge = list.add("merge", "the results of several sweeps or shards in one file", command_merge);
  merge.add_option("FILES", options.files, "that `sweep` wrote")->required();
  merge.add_option("-o,--output", options.output, "the file to add them to, made where it is absent")
      ->required()
      ->type_name("FILE");

  CLI::App& judge = list.add("judge", "planners x models x platforms: wins, regret, bias", command_judge);
  judge.add_option("STUDY", options.study, "a study file with the key 'judge'")->required();
  add_study_flags(judge, options, with_csv);
  judge.add_flag("--all", options.all_rows, "print every plan beside the scores");
  CLI::App& adapt = list.add("adapt", "training over time in a world that changes: adapting or not", command_adapt);
  adapt.add_option("STUDY", options.study, "a study file with the key adapt")->required();
  add_study_flags(adapt, options, with_csv);

  CLI::App& report = list.add("report", "results as one page to look at, or as figures", command_report);
  report.add_option("RESULTS", options.files, "files of results (.json, .sqlite), or folders of such")->required();
  report.add_option("-o,--output", options.output, "the page, one file of HTML")->type_name("FILE");
  report.add_option("--figures", options.figures, "draw its charts as SVG and PDF into this folder")->type_name("DIR");
  report.add_option("--title", options.title, "of the page")->type_name("TEXT");
}

} // namespace stagecraft
