// calibrate_gpu: measures the kernels and links of one GPU and writes a file of measurements.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "calibrate/gpu/check/check.hpp"
#include "calibrate/gpu/device/cuda_error.hpp"
#include "calibrate/gpu/device/device.hpp"
#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/pipelines/gpu_lanes.hpp"
#include "calibrate/gpu/pipelines/pipelines.hpp"
#include "calibrate/gpu/probe.hpp"
#include "calibrate/gpu/runner.hpp"
#include "calibrate/gpu/supervise.hpp"

namespace stagecraft::gpu {
namespace {

enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 3, kNoDevice = 4 };

std::atomic<bool> stop{false};
extern "C" void request_stop(int) { stop = true; }

std::vector<Kernel> read_shapes(const std::string& path) {
  if (path.empty()) {
    return {};
  }
  std::ifstream in(path);
  if (!in) {
    throw std::invalid_argument("cannot read " + path);
  }
  std::ostringstream text;
  text << in.rdbuf();
  return parse_shape_list(text.str(), path);
}

std::vector<Group> wanted_groups(const Options& options, const Machine& machine) {
  std::vector<Group> groups = plan_sweep(machine, read_shapes(options.shapes));
  const auto unwanted = [&](const Group& group) {
    return !options.groups.empty() &&
           std::find(options.groups.begin(), options.groups.end(), group.name) == options.groups.end();
  };
  groups.erase(std::remove_if(groups.begin(), groups.end(), unwanted), groups.end());
  return groups;
}

void print_points(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const Point& point : group.points) {
      std::cout << group.name << (group.processors > 0 ? " of " + std::to_string(group.processors) : "") << ": "
                << to_text(point) << "\n";
    }
  }
}

void print_groups(const std::vector<Group>& groups, double budget) {
  double weights = 0;
  for (const Group& group : groups) {
    weights += group.points.empty() ? 0 : group.weight;
  }
  for (const Group& group : groups) {
    const double seconds = group.points.empty() ? 0 : budget * group.weight / std::max(weights, 1e-9);
    std::printf("%-12s %5zu points, at first %5.1f s  %s%s\n", group.name.c_str(), group.points.size(), seconds,
                group.help.c_str(), group.processors > 0 ? (": " + std::to_string(group.processors)).c_str() : "");
  }
}

int say_no_device(int wanted, const DeviceCount& count) {
  std::cerr << "calibrate_gpu: "
            << (count.devices == 0 ? "no CUDA device: " + count.problem
                                   : "device " + std::to_string(wanted) + " is not there; allowed: 0 to " +
                                         std::to_string(count.devices - 1))
            << "\n";
  return count.devices == 0 ? kNoDevice : kUsage;
}

// Runs one pipeline from stdin to stdout, or a list of files.
int run_pipelines(const Options& options, const MakeLanes& make) {
  if (options.pipelines == std::vector<std::string>{"-"}) {
    std::ostringstream text;
    text << std::cin.rdbuf();
    const CarriedOut carried = carry_out_text(text.str(), "stdin", options.runs, make);
    std::cout << to_text(carried) << std::flush;
    if (!carried.failure.empty()) {
      std::cerr << "calibrate_gpu: " << carried.failure << "\n";
    }
    return std::cout ? kDone : kFailed; // failures are part of the output
  }
  const PipelinesEnd end =
      carry_out_files(options, make, stop, [](const std::string& text) { std::cerr << text << "\n"; });
  if (end.left > 0) {
    std::cerr << "calibrate_gpu: " << end.left << " pipelines are left; run again to go on\n";
  }
  return end.failed > 0 ? kFailed : end.left > 0 ? kInterrupted : kDone;
}

int run_pipelines(const Options& options) {
  if (options.dry_run) {
    return run_pipelines(options, [](const Pipeline& pipeline) { return make_dry_lanes(pipeline); });
  }
  const DeviceCount count = count_devices();
  if (count.devices <= options.device) {
    return say_no_device(options.device, count);
  }
  Session session(options.device, library_folders(options.libraries));
  return run_pipelines(options, [&](const Pipeline& pipeline) { return make_gpu_lanes(pipeline, session); });
}

int run_check(const Options& options) {
  Session session(options.device, library_folders(options.libraries));
  for (const std::string& line : probe(session)) {
    std::cout << line << std::endl;
  }
  const auto stream = make_stream();
  const Checked checked =
      check_kernels(session, stream.get(), [](const std::string& line) { std::cout << line << std::endl; });
  std::cout << checked.right << " kernels are right, " << checked.wrong << " wrong, " << checked.left_out
            << " could not be run\n";
  return checked.wrong > 0 ? kFailed : kDone;
}

int run(const Options& options, const std::vector<std::string>& arguments) {
  if (options.help) {
    std::cout << help_text();
    return kDone;
  }
  if (!options.pipelines.empty()) {
    return run_pipelines(options);
  }
  if (options.list || options.dry_run) {
    const std::vector<Group> groups = wanted_groups(options, describe_machine(options.device));
    options.list ? print_points(groups) : print_groups(groups, options.budget);
    return kDone;
  }
  const DeviceCount count = count_devices();
  if (count.devices <= options.device) {
    return say_no_device(options.device, count);
  }
  if (options.check) {
    return run_check(options);
  }
  if (!is_supervised()) {
    return supervise(arguments, options, stop, kFailed);
  }
  const std::vector<Group> groups = wanted_groups(options, describe_machine(options.device));
  return run_sweep(options, groups, stop) == Ended::done ? kDone : kInterrupted;
}

} // namespace
} // namespace stagecraft::gpu

int main(int argc, char** argv) {
  using namespace stagecraft::gpu;
  // Otherwise streams of separate partitions could share a queue of the device.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return run(parse_options(arguments), arguments);
  } catch (const std::invalid_argument& error) {
    std::cerr << "calibrate_gpu: " << error.what() << "\n";
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "calibrate_gpu: " << error.what() << "\n";
    return kFailed;
  }
}
