// Pictures of one real run beside its prediction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/system/figure.hpp"
#include "sim/validate/run_accuracy.hpp"

namespace stagecraft {

/// `timelines`: both timelines, one above the other, with a row per device and a colour per kind of task, and the
/// numbers of micro-batches where they fit; only the first iteration where all are too many. `errors`: how much too
/// late each task ends in the prediction, over the run.
std::vector<Figure> figures_of(const RunRecord& record, const RunAccuracy& accuracy);

} // namespace stagecraft
