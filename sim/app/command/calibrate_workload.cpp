// stagecraft calibrate --workload: the operators of a model, measured on this machine.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/app/command/calibrate.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/workload/layer/kernel_list.hpp"

#include "calibrate/cpu/measure_kernels.hpp"
#include "calibrate/cpu/profile.hpp"

namespace stagecraft {
namespace {

// The settings of the model. Of the other settings only the precision is allowed, and only fp32.
std::vector<Setting> model_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const Setting& setting : parse_settings(texts)) {
    const Where where{"--set " + setting.key, 0, 0};
    constexpr std::string_view kModel = "model.";
    if (setting.key.starts_with(kModel)) {
      settings.push_back({setting.key.substr(kModel.size()), setting.value});
    } else if (setting.key != "training.precision") {
      throw InputError(where, "has no part in measuring a model; allowed: training.precision, model.KEY");
    } else if (setting.value != "fp32") {
      throw InputError(where, "'" + setting.value + "' cannot be measured on a processor; allowed: fp32");
    }
  }
  return settings;
}

std::vector<double> sizes_of(const std::vector<int>& given) {
  std::vector<double> sizes(given.begin(), given.end());
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes.empty() ? std::vector<double>{1} : sizes;
}

// The kernels measured so far, in a file of measurements beside the output. A run that is cut off leaves the file
// behind for the next.
class Kept {
public:
  Kept(std::string path, cpu::Device& device) : path_(std::move(path)), device_(device), file_(path_, device.header()) {
    if (file_.size() == 0) {
      return;
    }
    yaml::Node document = yaml::load(path_);
    yaml::set(document, "complete", "true", {path_, 0, 0}); // counts as complete as far as it goes
    for (const MeasuredRow& row : read_measurements(document).measured) {
      known_[to_text(row.kernel)] = {row.time.median, row.time.spread()};
    }
  }

  cpu::KernelTiming time(const Kernel& kernel) {
    const auto known = known_.find(to_text(kernel));
    return known != known_.end() ? known->second : measure(kernel);
  }

  std::size_t size() const { return known_.size(); }
  void remove() const { std::filesystem::remove(path_); }

private:
  cpu::KernelTiming measure(const Kernel& kernel) {
    const gpu::KernelPoint point{gpu::parse_kernel(to_text(kernel)), gpu::Regime::burst};
    const gpu::Timing timing = run(point, kernel);
    file_.add(point, timing);
    const gpu::Summary& time = timing.seconds;
    return {Seconds{time.median}, relative_spread(time.q1, time.median, time.q3)};
  }

  gpu::Timing run(const gpu::KernelPoint& point, const Kernel& kernel) {
    try {
      return device_.measure(point, cpu::Sampling{});
    } catch (const std::runtime_error& failure) {
      throw InputError({to_text(kernel), 0, 0}, "cannot run here: " + std::string(failure.what()));
    }
  }

  std::string path_;
  cpu::Device& device_;
  gpu::MeasurementFile file_;
  std::map<std::string, cpu::KernelTiming> known_; ///< timings of earlier runs
};

cpu::MeasuredModel measure(const ModelGraph& model, const std::vector<double>& sizes, bool quiet,
                           const cpu::Device& device, Kept& kept) {
  Progress progress(quiet);
  cpu::MeasuredModel measured = cpu::measure_model(
      model, sizes, [&](const Kernel& kernel) { return kept.time(kernel); },
      [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  for (Profile& profile : measured.profiles) {
    profile.device = device.name();
  }
  return measured;
}

// The times that the model already has of other device types stay, before the new ones: other types still scale from
// the first. Says which do not.
void keep_others(const ModelGraph& model, bool quiet, cpu::MeasuredModel& measured) {
  const Profile here = measured.profiles.front();
  std::vector<Profile> all;
  for (const Profile& profile : model.profiles) {
    if (cpu::can_stay_beside(profile, here)) {
      all.push_back(profile);
    } else if (profile.device != here.device && !quiet) {
      remark("the model's own times" + (profile.device.empty() ? "" : " on " + excerpt(profile.device)) +
             " are left out: only whole operators in " + std::string(row_of(here.precision).name) +
             " on a named device type, for a known number of samples, stand beside these\n");
    }
  }
  all.insert(all.end(), measured.profiles.begin(), measured.profiles.end());
  measured.profiles = std::move(all);
}

} // namespace

ExitStatus measure_workload(const MeasureOptions& options, const OutputOptions& output) {
  if (options.backend != "cpu") {
    throw InputError({"--backend " + options.backend, 0, 0},
                     "measures no models; allowed: cpu, or `export shapes` and `calibrate --backend gpu --shapes`, or "
                     "calibrate/hook.py");
  }
  const ModelGraph model =
      read_model(model_node(options.model, options.reading), {".", shipped_folder()}, model_settings(options.settings));
  require_kernels(model, options.model);
  cpu::Device device({options.threads, options.library, options.device_name});
  Kept kept(output.file + ".part", device);
  if (kept.size() > 0 && !output.quiet) {
    remark("goes on: " + std::to_string(kept.size()) + " measured already, in " + output.file + ".part\n");
  }
  cpu::MeasuredModel measured = measure(model, sizes_of(options.sizes), output.quiet, device, kept);
  keep_others(model, output.quiet, measured);
  write_file(output.file, cpu::profile_text(model, measured, "measured by stagecraft calibrate on " + device.text()));
  kept.remove();
  if (!output.quiet) {
    for (const std::string& text : measured.stand_ins) {
      remark("no kernel of its own, in its stead " + text + "\n");
    }
    remark("done: " + std::to_string(model.size()) + " operators at " + std::to_string(measured.profiles.size()) +
           (measured.profiles.size() == 1 ? " size" : " sizes") + " in " + output.file + "\n");
  }
  return kDone;
}

} // namespace stagecraft
