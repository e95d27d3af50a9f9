// Pictures of one real run beside its prediction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/figure.hpp"
#include "sim/validate/run_accuracy.hpp"

namespace stagecraft {

/// `timelines`: both one above the other, a row per device, computations by kind, with the numbers of their
/// micro-batches where they fit; the first iteration alone where all are too many. `errors`: how late each task ends in
/// the prediction, along the run.
std::vector<Figure> figures_of(const RunRecord& record, const RunAccuracy& accuracy);

} // namespace stagecraft
