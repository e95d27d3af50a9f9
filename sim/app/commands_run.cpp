// Commands about one comparison, plan, run or schedule.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/commands.hpp"

namespace stagecraft {
namespace {

void add_schedule_flags(CLI::App& command, Options& options) {
  command.add_option("--stages", options.stages, "devices in the pipeline")
      ->required()
      ->check(whole_number(1, 1 << 20));
  command.add_option("--micro-batches", options.micro_batches, "per iteration")
      ->required()
      ->check(whole_number(1, 1 << 20));
  command.add_option("--chunks", options.chunks, "stages per device (default 2 where the schedule interleaves)")
      ->check(whole_number(1, 1 << 16));
  command.add_option("--forward", options.forward, "time of a device's stage: one number, or one per device")
      ->check(plain_time())
      ->delimiter(',');
  command.add_option("--backward", options.backward, "likewise (default twice forward)")
      ->check(plain_time())
      ->delimiter(',');
  command.add_option("--backward-input", options.backward_input, "likewise, input gradient")
      ->check(plain_time())
      ->delimiter(',');
  command.add_option("--backward-weight", options.backward_weight, "likewise, weight gradient")
      ->check(plain_time())
      ->delimiter(',');
  command.add_option("--fused", options.fused, "of a forward and a backward that run together (default: their sum)")
      ->check(plain_time());
  command.add_option("--latency", options.hop_latency, "delay between two devices")->check(plain_time());
  command.add_option("--recompute", options.recompute, "forward again before backward")
      ->check(CLI::IsMember({"none", "early", "lazy", "skip", "except-last"}));
  command.add_option("--iterations", options.iterations, "to find the period over")->check(whole_number(1, 1000));
}

} // namespace

void add_run_commands(CommandList& list) {
  Options& options = list.options;
  list.group = "Plans and runs";
  const std::vector<std::string> with_csv = {"table", "json", "csv"};
  CLI::App& compare =
      list.add("compare", "strategies x schedules, replayed and ranked (the main job)", command_compare);
  compare.add_option("STUDY", options.study, "a study file")->required();
  add_study_flags(compare, options, with_csv);
  add_confidence_flag(compare, options);
  compare.add_flag("--pictures", options.pictures, "draw the winner's and the naive split's timelines");
  compare
      .add_option(
          "--timeline", options.timelines,
          "put the best N runs' timelines, and what holds the first one back, into the JSON (3 where no N is given)")
      ->type_name("N")
      ->check(whole_number(0, 100))
      ->expected(0, 1)
      ->default_str("3");
  compare.add_flag("--all", options.all_rows, "print every row of the table");
  compare.add_option("--plan", options.plans, "a plan file to rank beside ours, in any form; may be repeated")
      ->type_name("FILE")
      ->take_all();
  add_plan_format(compare, options);
  compare.add_option("--trace", options.trace, "write the winner as a Chrome/Perfetto trace")->type_name("FILE");

  CLI::App& plan = list.add("plan", "one split, as a plan file", command_plan);
  add_model_flags(plan, options, true);
  add_study_flags(plan, options);
  plan.add_option("--strategy", options.strategy, "see `list strategies`")->required();
  plan.add_option("--schedule", options.schedule, "whose memory the plan must fit (default 1f1b)");

  CLI::App& replay = list.add("replay", "one run, timeline and all", command_replay);
  add_model_flags(replay, options, true);
  add_study_flags(replay, options, with_csv);
  add_plan_choice(replay, options);
  replay.add_option("--schedule", options.schedule, "see `list schedules`, or a file: .csv")->required();
  replay.add_flag("--timeline", options.timeline, "put the timeline into the JSON");
  replay.add_option("--trace", options.trace, "write a Chrome/Perfetto trace")->type_name("FILE");
  replay
      .add_option("--iterations", options.shown_iterations, "to show in the picture, the trace and the memory series")
      ->check(whole_number(1, 1000));
  replay.add_option("--memory-series", options.memory_series, "write each device's memory over time as CSV")
      ->type_name("FILE");

  CLI::App& explain = list.add("explain", "what holds a run back, and what would help most", command_explain);
  add_model_flags(explain, options, true);
  add_study_flags(explain, options);
  add_plan_choice(explain, options);
  explain
      .add_option("--point", options.point,
                  "of a file that `sweep` wrote: the point whose key begins so; else the best")
      ->type_name("KEY");
  explain.add_option("--schedule", options.schedule, "see `list schedules`, or a file: .csv");

  CLI::App& schedule = list.add("schedule", "draw a schedule alone, from given times", command_schedule);
  schedule.add_option("NAME", options.schedule, "see `list schedules`")->required();
  add_common(schedule, options, with_csv);
  add_schedule_flags(schedule, options);
  add_dialect_flags(schedule, options);

  CLI::App& check = list.add("check", "is this plan or schedule valid here? if not, why", command_check);
  check.add_option("FILE", options.file, "a plan file, in any form, or a schedule: .csv")->required();
  add_plan_format(check, options);
  add_model_flags(check, options, false);
  add_study_flags(check, options);
  check.add_option("--schedule", options.schedule, "whose memory the plan must fit (default 1f1b)");
}

} // namespace stagecraft
