// What a study takes from elsewhere: a framework's own configuration, and its recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/training/framework.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The file's name, what it asks for that is not taken over, sizes of it that the model has not, and the recipe of its
/// framework where the study names none.
struct TakenConfig {
  std::string name;
  std::vector<std::string> unheeded, conflicts;
  std::string framework;
  std::optional<ExpertCapacity> experts{}; ///< where the study's model says nothing of it
};

/// Puts what the file of `training.config` says in place of that key, and the schedule that it names where
/// `compare.schedules` is not given, and the recipe of its framework where `training.framework` is not. What the study
/// says itself goes before it. Throws InputError as load_config() does.
TakenConfig take_config(yaml::Node& study, const ConfigContext& context);

/// Puts the capacity of experts that a configuration says into the study's `model`, unless that says one; whether it
/// did.
bool take_expert_capacity(yaml::Node& study, const ExpertCapacity& experts);

/// The value of `training.framework` that stands for no recipe.
inline constexpr std::string_view kNoFramework = "none";

/// The recipe of that name, shipped or a file. Throws InputError where there is no such recipe, and read_framework()'s.
FrameworkRecipe find_framework(const Folders& folders, const std::string& name, const Where& where);
inline constexpr std::string_view kFrameworksFolder = "workloads/frameworks"; ///< among the shipped data

/// Puts what the recipe that `training.framework` names says under what the study says: its degrees only where the
/// study gives degrees. Throws InputError where there is no such recipe.
void take_framework(yaml::Node& study, const Folders& folders);

/// Sets the number of micro-batches where the training says how many samples of a replica are in one. Throws InputError
/// without degrees, where the batch is no multiple, and where the training gives another number.
void count_micro_batches(Training& training, int devices);

} // namespace stagecraft
