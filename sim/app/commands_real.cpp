// Commands about real runs and measurements.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/commands.hpp"
#include "sim/schedule/format/schedule_file.hpp"

#include "calibrate/fit/kernel_tables.hpp"
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft {
namespace {

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

} // namespace

void add_real_commands(CommandList& list) {
  Options& options = list.options;
  list.group = "Reality";
  const std::vector<std::string> with_csv = {"table", "json", "csv"};
  CLI::App& execute = list.add("execute", "one run for real, on this machine, beside its prediction", command_execute);
  add_execute_flags(execute, options);

  CLI::App& train =
      list.add("train", "does it still learn? a small perceptron, trained by the plan's tasks", command_train);
  add_train_flags(train, options);

  CLI::App& validate = list.add("validate", "predict measured runs; error per row and in all", command_validate);
  validate.add_option("TRUTH", options.file, "measured runs, told apart by their files")->required();
  add_common(validate, options, with_csv);
  validate.add_flag("--timeline", options.timeline, "one run that `execute` wrote, task by task");
  validate.add_option("--figures", options.figures, "draw the errors as SVG into this folder")->type_name("DIR");
  validate
      .add_option("--trace", options.trace, "with --timeline: measured above predicted, as a Chrome/Perfetto trace")
      ->type_name("FILE");

  CLI::App& calibrate = list.add("calibrate", "measure, fit, and say how sure", command_calibrate);
  add_common(calibrate, options);
  add_measure_flags(calibrate, options);
  add_calibrate_actions(calibrate, options);
}

} // namespace stagecraft
