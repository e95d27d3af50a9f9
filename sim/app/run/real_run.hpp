// A prepared run carried out by a backend: its graph at the backend's scale, its kernels, and the record of the run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/run/given_run.hpp"
#include "sim/study/scenario.hpp"
#include "sim/validate/run_record.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/gpu_pipeline.hpp"

namespace stagecraft {

/// How a run is carried out.
struct RealRunOptions {
  int iterations = 3;                      ///< in a row
  int attempts = 3;                        ///< at most, until nothing disturbs the run, where computations sleep
  int runs = 7;                            ///< runs where cores compute; the median counts
  bool measured = false;                   ///< a strategy that searches measures real runs instead of replays
  std::string time_scale, bandwidth_scale; ///< "", "auto", or a number
  std::string copies = "device";           ///< for backend gpu: the route of copies
  std::string carried_out;                 ///< for backend gpu: a file of times measured elsewhere
  std::string gpu_binary;
};

/// Adds --iterations and --copies, which describe the pipeline for backend gpu.
void add_pipeline_flags(Flags& flags, RealRunOptions& options);

/// Everything that one plan needs to run for real. InputError where it cannot run for real; pipeline::Unavailable where
/// this machine lacks something.
class RealRun {
public:
  /// All arguments must outlive it. `prepared` must have a graph and be replayed.
  RealRun(const RealRunOptions& options, const pipeline::BackendRow& row, const Study& study, const Prepared& prepared);
  RealRun(const RealRun&) = delete;
  RealRun& operator=(const RealRun&) = delete;

  /// Runs it, measures its parts, and records both. `quiet`: no remarks on disturbed runs.
  RunRecord record(bool quiet);

  /// What backend `gpu` carries out.
  gpu::Pipeline pipeline() const;

  /// Runs it and returns the measurements at the model's scale: the median of several runs where runs vary.
  Evaluation evaluate();

private:
  pipeline::Execution execute();
  void record_once();
  void record_alternately(bool quiet);
  void record_elsewhere();
  void note_conditions(const pipeline::Execution& execution);

  const RealRunOptions& options_;
  const pipeline::BackendRow& row_;
  RunRecord record_;
  Channels channels_;
  std::vector<std::vector<cpu::KernelRun>> kernels_;
  std::vector<double> speeds_;
  pipeline::Setting setting_;
  std::unique_ptr<pipeline::Backend> backend_;
};

} // namespace stagecraft
