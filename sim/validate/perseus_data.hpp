// Measured pipelines as files of runs, instruction times and requested clocks. docs/formats/perseus.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft::perseus {

/// The clock at which a stage was asked to run each micro-batch's instruction; 0: under a power limit instead of a
/// clock.
using Clocks = std::vector<int>; ///< MHz, [micro-batch]

/// The clocks of one stage in one run.
struct StageClocks {
  Clocks forward, backward;
};

/// One row of runs.csv. Rank r runs stage r mod stages; ranks of one stage are its data- and tensor-parallel copies.
struct MeasuredRun {
  std::string configuration, gpu, plan;
  bool cold = false;      ///< the GPUs were still warming up
  bool full_clock = true; ///< all instructions at the highest clock, or limited by power alone
  bool pooled = false;    ///< its window is one of those in InstructionTimes::pooled
  int iterations = 1;     ///< over which the window's means are taken
  int stages = 1, data_parallel = 1, tensor_parallel = 1, micro_batches = 1;
  double seconds = 0, joules = 0;             ///< per iteration; over all ranks
  std::vector<double> rank_joules, rank_busy; ///< per iteration, [rank]
  std::vector<StageClocks> clocks;            ///< [stage]
  Where where;

  std::string name() const { return configuration + "/" + plan; }
  int ranks() const { return static_cast<int>(rank_joules.size()); }
  /// Copies of each stage.
  int copies() const { return ranks() / stages; }
};

/// A mean over windows of several runs.
struct PooledTime {
  double seconds = 0;
  double samples = 0;
};

/// Seconds of one instruction on one stage.
struct InstructionTimes {
  int highest = 0;                  ///< MHz
  double at_highest = 0;            ///< measured in the reference run alone
  std::map<int, PooledTime> pooled; ///< MHz -> mean over the windows of all plans, below the highest clock
};

/// The times of one stage of one configuration.
struct StageTimes {
  InstructionTimes forward, backward;
  double load = 0; ///< input loading before a forward, measured in the reference run
};

struct Data {
  std::vector<MeasuredRun> runs;
  std::map<std::string, std::vector<StageTimes>> stages; ///< by configuration
};

/// The plan from whose window the `baseline` rows of stages.csv come.
inline constexpr const char* kReference = "perseus:1";

/// The three files of a folder.
struct Texts {
  std::string folder; ///< named in errors
  std::string runs, stages, plans;
};

/// InputError for anything malformed or missing.
Data read(const Texts& texts);
Data read(const std::filesystem::path& folder);

} // namespace stagecraft::perseus
