// How replicas of a stage share the samples of a micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// A part for each of `speeds`, in proportion to them and adding up to 1. Of whole samples each gets
/// floor(samples * speed / sum); those left go one by one to the largest fractions, ties to the lower index. A part may
/// be 0.
std::vector<double> shares_by_speed(const Problem& problem, std::vector<double> speeds);

} // namespace stagecraft
