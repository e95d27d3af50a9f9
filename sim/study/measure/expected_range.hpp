// Where measurements of a run would lie, by how far off predictions of measured runs were.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// Whether kernels of all device types in use were measured. A type with the fits of a chip that has another number of
/// multiprocessors has none of its own.
bool has_measured_devices(const Study& study, const Run& run);

/// Sets the ranges of a run's time and memory (docs/validation/intervals.md), where it is priced as
/// measured runs were and a family of these is known. The run must have its metrics and its cost basis.
void add_expected(const Study& study, const TaskGraph& graph, Run& run);

} // namespace stagecraft
