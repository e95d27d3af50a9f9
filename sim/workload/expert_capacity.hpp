// How many rows each expert of a mixture takes at most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/error.hpp"

namespace stagecraft {

/// In place of what each dispatch of a model says: docs/formats/workload.md, "mixture of experts".
struct ExpertCapacity {
  double factor = 0;   ///< rows that an expert takes at most, to those of an equal share; 0: all are kept
  bool padded = false; ///< each takes as many rows as it may, empty ones too
  Where where;         ///< for errors
};

} // namespace stagecraft
