// The kernels to measure on a processor, in groups; the most informative come first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::cpu {

struct GroupRow {
  const char *name, *help;
  double weight; ///< share of the time
  std::vector<gpu::Point> (*points)();
};

/// Every group except the shape list, in order.
const std::vector<GroupRow>& group_rows();

/// The points to measure: the shape list, if there is one, then the named groups, or all groups if none is named. Any
/// first part of a group covers its whole range. std::invalid_argument for an unknown group.
std::vector<gpu::Group> plan_sweep(const std::vector<std::string>& groups, const std::vector<gpu::Kernel>& shapes);

/// The kernels that are measured at the start, in the middle and at the end, to detect drift.
std::vector<gpu::Kernel> sentinels();

} // namespace stagecraft::cpu
