// The operators of a model measured on a device, forward and backward, at several micro-batch sizes: a profile that
// strategies plan by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft::cpu {

/// One measured time and its relative standard deviation.
struct KernelTiming {
  Seconds time;
  double spread = 0;
};

/// Runs one kernel on the device.
using MeasureKernel = std::function<KernelTiming(const stagecraft::Kernel&)>;

/// A pass that has no kernel of its own, and what ran in its stead.
struct StandIn {
  stagecraft::Kernel kernel;
  int times = 1;
};

/// What stands in for a pass over so many samples: for recurrent layers as many products as kernels, with the samples
/// for rows; for other arithmetic on matrices one product of as many operations; else a copy of as many bytes.
StandIn stand_in(const Operator& op, const Pass& pass, double samples, Precision precision = Precision::fp32);

/// A kernel that a pass runs so many times.
struct KernelRun {
  stagecraft::Kernel kernel;
  int times = 1;
  bool stands_in = false;
};

/// What a pass of an operator runs, or what stands in for it. A normalization makes all gradients with that of its
/// input.
std::vector<KernelRun> kernels_of_pass(const Operator& op, KernelPass pass, double samples,
                                       Precision precision = Precision::fp32);

/// The relative deviation that a time by a stand-in is given at least.
inline constexpr double kStandInSpread = 0.3;

struct MeasuredModel {
  std::vector<Profile> profiles;        ///< one per size
  std::vector<std::string> stand_ins{}; ///< "pool1: a copy of as many bytes"
};

/// Measures each kernel of the model once, in fp32. `told` hears how many of how many kernels are done.
MeasuredModel measure_model(const ModelGraph& model, const std::vector<double>& sizes, const MeasureKernel& measure,
                            const std::function<void(std::size_t done, std::size_t all)>& told);

/// The model with its profiles as a workload file; `sources` says where they come from.
std::string profile_text(const ModelGraph& model, const MeasuredModel& measured, const std::string& sources);

} // namespace stagecraft::cpu
