// Cells that a row leaves empty and that the recipe it names fills, and what it may have been instead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {

/// What was filled into a row.
struct FilledCells {
  std::string assumed;          ///< a clause; "": nothing was
  std::vector<TruthRow> others; ///< the row with each other choice that its source leaves open
};

/// Fills the length of sequences, the batch and the micro-batch of a row that states no length, where it names a model
/// and a framework whose recipe has them.
FilledCells fill_open_cells(TruthRow& row);

/// Whether a decoder's run by a training framework may have recomputed its blocks, for all that the row says. Scripts
/// of plain PyTorch and MXNet recompute nothing that they do not say.
bool leaves_recompute_open(const TruthRow& row);

} // namespace stagecraft
