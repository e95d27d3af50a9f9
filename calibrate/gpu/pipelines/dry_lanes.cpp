// Lanes that do no work: a simulated clock says what each step would take.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "calibrate/gpu/pipelines/lanes.hpp"

namespace stagecraft::gpu {
namespace {

// Speeds of a multiprocessor and of a host thread, in FLOP/s and B/s, and a launch in seconds.
constexpr double kFlops = 5e12, kMemory = 2.5e10, kHostFlops = 5e10, kHostMemory = 5e9;
constexpr double kDeviceCopy = 2e11, kHostCopy = 2.5e10, kLaunch = 3e-6, kHandOver = 4e-6;
constexpr int kProcessors = 132, kUnit = 8;

double seconds_of(const Kernel& kernel, const PipelineDevice& device) {
  const double parts = device.on_host() ? device.threads : device.processors > 0 ? device.processors : kProcessors;
  const double flops = parts * (device.on_host() ? kHostFlops : kFlops);
  const double memory = parts * (device.on_host() ? kHostMemory : kMemory);
  return kLaunch + std::max(flops_of(kernel) / flops, bytes_of(kernel) / memory);
}

class DryLanes : public Lanes {
public:
  DryLanes(const Pipeline& pipeline, int failing)
      : lanes_(pipeline.devices.size() + static_cast<std::size_t>(pipeline.channels)), failing_(failing) {
    if (const std::string reason = why_no_partitions(pipeline, kProcessors, kUnit); !reason.empty()) {
      throw std::invalid_argument(pipeline.name + ": " + reason);
    }
    for (const PipelineWork& work : pipeline.works) {
      nanoseconds_.push_back(static_cast<std::int64_t>(std::llround(1e9 * seconds_of_work(pipeline, work))));
    }
  }

  std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) override {
    std::vector<std::int64_t> free(lanes_, 0);
    std::vector<LaneSpan> spans;
    for (const LaneStep& step : steps) {
      if (static_cast<int>(spans.size()) == failing_) {
        throw LaneFailure(failing_, "was told to fail");
      }
      std::int64_t& lane = free[static_cast<std::size_t>(step.lane)];
      LaneSpan span{lane, 0};
      for (const int before : step.after) {
        const bool own = steps[static_cast<std::size_t>(before)].lane == step.lane;
        const auto hand_over = static_cast<std::int64_t>(own ? 0 : 1e9 * kHandOver);
        span.start = std::max(span.start, spans[static_cast<std::size_t>(before)].finish + hand_over);
      }
      span.finish = span.start + (step.work < 0 ? 0 : nanoseconds_[static_cast<std::size_t>(step.work)]);
      lane = span.finish;
      spans.push_back(span);
    }
    return spans;
  }

  Facts conditions() const override { return {{"device", "none: a dry run, whose times are made up"}}; }

private:
  static double seconds_of_work(const Pipeline& pipeline, const PipelineWork& work) {
    double seconds = 0;
    if (work.kind == PipelineWork::Kind::compute) {
      for (const RepeatedKernel& one : work.kernels) {
        seconds += one.times * seconds_of(one.kernel, pipeline.devices[static_cast<std::size_t>(work.device)]);
      }
    } else if (work.kind == PipelineWork::Kind::copy) {
      const bool ends_on_host = pipeline.devices[static_cast<std::size_t>(work.device)].on_host() ||
                                pipeline.devices[static_cast<std::size_t>(work.to)].on_host();
      const auto bytes = static_cast<double>(work.bytes);
      seconds = kLaunch +
                (ends_on_host                    ? bytes / kHostCopy
                 : work.route == CopyRoute::host ? 2 * bytes / kHostCopy
                 : work.route == CopyRoute::device
                     ? bytes / kDeviceCopy
                     : work.latency + std::max(bytes / kDeviceCopy, work.bandwidth > 0 ? bytes / work.bandwidth : 0));
    }
    return seconds;
  }

  std::size_t lanes_;
  int failing_;
  std::vector<std::int64_t> nanoseconds_; // [work]
};

} // namespace

std::unique_ptr<Lanes> make_dry_lanes(const Pipeline& pipeline, int failing) {
  return std::make_unique<DryLanes>(pipeline, failing);
}

} // namespace stagecraft::gpu
