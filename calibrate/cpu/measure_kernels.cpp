// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/measure_kernels.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include "calibrate/gpu/sweep/budget.hpp"

namespace stagecraft::cpu {
namespace {

constexpr double kForSentinels = 0.6; // seconds of the budget kept for the last sentinels

std::string processor_description() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  utsname names{};
  return uname(&names) == 0 ? names.machine : "processor";
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string vendor_of(const std::string& description) {
  for (const char* vendor : {"amd", "intel", "arm", "apple", "ibm"}) {
    if (lower(description).find(vendor) != std::string::npos) {
      return vendor;
    }
  }
  return "unknown";
}

// A file name from the processor's description and the number of threads, such as "cpu-amd-epyc-9654-x4": words of
// letters and digits.
std::string name_of(const std::string& description, int threads) {
  std::string name = "cpu";
  bool word = false;
  for (const char c : lower(description)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += plain ? (word ? "" : "-") + std::string(1, c) : "";
    word = plain;
  }
  return name + (threads > 1 ? "-x" + std::to_string(threads) : "");
}

std::string mebibytes(double bytes) { return std::to_string(static_cast<long>(bytes / (1 << 20))) + " MiB"; }

Routines routines_for(const std::string& library) {
  return library == "openblas" ? with_openblas(best_routines()) : best_routines();
}

} // namespace

Device::Device(const DeviceOptions& options)
    : options_(options), name_(options.name.empty() ? name_of(processor_description(), options.threads) : options.name),
      routines_(routines_for(options.library)), team_(options.threads) {}

gpu::Timing Device::measure(const gpu::Point& point, const Sampling& sampling) {
  arena_.clear();
  const Maker maker{routines_, arena_, options_.threads};
  const auto* kernel = std::get_if<gpu::KernelPoint>(&point);
  const Work work =
      kernel != nullptr ? make_work(kernel->kernel, maker) : make_copy(std::get<gpu::CopyPoint>(point).bytes, maker);
  gpu::Timing timing = sample([&](int runs) { return team_.run(work, runs); }, sampling, seconds_now);
  timing.variant =
      options_.library + " " + routines_.instructions + (timing.variant.empty() ? "" : ", " + timing.variant);
  return timing;
}

std::string Device::text() const {
  return name_ + ", " + std::to_string(options_.threads) + (options_.threads == 1 ? " thread, " : " threads, ") +
         options_.library + " " + routines_.instructions;
}

gpu::Header Device::header() const {
  const std::string description = processor_description();
  const auto pages = [](int name) { return static_cast<double>(std::max(0L, sysconf(name))); };
  utsname names{};
  uname(&names);
  gpu::Header header;
  header.device = {{"name", name_},
                   {"vendor", vendor_of(description)},
                   {"description", description},
                   {"kind", "cpu"},
                   {"memory", mebibytes(pages(_SC_PHYS_PAGES) * pages(_SC_PAGE_SIZE))},
                   {"processors", std::to_string(options_.threads)}};
  if (const double cache = pages(_SC_LEVEL3_CACHE_SIZE); cache > 0) {
    header.device.emplace_back("cache", mebibytes(cache));
  }
  header.host = {{"description", std::string(names.sysname) + " " + names.release},
                 {"cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))}};
  header.software = {{"harness", "1"}, {"products", options_.library}, {"instructions", routines_.instructions}};
  header.method = {{"timer", "thread CPU time"},           {"warm_up", "2"},
                   {"cache", "as the run before left it"}, {"data", "gaussian"},
                   {"scheduling", team_.scheduling()},     {"started", gpu::utc_now()}};
  return header;
}

namespace {

class MeasurementRun {
public:
  MeasurementRun(const std::vector<gpu::Group>& groups, Device& device, gpu::MeasurementFile& file,
                 const SweepOptions& options)
      : groups_(groups), device_(device), file_(file), options_(options), start_(options.now()) {}

  void run() {
    std::vector<double> weights;
    for (const gpu::Group& group : groups_) {
      weights.push_back(std::all_of(group.points.begin(), group.points.end(),
                                    [&](const gpu::Point& point) { return file_.has(point); })
                            ? 0
                            : group.weight);
    }
    const gpu::Budget budget(options_.budget - kForSentinels, weights);
    run_sentinels("start");
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i == groups_.size() / 2) {
        run_sentinels("middle");
      }
      run_group(groups_[i], budget.deadline(i, now()));
    }
    run_sentinels("end");
    file_.finish(now());
  }

private:
  double now() const { return options_.now() - start_; }

  void run_sentinels(const std::string& when) {
    for (const gpu::Kernel& kernel : sentinels()) {
      const gpu::Timing timing = device_.measure(gpu::KernelPoint{kernel, gpu::Regime::burst}, options_.sampling);
      file_.add_sentinel(when, kernel, timing.seconds.median);
    }
  }

  void run_group(const gpu::Group& group, double deadline) {
    std::map<std::string, int> left_out;
    std::size_t done = 0;
    for (const gpu::Point& point : group.points) {
      if (!file_.has(point)) {
        if (now() >= deadline) {
          ++left_out["no time left"];
          continue;
        }
        try {
          file_.add(point, device_.measure(point, options_.sampling));
        } catch (const std::runtime_error& error) {
          ++left_out[error.what()];
          continue;
        }
      }
      ++done;
      if (options_.progress) {
        options_.progress(group.name, done, group.points.size(), now());
      }
    }
    for (const auto& [reason, count] : left_out) {
      const std::string text = group.name + ": " + std::to_string(count) + " points: " + reason;
      file_.leave_out(text);
      if (options_.remark) {
        options_.remark(text);
      }
    }
  }

  const std::vector<gpu::Group>& groups_;
  Device& device_;
  gpu::MeasurementFile& file_;
  const SweepOptions& options_;
  double start_;
};

} // namespace

void run_sweep(const std::vector<gpu::Group>& groups, Device& device, gpu::MeasurementFile& file,
               const SweepOptions& options) {
  MeasurementRun(groups, device, file, options).run();
}

} // namespace stagecraft::cpu
