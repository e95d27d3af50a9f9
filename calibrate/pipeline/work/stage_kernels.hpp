// The kernels that the computations of a run consist of, for backends that really compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

#include "calibrate/cpu/profile.hpp"

namespace stagecraft::pipeline {

/// [work] of a graph made from the plan: the kernels of its operators, in a precision, for its share of a micro-batch
/// of `samples`, at least one sample. A step runs Adam, or the additions of SGD with or without momentum.
/// std::invalid_argument for a stage that several devices compute with tensor parallelism.
std::vector<std::vector<cpu::KernelRun>> kernels_of_works(const TaskGraph& graph, const Plan& plan,
                                                          const ModelGraph& model, const Training& training,
                                                          double samples, Precision precision = Precision::fp32);

/// [device of the graph]: its nominal fp32 peak divided by the largest on the platform; 1 if types give none.
std::vector<double> speeds_of(const TaskGraph& graph, const Platform& platform);

} // namespace stagecraft::pipeline
