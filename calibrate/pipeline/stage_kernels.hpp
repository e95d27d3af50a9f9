// What the computations of a run are made of, where they really compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

#include "calibrate/cpu/profile.hpp"

namespace stagecraft::pipeline {

/// [work] of a graph of the plan: the kernels of its operators, in a precision, for its share of a micro-batch of
/// `samples`, at least one sample. A step runs Adam, or the additions of SGD with or without momentum. A stage that
/// several devices compute together, tensor-parallel, cannot be had: std::invalid_argument.
std::vector<std::vector<cpu::KernelRun>> kernels_of_works(const TaskGraph& graph, const Plan& plan,
                                                          const ModelGraph& model, const Training& training,
                                                          double samples, Precision precision = Precision::fp32);

/// [device of the graph]: its nominal peak in fp32 over the largest on the platform; 1 where types name none.
std::vector<double> speeds_of(const TaskGraph& graph, const Platform& platform);

} // namespace stagecraft::pipeline
