// Who does the work of a real run. A backend is one file and one row of backends().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/timeline/part_times.hpp"

#include "calibrate/cpu/profile.hpp"
#include "calibrate/pipeline/clock.hpp"

namespace stagecraft::pipeline {

/// One task of one iteration while it runs.
struct Job {
  TaskId task = 0;
  int iteration = 0;
  Nanoseconds start = 0;
  std::int32_t number = 0; ///< of its work in the graph
  const Work& work;
};

/// Does the tasks of one graph, and of graphs of the same works. Functions throw std::runtime_error with the cause
/// where they fail, which ends the run.
class Backend {
public:
  virtual ~Backend() = default;

  /// First of all on the thread of a device, and on that of a channel, of each run.
  virtual void enter_device(int /*device*/) noexcept {}
  virtual void enter_channel(int /*channel*/) noexcept {}

  /// Does a computation and returns when it is done. Each device calls from a thread of its own.
  virtual void compute(const Job& job) = 0;
  /// Carries a transfer's bytes and returns when the last has arrived. Each channel calls from a thread of its own.
  virtual void transfer(const Job& job, int channel) = 0;
  /// Makes calls that are under way return soon, from any thread: the run has failed.
  void interrupt() {
    stopped_.store(true);
    interrupted();
  }

  /// The share of its computing time that something else took from the worst device of the last run; 0 where that
  /// cannot be told.
  virtual double disturbance() const { return 0; }
  /// What the backend made of its world, for the run's record: names and values.
  virtual std::vector<std::pair<std::string, std::string>> conditions() const { return {}; }

protected:
  virtual void interrupted() {}
  const std::atomic<bool>& stopped() const { return stopped_; }

private:
  std::atomic<bool> stopped_ = false;
};

/// What a backend is made for. All outlive it.
struct Setting {
  const TaskGraph& graph;
  const Platform& platform;
  const Channels& channels;
  /// [work]: what its tasks run on a backend that computes; empty: nothing does.
  std::span<const std::vector<cpu::KernelRun>> kernels = {};
  std::span<const double> speeds = {}; ///< [device of the graph], in parts of a whole device; empty: 1
};

struct BackendRow {
  std::string_view name, help;
  bool emulates;     ///< tasks take the times that their works say, so these may be scaled
  bool shares_links; ///< transfers meet each other on the links
  /// Throws Unavailable where this machine does not grant what it needs. Nothing: a program of its own runs the whole,
  /// see gpu_pipeline.hpp.
  std::unique_ptr<Backend> (*make)(const Setting& setting);
  /// The parts of a run alone, never the run itself. Throws what execute() throws.
  PartTimes (*measure)(const Setting& setting, Backend& backend, bool real_time);
  /// Devices compute on cores of their own: they wait there, and transfers go before them.
  bool holds_cores = false;

  bool runs_elsewhere() const { return make == nullptr; }
};
std::span<const BackendRow> backends();

/// Something that a backend needs is not to be had on this machine.
class Unavailable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

std::unique_ptr<Backend> make_sleeping(const Setting& setting);
std::unique_ptr<Backend> make_emulated(const Setting& setting);
std::unique_ptr<Backend> make_cpu(const Setting& setting);

} // namespace stagecraft::pipeline
