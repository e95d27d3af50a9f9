// Slices of TPUs: how many chips are joined as one torus, and in what shape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/format/yaml.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {

/// How many of these chips stand in one slice: all, as far as a pod has as many, or the part that the row's `slices=`
/// says. 0: no chips of a TPU.
int chips_of_slice(const std::string& device, const TruthRow& row, int chips);

/// Makes a node, a shipped slice, one of so many chips: its host in proportion, and its torus as Google Cloud offers
/// slices, with axes as near to each other as their number allows, the shortest first. Of two axes those of 16 wrap
/// around; of three all, where the slice is made of cubes of 4 x 4 x 4. Returns the shape in words, "8 x 16".
std::string shape_slice(yaml::Node& node, const std::string& device, int chips);

} // namespace stagecraft
