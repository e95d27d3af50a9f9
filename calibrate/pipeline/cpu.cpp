// Backend `cpu`: a device is a core of this machine that really runs the kernels of its stages; a transfer copies its
// bytes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "calibrate/cpu/work.hpp"
#include "calibrate/pipeline/cores.hpp"

namespace stagecraft::pipeline {
namespace {

// A kernel with its own operands.
struct Piece {
  cpu::Work work;
  int times = 1;
  bool goes_on = true; // its result goes to the next operator; false for gradients of weights
};

void run(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    for (int time = 0; time < piece.times; ++time) {
      piece.work.run(0, 0, piece.work.items);
      if (piece.work.finish) {
        piece.work.finish();
      }
    }
  }
}

// How a thread used its core. Each Usage is written by one thread only.
struct alignas(64) Usage {
  Nanoseconds wall = 0, processor = 0; // while it worked
};

struct Device {
  cpu::Arena operands;
  std::vector<std::pair<std::int32_t, std::vector<Piece>>> pieces; // pieces of each work, sorted by work
  double speed = 1;
  bool warm = false; // all operands have been touched
  Usage usage;

  const std::vector<Piece>& of(std::int32_t work) const {
    const auto at = std::lower_bound(pieces.begin(), pieces.end(), work,
                                     [](const auto& one, std::int32_t wanted) { return one.first < wanted; });
    static const std::vector<Piece> kNothing;
    return at != pieces.end() && at->first == work ? at->second : kNothing;
  }
};

struct ChannelBuffers {
  std::vector<char> from, to; // from: where no computation's result is as large
  Usage usage;
};

// The last result of a computation that goes to the next operator; nullptr if it has fewer bytes than needed.
const char* result_of(const std::vector<Piece>& pieces, double bytes) {
  const auto last = std::find_if(pieces.rbegin(), pieces.rend(), [](const Piece& piece) { return piece.goes_on; });
  if (last == pieces.rend() || last->work.operands.empty()) {
    return nullptr;
  }
  const cpu::Work::Operand& made = last->work.operands.back();
  return static_cast<double>(made.count) * sizeof(float) < bytes ? nullptr : reinterpret_cast<const char*>(made.values);
}

class Processor : public Backend {
public:
  explicit Processor(const Setting& setting)
      : graph_(setting.graph), cores_(cores_for(setting)), routines_(cpu::best_routines()),
        devices_(setting.graph.devices.size()), channels_(setting.channels.work_of.size()) {
    if (setting.kernels.size() != graph_.works.size()) {
      throw Unavailable("the model's costs are given by numbers, which says nothing of kernels");
    }
    for (std::size_t device = 0; device < setting.speeds.size(); ++device) {
      devices_[device].speed = setting.speeds[device];
    }
    for (std::size_t work = 0; work < graph_.works.size(); ++work) {
      const Work& one = graph_.works[work];
      if (one.transfers()) {
        ChannelBuffers& channel = channels_[setting.channels.of_work[work]];
        const auto bytes = static_cast<std::size_t>(one.bytes);
        channel.from.resize(std::max(channel.from.size(), bytes), 1);
        channel.to.resize(std::max(channel.to.size(), bytes));
      } else if (one.computes() && !setting.kernels[work].empty()) {
        Device& device = devices_[one.device];
        device.pieces.emplace_back(static_cast<std::int32_t>(work), make(setting.kernels[work], device.operands));
      }
    }
    find_sources();
  }

  // Touches every operand, so that no task of the run uses memory for the first time.
  void enter_device(int device) noexcept override {
    stay_on(cores_.of_device[device]);
    devices_[device].usage = {};
    if (!std::exchange(devices_[device].warm, true)) {
      for (const auto& [work, pieces] : devices_[device].pieces) {
        run(pieces);
      }
    }
  }

  void enter_channel(int channel) noexcept override {
    stay_on(cores_.of_channel[channel]);
    channels_[channel].usage = {};
  }

  // Computes, then waits so long that the device appears as slow as its speed says.
  void compute(const Job& job) override {
    Device& device = devices_[job.work.device];
    const Nanoseconds used = measured(device.usage, [&] { run(device.of(job.number)); });
    if (device.speed < 1) {
      const Nanoseconds then = now() + static_cast<Nanoseconds>(static_cast<double>(used) * (1 / device.speed - 1));
      while (now() < then && !stopped()) {
      }
    }
  }

  void transfer(const Job& job, int number) override {
    ChannelBuffers& channel = channels_[number];
    const char* made = sources_.at(static_cast<std::size_t>(job.number));
    measured(channel.usage, [&] {
      std::memcpy(channel.to.data(), made != nullptr ? made : channel.from.data(),
                  static_cast<std::size_t>(job.work.bytes));
    });
  }

  std::vector<std::pair<std::string, std::string>> conditions() const override {
    std::vector<std::string> speeds;
    for (const Device& device : devices_) {
      speeds.push_back(to_text(device.speed, 3));
    }
    return {{"products", std::string("eigen ") + routines_.instructions}, {"speeds", join(speeds)}};
  }

  // The worst share of time that neither a device, nor copies that its core made for it, could use.
  double disturbance() const override {
    double worst = 0;
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      const Usage& usage = devices_[device].usage;
      Nanoseconds lost = usage.wall - usage.processor;
      for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
        lost -= cores_.of_channel[channel] == cores_.of_device[device] ? channels_[channel].usage.processor : 0;
      }
      worst = std::max(worst, static_cast<double>(lost) / std::max(1.0, static_cast<double>(usage.wall)));
    }
    return worst;
  }

private:
  std::vector<Piece> make(std::span<const cpu::KernelRun> kernels, cpu::Arena& operands) const {
    std::vector<Piece> pieces;
    for (const cpu::KernelRun& kernel : kernels) {
      const std::string text = to_text(kernel.kernel);
      try {
        pieces.push_back({cpu::make_work(gpu::parse_kernel(text), {routines_, operands, 1}), kernel.times,
                          kernel.kernel.pass != KernelPass::backward_weight});
      } catch (const std::runtime_error& failure) {
        throw Unavailable(text + ": " + failure.what());
      }
    }
    return pieces;
  }

  void find_sources() {
    sources_.assign(graph_.works.size(), nullptr);
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      const Work& work = graph_.works[graph_.work[task]];
      for (const TaskId next : graph_.successors_of(task)) {
        const Work& sent = graph_.works[graph_.work[next]];
        if (work.computes() && sent.transfers()) {
          sources_[graph_.work[next]] = result_of(devices_[work.device].of(graph_.work[task]), sent.bytes);
        }
      }
    }
  }

  // Runs an action and adds its times to `usage`; returns its processor time.
  template <class Do> static Nanoseconds measured(Usage& usage, const Do& action) {
    const Nanoseconds wall = now(), processor = processor_time();
    action();
    const Nanoseconds used = processor_time() - processor;
    usage.processor += used;
    usage.wall += now() - wall;
    return used;
  }

  const TaskGraph& graph_;
  Cores cores_;
  const cpu::Routines& routines_;
  std::vector<Device> devices_;
  std::vector<ChannelBuffers> channels_;
  std::vector<const char*> sources_; // [work]: what a transfer copies, or nullptr
};

} // namespace

std::unique_ptr<Backend> make_cpu(const Setting& setting) { return std::make_unique<Processor>(setting); }

} // namespace stagecraft::pipeline
