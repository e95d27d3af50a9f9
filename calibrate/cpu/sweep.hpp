// What is measured of a processor, in groups, most telling points first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::cpu {

struct GroupRow {
  const char *name, *help;
  double weight; ///< its share of the time
  std::vector<gpu::Point> (*points)();
};

/// Every group but the shape list, in order.
const std::vector<GroupRow>& group_rows();

/// The sweep: the shape list, where there is one, then the groups named, or all where none is. Every prefix of a group
/// is spread over its whole range. std::invalid_argument for a group that does not exist.
std::vector<gpu::Group> plan_sweep(const std::vector<std::string>& groups, const std::vector<gpu::Kernel>& shapes);

/// The kernels that are measured at the start, in the middle and at the end.
std::vector<gpu::Kernel> sentinels();

} // namespace stagecraft::cpu
