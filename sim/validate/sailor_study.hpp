// From a plan that Sailor measured to the study that predicts it: docs/validation/unlike-nodes.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/validate/sailor_data.hpp"

namespace stagecraft {

struct SailorStudy {
  std::string text;          ///< as YAML on its own; a device of it is a group of GPUs
  std::vector<Bytes> beside; ///< [stage]: what a GPU holds that the study does not count
  Seconds formula;           ///< of an iteration: the pipeline's closed form, without any transfer
};

/// Infeasible where the plan has groups of unlike sizes, or stages of unlike numbers of replicas. InputError as
/// SailorData throws it.
std::variant<SailorStudy, Infeasible> sailor_study(const SailorPlan& plan, SailorData& data);

} // namespace stagecraft
