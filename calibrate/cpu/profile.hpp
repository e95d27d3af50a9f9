// Measures the operators of a model on a device, forward and backward, at several micro-batch sizes. The result is a
// profile from which strategies plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft::cpu {

/// A measured time and its relative standard deviation.
struct KernelTiming {
  Seconds time;
  double spread = 0;
};

/// Runs one kernel on the device.
using MeasureKernel = std::function<KernelTiming(const stagecraft::Kernel&)>;

/// A pass without a kernel of its own, and what runs instead.
struct StandIn {
  stagecraft::Kernel kernel;
  int times = 1;
};

/// What to run instead of a pass over so many samples. Recurrent layers: one product per kernel, with the samples as
/// rows. Other arithmetic on matrices: one product of as many operations. Everything else: a copy of as many bytes.
StandIn stand_in(const Operator& op, const Pass& pass, double samples, Precision precision = Precision::fp32);

/// A kernel, and how many times a pass runs it.
struct KernelRun {
  stagecraft::Kernel kernel;
  int times = 1;
  bool stands_in = false;
};

/// The kernels of a pass, or its stand-in. For a normalization the backward-input kernel makes all gradients.
std::vector<KernelRun> kernels_of_pass(const Operator& op, KernelPass pass, double samples,
                                       Precision precision = Precision::fp32);

/// Least relative standard deviation of a time measured with a stand-in.
inline constexpr double kStandInSpread = 0.3;

struct MeasuredModel {
  std::vector<Profile> profiles;        ///< of each device type one for each micro-batch size, ascending
  std::vector<std::string> stand_ins{}; ///< what replaced which pass: "pool1: a copy of as many bytes"
};

/// Measures each kernel of the model once, in fp32. `told` is called with the number of kernels done and their total.
MeasuredModel measure_model(const ModelGraph& model, const std::vector<double>& sizes, const MeasureKernel& measure,
                            const std::function<void(std::size_t done, std::size_t all)>& told);

/// Whether a workload file can hold this profile of the model beside one of the device type `measured`: it is of
/// another type by name, of a known size, in the same precision, of whole operators, and every operator has times.
bool can_stay_beside(const Profile& profile, const Profile& measured);

/// The model with its profiles, as text of a workload file, of all device types measured; `sources` says where they
/// come from.
std::string profile_text(const ModelGraph& model, const MeasuredModel& measured, const std::string& sources);

} // namespace stagecraft::cpu
