// Commands about files and names.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/commands.hpp"

namespace stagecraft {

void add_file_commands(CommandList& list) {
  Options& options = list.options;
  list.group = "Files and names";
  const std::vector<std::string> with_csv = {"table", "json", "csv"};
  CLI::App& show = list.add("show", "a model, platform, device or study, summed up", command_show);
  show.add_option("WHAT", options.file, "a name or a file")->required();
  add_import_flags(show, options);
  add_common(show, options);

  CLI::App& names = list.add("list", "what can be named", command_list);
  names
      .add_option("KIND", options.what,
                  "strategies, schedules, devices, platforms, workloads, cost-models, engines, formats, "
                  "measurement-formats, plan-formats, schedule-formats or metrics")
      ->required();
  add_common(names, options);

  CLI::App& import =
      list.add("import", "read a foreign model and sum it up, a schedule, or measurements", command_import);
  import.add_option("FORMAT", options.what, "see `list formats` and `list measurement-formats`, or schedule")
      ->required();
  import.add_option("FILE", options.file, "the file")->required();
  add_import_flags(import, options);
  add_dialect_flags(import, options);
  add_foreign_flags(import, options);
  add_common(import, options, with_csv);

  CLI::App& write =
      list.add("export", "one split in the form of another tool, a model's kernels, or a run to carry out elsewhere",
               command_export);
  write.add_option("FORMAT", options.what, "see `list plan-formats`, or shapes or pipeline")->required();
  add_model_flags(write, options, true);
  add_study_flags(write, options, {"table"});
  add_plan_choice(write, options);
  write.add_option("--schedule", options.schedule, "of the pipeline, or whose memory the plan must fit (default 1f1b)");
  add_gpu_run_flags(write, options);
}

} // namespace stagecraft
