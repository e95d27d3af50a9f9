// stagecraft calibrate: measures kernels of this machine, or carries out one of its actions.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/command/calibrate.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/app/common/program.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"

#include "calibrate/cpu/measure_kernels.hpp"
#include "calibrate/gpu/progress.hpp"

namespace stagecraft {
namespace {

constexpr double kQuick = 10; // s

void add_flags(Flags& flags, MeasureOptions& options, OutputOptions& output) {
  constexpr int kMostThreads = 1024, kMostSamples = 1 << 20;
  add_output_flags(flags, output, {"table", "json"});
  flags.add("--backend", &options.backend, "what to measure: the processor of this machine, or a GPU",
            {.check = one_of({"cpu", "gpu"}), .shows_default = true});
  flags.add("--budget", &options.budget, "time of the whole run, as 50 or '2 min' (default 50 s; a GPU's 420 s)",
            {.name = "T"});
  flags.add("--quick", &options.quick, "measure coarsely, in 10 s");
  flags.add("--groups", &options.groups, "measure only these groups of kernels, as gemm,copies",
            {.name = "NAME,…", .commas = true});
  flags.add("--shapes", &options.shapes, "a list of kernels to measure first, see `export shapes`", {.name = "FILE"});
  flags.add("--name", &options.device_name, "name of the device in the file (default: its own)", {.name = "NAME"});
  flags.add("--threads", &options.threads, "backend cpu: number of threads that make up one device",
            {.check = whole_number(1, kMostThreads), .shows_default = true});
  flags.add("--library", &options.library, "backend cpu: library of the matrix products",
            {.check = one_of({"eigen", "openblas"}), .shows_default = true});
  flags.add("--workload", &options.model, "measure the operators of this model, and write its profile",
            {.name = "MODEL"});
  flags.add("--micro-batches", &options.sizes,
            "with --workload: sizes of micro-batches to measure it at, as 1,2,4 (default 1)",
            {.name = "N,…", .check = whole_number(1, kMostSamples), .commas = true});
  add_reading_flags(flags, options.reading);
  flags.add("--set", &options.settings,
            "with --workload: set a key of the model, as model.input.shape='[128]'; may be repeated",
            {.name = "KEY=VALUE"});
  flags.add("--gpu-binary", &options.gpu_binary, "the program calibrate_gpu (default: beside this program)",
            {.name = "FILE"});
}

// "50", in seconds, or with a unit.
double seconds_of(const std::string& text) {
  const Where where{"--budget " + text, 0, 0};
  const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  const double seconds = plain ? parse_number(text, where) : parse_quantity<Seconds>(text, where).value;
  if (seconds < 1 || seconds > 86400) {
    throw InputError(where, "allowed: 1 s to 86400 s");
  }
  return seconds;
}

double budget_of(const MeasureOptions& options) {
  constexpr double kBudget = 50;
  return !options.budget.empty() ? seconds_of(options.budget) : options.quick ? kQuick : kBudget;
}

std::vector<gpu::Kernel> read_shapes(const std::string& file) {
  if (file.empty()) {
    return {};
  }
  const std::string text = read_file(file);
  check_utf8(text, file);
  return gpu::parse_shape_list(text, file);
}

// Replaces this process with the harness, whose exit status then counts.
ExitStatus measure_gpu(const MeasureOptions& options, const std::string& file) {
  std::vector<std::string> words = {gpu_program(options.gpu_binary), "--out", file};
  const auto pass_on = [&](const char* flag, const std::string& value) {
    if (!value.empty()) {
      words.insert(words.end(), {flag, value});
    }
  };
  std::string groups;
  for (const std::string& group : options.groups) {
    groups += (groups.empty() ? "" : ",") + group;
  }
  pass_on("--groups", groups);
  pass_on("--shapes", options.shapes);
  pass_on("--name", options.device_name);
  if (!options.budget.empty() || options.quick) {
    pass_on("--budget", to_text(options.budget.empty() ? 60 : seconds_of(options.budget), 1));
  }
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());
  throw InputError({words.front(), 0, 0}, std::string("cannot be started: ") + std::strerror(errno));
}

ExitStatus measure_cpu(const MeasureOptions& options, const OutputOptions& output) {
  const double budget = budget_of(options);
  const std::vector<gpu::Group> groups = cpu::plan_sweep(options.groups, read_shapes(options.shapes));
  cpu::Device device({options.threads, options.library, options.device_name});
  gpu::MeasurementFile file(output.file, device.header());
  gpu::Progress progress(stderr, !output.quiet && isatty(STDERR_FILENO) != 0, budget);
  const auto say = [&](const std::string& text) { progress.say(on_one_line(text)); };
  const std::size_t earlier = file.size();
  if (!output.quiet) {
    say(device.text() + "; into " + output.file +
        (earlier > 0 ? ", which has " + std::to_string(earlier) + " measurements already" : ""));
  }
  cpu::SweepOptions sweep;
  sweep.budget = budget;
  sweep.progress = [&](const std::string& group, std::size_t done, std::size_t of, double now) {
    progress.show(group, done, of, now);
  };
  sweep.remark = [&](const std::string& text) {
    if (!output.quiet) {
      say("left out: " + text);
    }
  };
  cpu::run_sweep(groups, device, file, sweep);
  if (!output.quiet) {
    say("done: " + std::to_string(file.size()) + " measurements in " + output.file);
  }
  return kDone;
}

ExitStatus measure(const MeasureOptions& options, const OutputOptions& output) {
  if (output.file.empty()) {
    throw InputError({"calibrate", 0, 0}, "no file to write to; allowed: -o FILE");
  }
  try {
    return !options.model.empty()     ? measure_workload(options, output)
           : options.backend == "gpu" ? measure_gpu(options, output.file)
                                      : measure_cpu(options, output);
  } catch (const std::invalid_argument& failure) {
    throw InputError({"calibrate", 0, 0}, failure.what());
  } catch (const std::runtime_error& failure) {
    throw InputError({"calibrate", 0, 0}, failure.what());
  }
}

// The flags of calibrate itself are those of measuring; only -o, --format and --quiet are any action's.
void refuse_measuring_flags(const Flags& calibrate) {
  for (const std::string& flag : calibrate.given_flags()) {
    if (flag != "--output" && flag != "--format" && flag != "--quiet") {
      throw InputError({"calibrate", 0, 0}, flag +
                                                " before an action does nothing; allowed: the action's own flags "
                                                "after it, or " +
                                                flag + " without an action, to measure");
    }
  }
}

} // namespace

Job command_calibrate(Flags& flags) {
  struct CalibrateCommand {
    MeasureOptions measure;
    OutputOptions output;
  };
  const auto options = std::make_shared<CalibrateCommand>();
  add_flags(flags, options->measure, options->output);
  Flags fit = flags.command("fit", "make a device file with fits from measurements");
  Flags predict = flags.command("predict", "compare measured kernels with what a device file predicts");
  Flags show = flags.command("show", "show the fits of a device file and their errors");
  const std::vector<std::pair<Flags, Job>> actions = {{fit, calibrate_fit(fit, options->output)},
                                                      {predict, calibrate_predict(predict, options->output)},
                                                      {show, calibrate_show(show, options->output)}};
  flags.allow_one_command();
  return [options, actions, flags] {
    for (const auto& [action, job] : actions) {
      if (action.given()) {
        refuse_measuring_flags(flags);
        return job();
      }
    }
    return measure(options->measure, options->output);
  };
}

} // namespace stagecraft
