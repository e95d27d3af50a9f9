// What MaxText keeps of a block from forward to backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/config/common/training_draft.hpp"

namespace stagecraft {

/// Takes `remat_policy` and, where that is `custom`, what the file says of each tensor, as what of a block runs again
/// and what is on the host meanwhile. InputError for a policy, or a place of a tensor, that MaxText does not know.
void read_maxtext_policy(ConfigLeaves& leaves, TrainingDraft& draft);

} // namespace stagecraft
