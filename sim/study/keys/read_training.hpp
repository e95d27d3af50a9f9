// Key `training` of a study, held against the model that is trained.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/format/yaml.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// What a study is read for. A comparison searches what its `training` leaves open, a run takes plain defaults.
enum class Purpose { run, comparison };

/// Reads the training of a study. Throws InputError for what this model cannot do: recompute of operators that it has
/// not, layers that are not its own, products in 8 bits without products, other times than its profiles were taken in.
Training read_training(yaml::Map& study, const ModelGraph& model, Purpose purpose);

/// Throws InputError where `kernel_speed.types` or `launches.types` name a type of operators that no model has; that of
/// a recipe may be one that this model has not.
void check_operator_types(yaml::Map& study, const Training& training, const ModelGraph& model);

} // namespace stagecraft
