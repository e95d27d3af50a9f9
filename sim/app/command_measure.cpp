// stagecraft calibrate --backend: measures kernels of this machine.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"

#include "calibrate/cpu/measure_kernels.hpp"
#include "calibrate/gpu/progress.hpp"

namespace stagecraft {
namespace {

constexpr double kQuick = 10; // s

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

double budget_of(const Options& options) {
  constexpr double kBudget = 50;
  return !options.budget.empty() ? seconds_of(options.budget) : options.quick ? kQuick : kBudget;
}

std::vector<gpu::Kernel> read_shapes(const std::string& file) {
  return file.empty() ? std::vector<gpu::Kernel>() : gpu::parse_shape_list(read_file(file), file);
}

// This process becomes the harness, whose exit status is then ours.
int measure_gpu(const Options& options) {
  std::vector<std::string> words = {gpu_program(options), "--out", options.output};
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

int measure_cpu(const Options& options) {
  const double budget = budget_of(options);
  const std::vector<gpu::Group> groups = cpu::plan_sweep(options.groups, read_shapes(options.shapes));
  cpu::Device device({options.threads, options.library, options.device_name});
  gpu::MeasurementFile file(options.output, device.header());
  gpu::Progress progress(stderr, !options.quiet && isatty(STDERR_FILENO) != 0, budget);
  const std::size_t earlier = file.size();
  if (!options.quiet) {
    progress.say(device.text() + "; into " + options.output +
                 (earlier > 0 ? ", which has " + std::to_string(earlier) + " measurements already" : ""));
  }
  cpu::SweepOptions sweep;
  sweep.budget = budget;
  sweep.progress = [&](const std::string& group, std::size_t done, std::size_t of, double now) {
    progress.show(group, done, of, now);
  };
  sweep.remark = [&](const std::string& text) {
    if (!options.quiet) {
      progress.say("left out: " + text);
    }
  };
  cpu::run_sweep(groups, device, file, sweep);
  if (!options.quiet) {
    progress.say("done: " + std::to_string(file.size()) + " measurements in " + options.output);
  }
  return kDone;
}

} // namespace

std::string gpu_program(const Options& options) {
  const std::string given = options.gpu_binary;
  const std::string file =
      !given.empty() ? given
                     : (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "calibrate_gpu").string();
  if (access(file.c_str(), X_OK) != 0) {
    throw InputError({"--backend gpu", 0, 0},
                     "no program " + file +
                         "; it is built where there is a CUDA Toolkit: cmake --build BUILD --target calibrate_gpu, or "
                         "alone from calibrate/gpu (docs/calibration.md). allowed: --gpu-binary FILE");
  }
  return file;
}

int command_measure(const Options& options) {
  if (options.output.empty()) {
    throw InputError({"calibrate", 0, 0}, "no file to write to; allowed: -o FILE");
  }
  try {
    return !options.model.empty()     ? command_profile(options)
           : options.backend == "gpu" ? measure_gpu(options)
                                      : measure_cpu(options);
  } catch (const std::invalid_argument& failure) {
    throw InputError({"calibrate", 0, 0}, failure.what());
  } catch (const std::runtime_error& failure) {
    throw InputError({"calibrate", 0, 0}, failure.what());
  }
}

} // namespace stagecraft
