// SPDX-License-Identifier: Apache-2.0
#include "sim/app/flags.hpp"

#include "sim/schedule/format/schedule_file.hpp"

namespace stagecraft {

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

void add_common(CLI::App& command, Options& options, const std::vector<std::string>& formats) {
  command.add_option("--format", options.format, "of the result")->check(CLI::IsMember(formats))->capture_default_str();
  command.add_option("-o,--output", options.output, "write the result to this file instead of stdout")
      ->type_name("FILE");
  command.add_flag("--quiet", options.quiet, "no progress and no remarks on stderr");
}

void add_study_flags(CLI::App& command, Options& options, const std::vector<std::string>& formats) {
  add_common(command, options, formats);
  command.add_option("--set", options.settings, "KEY=VALUE over any key of the study, as training.global_batch=64")
      ->type_name("KEY=VALUE")
      ->take_all();
  command.add_option("--engine", options.engine, "simgrid, simgrid-full or analytic")->type_name("NAME");
  command.add_option("--cost-model", options.cost_model, "auto, roofline, profiled or constant")->type_name("NAME");
  command.add_option("--seed", options.seed, "seed of strategies that draw")->type_name("N");
}

void add_confidence_flag(CLI::App& command, Options& options) {
  command
      .add_option("--confidence", options.confidence, "draw the cost model's errors so often (100 where no N is given)")
      ->type_name("N")
      ->expected(0, 1)
      ->default_str("100");
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

// Of a run that calibrate_gpu carries out, here or elsewhere.
void add_gpu_run_flags(CLI::App& command, Options& options) {
  command.add_option("--iterations", options.iterations, "to run in a row")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command.add_option("--copies", options.copies, "within a GPU, of a pipeline: device, host or shaped")
      ->check(CLI::IsMember({"device", "host", "shaped"}))
      ->capture_default_str();
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

} // namespace stagecraft
