// stagecraft: the command line. It reads flags, calls one command and turns what it throws into an exit status.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "sim/app/options.hpp"
#include "sim/schedule/schedule_file.hpp"

#include "calibrate/fit/kernel_tables.hpp"
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft {
namespace {

// CLI11 reads 010 as 8; we refuse leading zeros, as in files.
CLI::Validator whole_number(int low, int high) {
  return {[low, high](std::string& text) {
            try {
              parse_integer(text, low, high, {"command line", 0, 0});
              return std::string();
            } catch (const InputError& failure) {
              return std::string(failure.what());
            }
          },
          "INT in [" + std::to_string(low) + " - " + std::to_string(high) + "]"};
}

// A time without a unit.
CLI::Validator plain_time() {
  return {[](std::string& text) {
            try {
              const double time = parse_number(text, {"command line", 0, 0});
              return time >= 0 && time <= kLongestPlainTime ? std::string() : "a time must be 0 to 1e12";
            } catch (const InputError& failure) {
              return std::string(failure.what());
            }
          },
          "TIME"};
}

void add_common(CLI::App& command, Options& options, const std::vector<std::string>& formats = {"table", "json"}) {
  command.add_option("--format", options.format, "of the result")->check(CLI::IsMember(formats))->capture_default_str();
  command.add_option("-o,--output", options.output, "write the result to this file instead of stdout")
      ->type_name("FILE");
  command.add_flag("--quiet", options.quiet, "no progress and no remarks on stderr");
}

void add_study_flags(CLI::App& command, Options& options, const std::vector<std::string>& formats = {"table", "json"}) {
  add_common(command, options, formats);
  command.add_option("--set", options.settings, "KEY=VALUE over any key of the study, as training.global_batch=64")
      ->type_name("KEY=VALUE")
      ->take_all();
  command.add_option("--engine", options.engine, "simgrid, simgrid-full or analytic")->type_name("NAME");
  command.add_option("--cost-model", options.cost_model, "auto, roofline, profiled or constant")->type_name("NAME");
  command.add_option("--seed", options.seed, "seed of strategies that draw")->type_name("N");
}

void add_import_flags(CLI::App& command, Options& options) {
  command.add_option("--dim", options.dimensions, "size of a symbolic dimension, as batch=8")
      ->type_name("NAME=N")
      ->take_all();
  command.add_option("--cost-scale", options.cost_scale, "multiplies the costs of a file's edges")->type_name("X");
}

void add_model_flags(CLI::App& command, Options& options, bool required) {
  command.add_option("MODEL", options.model, "a name in workloads/ or a file: .yaml, .onnx, PipeDream .txt, .json")
      ->required(required);
  command
      .add_option("--platform", options.platform,
                  "a name in platforms/ or a file; none: the devices that MODEL brings along")
      ->type_name("P");
  command.add_option("--devices", options.devices, "so many devices like the one the model was profiled on")
      ->type_name("N")
      ->check(whole_number(1, 100000));
  command.add_option("--bandwidth", options.bandwidth, "of each device's private link, with --devices")
      ->type_name("'B/s'");
  command.add_option("--latency", options.latency, "between two devices, with --devices")->type_name("T");
  command.add_option("--memory", options.memory, "of each device, with --devices")->type_name("M");
  command
      .add_option("--micro-batches", options.training_micro_batches,
                  "number of micro-batches, or auto: the divisor of the batch, up to 64, of the least estimate")
      ->type_name("M|auto")
      ->check(CLI::IsMember({"auto"}) | whole_number(1, 1 << 24));
  add_import_flags(command, options);
}

void add_plan_format(CLI::App& command, Options& options) {
  command.add_option("--plan-format", options.plan_format, "of the plan file, where its content does not tell it")
      ->type_name("NAME");
}

void add_plan_choice(CLI::App& command, Options& options) {
  command.add_option("--strategy", options.strategy, "see `list strategies`");
  command.add_option("--plan", options.plan, "a plan file, in any form, instead of a strategy")->type_name("FILE");
  add_plan_format(command, options);
}

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

// Of a run that calibrate_gpu carries out, here or elsewhere.
void add_gpu_run_flags(CLI::App& command, Options& options) {
  command.add_option("--iterations", options.iterations, "to run in a row")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command.add_option("--copies", options.copies, "within a GPU, of a pipeline: device, host or shaped")
      ->check(CLI::IsMember({"device", "host", "shaped"}))
      ->capture_default_str();
}

void add_sweep_flags(CLI::App& sweep, Options& options) {
  constexpr int kMostWorkers = 1024;
  sweep.add_option("STUDY", options.study, "a study file with the key 'sweep'")->required();
  add_study_flags(sweep, options);
  sweep.add_flag("--count", options.count, "say how many points there are, and run none");
  sweep.add_option("--workers", options.workers, "processes that work (default: one per core)")
      ->type_name("N")
      ->check(whole_number(1, kMostWorkers));
  sweep.add_option("--results", options.results, "keep the results in this folder, as sweep.sqlite")->type_name("DIR");
  sweep.add_option("--shard", options.shard, "run part I of N alone, to be merged with the others")->type_name("I/N");
  sweep.add_flag("--retry", options.retry, "run points again that failed");
}

void add_execute_flags(CLI::App& execute, Options& options) {
  add_model_flags(execute, options, true);
  add_study_flags(execute, options);
  add_plan_choice(execute, options);
  execute.add_option("--schedule", options.schedule, "see `list schedules`, or a file: .csv")->required();
  execute.add_option("--backend", options.backend, "who does the work: " + join(names_of(pipeline::backends())))
      ->required();
  execute.add_option("--attempts", options.attempts, "to run undisturbed, where computations sleep and so tell")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  execute.add_option("--runs", options.runs, "of backend cpu, its parts measured between them; the median one counts")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  execute.add_flag("--measured", options.measured,
                   "a strategy that measures its plans, as dynamic, measures real runs");
  add_gpu_run_flags(execute, options);
  execute.add_option("--gpu-binary", options.gpu_binary, "calibrate_gpu (default: beside this program)")
      ->type_name("FILE");
  execute
      .add_option("--carried-out", options.carried_out,
                  "of backend gpu: times that calibrate_gpu made of `export pipeline` elsewhere, instead of a run")
      ->type_name("TIMES");
  execute.add_option("--time-scale", options.time_scale, "times of the run over those of the model (default auto)")
      ->type_name("X");
  execute.add_option("--bandwidth-scale", options.bandwidth_scale, "likewise of links; bytes follow (default auto)")
      ->type_name("X");
  execute.add_option("--trace", options.trace, "write the run as a Chrome/Perfetto trace")->type_name("FILE");
}

void add_train_flags(CLI::App& train, Options& options) {
  add_model_flags(train, options, true);
  add_study_flags(train, options);
  add_plan_choice(train, options);
  train.add_option("--schedule", options.schedule, "see `list schedules`, or all")->required();
  train.add_option("--steps", options.steps, "of the optimiser")->check(whole_number(1, 1000))->capture_default_str();
}

void add_dialect_flags(CLI::App& command, Options& options) {
  command.add_option("--dialect", options.dialect, "of a schedule in CSV: stagecraft, pytorch or pytorch-old")
      ->check(CLI::IsMember(names_of(schedule_dialects())))
      ->capture_default_str();
  command.add_flag("--messages", options.messages, "with PyTorch's SEND and RECV");
}

void add_foreign_flags(CLI::App& command, Options& options) {
  command
      .add_option("--device", options.device,
                  "that was measured or that the machine has: a name in platforms/devices, or a file")
      ->type_name("NAME");
  command
      .add_option("--collective", options.collective,
                  "that was measured, where the file does not say it: all-reduce, …")
      ->type_name("NAME");
  command.add_option("--ranks", options.ranks, "that took part, where the file does not list them")
      ->check(whole_number(2, 1 << 20));
  command.add_flag("--collectives", options.collectives, "also of a trace: the least time of each size");
  command.add_option("--nvlink", options.nvlink, "what one NVLink reaches in one direction")->type_name("'B/s'");
  command.add_option("--pcie", options.pcie, "what a slot reaches in one direction")->type_name("'B/s'");
  command.add_option("--nodes", options.nodes, "so many machines as the matrix tells of")
      ->check(whole_number(1, 100000));
  command.add_option("--network", options.network, "what a network card reaches in one direction, with --nodes")
      ->type_name("'B/s'");
}

void add_table_flags(CLI::App& command, Options& options) {
  for (const fit::TableKindRow& row : fit::kTableKinds) {
    command
        .add_option("--" + std::string(row.name), options.tables[std::string(row.name)],
                    "a table of CSV: " + std::string(row.help))
        ->type_name("CSV")
        ->take_all();
  }
  command.add_option("--select", options.select, "the device of tables that hold several")->type_name("NAME");
}

void add_calibrate_actions(CLI::App& calibrate, Options& options) {
  const auto add = [&](const char* name, const char* help) -> CLI::App& {
    CLI::App& action = *calibrate.add_subcommand(name, help);
    action.callback([&options, name] { options.calibrate_action = name; });
    add_common(action, options);
    return action;
  };
  CLI::App& fit = add("fit", "measurements to a device file with fits");
  fit.add_option("RAW", options.raw, "files of measurements")->type_name("FILE");
  add_table_flags(fit, options);
  fit.add_option("--device", options.device, "the data sheet to start from: a name in platforms/devices, or a file")
      ->type_name("BASE");
  fit.add_option("--processors", options.processors, "multiprocessors of the device, where no file says it")
      ->check(whole_number(1, 1 << 20));
  fit.add_option("--hold-out", options.hold_out, "keep this share of the shapes from the fits, to tell their errors")
      ->check(CLI::Range(0.0, 0.9));
  fit.add_option("--seed", options.seed, "seed of what is held back")->type_name("N");
  fit.add_option("--provenance", options.provenance, "where the measurements come from, for readers; may be repeated")
      ->type_name("TEXT")
      ->take_all();
  CLI::App& predict = add("predict", "tables of measured kernels beside what a device file says");
  predict.add_option("DEVICE", options.device, "a name in platforms/devices, or a file")->required();
  add_table_flags(predict, options);
  predict.add_flag("--all", options.all_rows, "print every row of the table");
  predict.add_option("--figures", options.figures, "draw the errors as SVG into this folder")->type_name("DIR");
  CLI::App& show = add("show", "the fits of a device file and their errors");
  show.add_option("FILE", options.device, "a device file, or a name in platforms/devices")->required();
  show.add_option("--figures", options.figures, "draw the errors as SVG into this folder")->type_name("DIR");
}

void add_measure_flags(CLI::App& calibrate, Options& options) {
  calibrate.add_option("--backend", options.backend, "what to measure: the processor of this machine, or a GPU")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->capture_default_str();
  calibrate
      .add_option("--budget", options.budget, "time of the whole run, as 50 or '2 min' (default 50 s; a GPU's 420 s)")
      ->type_name("T");
  calibrate.add_flag("--quick", options.quick, "10 s, coarse");
  calibrate.add_option("--groups", options.groups, "only these, as gemm,copies")->type_name("NAME,…")->delimiter(',');
  calibrate.add_option("--shapes", options.shapes, "a list of kernels that are measured first, see `export shapes`")
      ->type_name("FILE");
  calibrate.add_option("--name", options.device_name, "of the device in the file (default: its own)")
      ->type_name("NAME");
  calibrate.add_option("--threads", options.threads, "that make up one device (cpu)")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  calibrate.add_option("--library", options.library, "of matrix products (cpu)")
      ->check(CLI::IsMember({"eigen", "openblas"}))
      ->capture_default_str();
  calibrate.add_option("--workload", options.model, "measure the operators of this model, and write its profile")
      ->type_name("MODEL");
  calibrate.add_option("--micro-batches", options.sizes, "sizes to measure it at, as 1,2,4 (default 1)")
      ->type_name("N,…")
      ->delimiter(',')
      ->check(whole_number(1, 1 << 20));
  add_import_flags(calibrate, options);
  calibrate.add_option("--set", options.settings, "KEY=VALUE over keys of the model, as model.input.shape='[128]'")
      ->type_name("KEY=VALUE")
      ->take_all();
  calibrate.add_option("--gpu-binary", options.gpu_binary, "calibrate_gpu (default: beside this program)")
      ->type_name("FILE");
}

struct Command {
  CLI::App* app;
  int (*run)(const Options&);
};

std::vector<Command> add_commands(CLI::App& app, Options& options) {
  const std::vector<std::string> with_csv = {"table", "json", "csv"};
  std::vector<Command> commands;
  const auto add = [&](const char* name, const char* help, int (*run)(const Options&)) -> CLI::App& {
    commands.push_back({app.add_subcommand(name, help), run});
    return *commands.back().app;
  };
  CLI::App& compare = add("compare", "strategies x schedules, replayed and ranked (the main job)", command_compare);
  compare.add_option("STUDY", options.study, "a study file")->required();
  add_study_flags(compare, options, with_csv);
  compare
      .add_option("--confidence", options.confidence, "draw the cost model's errors so often (100 where no N is given)")
      ->type_name("N")
      ->expected(0, 1)
      ->default_str("100");
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

  CLI::App& sweep = add("sweep", "every combination of the study's axes, its results kept in a file", command_sweep);
  add_sweep_flags(sweep, options);
  CLI::App& points = add("points", "the results of sweeps as CSV or JSON lines; one point again", command_points);
  points.add_option("FILE", options.file, "that `sweep` wrote")->required();
  points.add_option("--format", options.format, "of the result")
      ->check(CLI::IsMember({"csv", "jsonl"}))
      ->default_str("csv");
  points.add_option("-o,--output", options.output, "write to this file instead of stdout")->type_name("FILE");
  points.add_option("--replay", options.point, "the point whose key begins so, alone, from its kept inputs")
      ->type_name("KEY");
  CLI::App& merge = add("merge", "the results of several sweeps or shards in one file", command_merge);
  merge.add_option("FILES", options.files, "that `sweep` wrote")->required();
  merge.add_option("-o,--output", options.output, "the file to add them to, made where it is absent")
      ->required()
      ->type_name("FILE");

  CLI::App& judge = add("judge", "planners x models x platforms: wins, regret, bias", command_judge);
  judge.add_option("STUDY", options.study, "a study file with the key 'judge'")->required();
  add_study_flags(judge, options, with_csv);
  judge.add_flag("--all", options.all_rows, "print every plan beside the scores");
  CLI::App& adapt = add("adapt", "training over time in a world that changes: adapting or not", command_adapt);
  adapt.add_option("STUDY", options.study, "a study file with the key adapt")->required();
  add_study_flags(adapt, options, with_csv);

  CLI::App& plan = add("plan", "one split, as a plan file", command_plan);
  add_model_flags(plan, options, true);
  add_study_flags(plan, options);
  plan.add_option("--strategy", options.strategy, "see `list strategies`")->required();
  plan.add_option("--schedule", options.schedule, "whose memory the plan must fit (default 1f1b)");

  CLI::App& replay = add("replay", "one run, timeline and all", command_replay);
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

  CLI::App& explain = add("explain", "what holds a run back, and what would help most", command_explain);
  add_model_flags(explain, options, true);
  add_study_flags(explain, options);
  add_plan_choice(explain, options);
  explain.add_option("--schedule", options.schedule, "see `list schedules`, or a file: .csv");

  CLI::App& report = add("report", "results as one page to look at, or as figures", command_report);
  report.add_option("RESULTS", options.files, "files of results (.json, .sqlite), or folders of such")->required();
  report.add_option("-o,--output", options.output, "the page, one file of HTML")->type_name("FILE");
  report.add_option("--figures", options.figures, "draw its charts as SVG and PDF into this folder")->type_name("DIR");
  report.add_option("--title", options.title, "of the page")->type_name("TEXT");

  CLI::App& execute = add("execute", "one run for real, on this machine, beside its prediction", command_execute);
  add_execute_flags(execute, options);

  CLI::App& train = add("train", "does it still learn? a small perceptron, trained by the plan's tasks", command_train);
  add_train_flags(train, options);

  CLI::App& schedule = add("schedule", "draw a schedule alone, from given times", command_schedule);
  schedule.add_option("NAME", options.schedule, "see `list schedules`")->required();
  add_common(schedule, options, with_csv);
  add_schedule_flags(schedule, options);
  add_dialect_flags(schedule, options);

  CLI::App& check = add("check", "is this plan or schedule valid here? if not, why", command_check);
  check.add_option("FILE", options.file, "a plan file, in any form, or a schedule: .csv")->required();
  add_plan_format(check, options);
  add_model_flags(check, options, false);
  add_study_flags(check, options);
  check.add_option("--schedule", options.schedule, "whose memory the plan must fit (default 1f1b)");

  CLI::App& show = add("show", "a model, platform, device or study, summed up", command_show);
  show.add_option("WHAT", options.file, "a name or a file")->required();
  add_import_flags(show, options);
  add_common(show, options);

  CLI::App& list = add("list", "what can be named", command_list);
  list.add_option("KIND", options.what,
                  "strategies, schedules, devices, platforms, workloads, cost-models, engines, formats, "
                  "measurement-formats, plan-formats, schedule-formats or metrics")
      ->required();
  add_common(list, options);

  CLI::App& validate = add("validate", "predict measured runs; error per row and in all", command_validate);
  validate.add_option("TRUTH", options.file, "measured runs, told apart by their files")->required();
  add_common(validate, options, with_csv);
  validate.add_flag("--timeline", options.timeline, "one run that `execute` wrote, task by task");
  validate.add_option("--figures", options.figures, "draw the errors as SVG into this folder")->type_name("DIR");
  validate
      .add_option("--trace", options.trace, "with --timeline: measured above predicted, as a Chrome/Perfetto trace")
      ->type_name("FILE");

  CLI::App& calibrate = add("calibrate", "measure, fit, and say how sure", command_calibrate);
  add_common(calibrate, options);
  add_measure_flags(calibrate, options);
  add_calibrate_actions(calibrate, options);

  CLI::App& import = add("import", "read a foreign model and sum it up, a schedule, or measurements", command_import);
  import.add_option("FORMAT", options.what, "see `list formats` and `list measurement-formats`, or schedule")
      ->required();
  import.add_option("FILE", options.file, "the file")->required();
  add_import_flags(import, options);
  add_dialect_flags(import, options);
  add_foreign_flags(import, options);
  add_common(import, options, with_csv);

  CLI::App& write =
      add("export", "one split in the form of another tool, a model's kernels, or a run to carry out elsewhere",
          command_export);
  write.add_option("FORMAT", options.what, "see `list plan-formats`, or shapes or pipeline")->required();
  add_model_flags(write, options, true);
  add_study_flags(write, options, {"table"});
  add_plan_choice(write, options);
  write.add_option("--schedule", options.schedule, "of the pipeline, or whose memory the plan must fit (default 1f1b)");
  add_gpu_run_flags(write, options);
  return commands;
}

int run(int count, char** arguments) {
  Options options;
  CLI::App app{"Rehearse a training run before buying the cluster.", "stagecraft"};
  app.set_version_flag("--version", "stagecraft " STAGECRAFT_VERSION);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of every command");
  const std::vector<Command> commands = add_commands(app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? kDone : kBadInput;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) {
      return command.run(options);
    }
  }
  return kBadInput;
}

} // namespace
} // namespace stagecraft

int main(int count, char** arguments) {
  std::signal(SIGINT, [](int) { _exit(stagecraft::kInterrupted); });
  try {
    return stagecraft::run(count, arguments);
  } catch (const stagecraft::InputError& failure) {
    stagecraft::remark("error: " + std::string(failure.what()) + "\n");
    return stagecraft::kBadInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "error: this takes more memory than there is\n";
    return stagecraft::kBadInput;
  } catch (const std::exception& failure) {
    stagecraft::remark("stagecraft: a bug, please report it: " + std::string(failure.what()) + "\n");
    return stagecraft::kBug;
  }
}
