// What a framework's own configuration file says of a training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/yaml.hpp"

namespace stagecraft {

/// A `training` mapping as a study has it, whose values stand where the file has them, and what the file asks for that
/// is not taken over, one entry each.
struct ImportedTraining {
  yaml::Node training;
  std::vector<std::string> unheeded;
};

/// DeepSpeed's JSON (deepspeed.ai, "DeepSpeed Configuration JSON"). A value of "auto" counts as left out. Throws
/// InputError for values that DeepSpeed does not know, for two precisions, and without a batch.
ImportedTraining import_deepspeed(const yaml::Node& config);

/// Loads the file that a scalar names, in the folder of the file that it stands in.
ImportedTraining load_training_config(const yaml::Node& name);

} // namespace stagecraft
