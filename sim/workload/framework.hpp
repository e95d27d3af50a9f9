// Recipes of training frameworks: what a framework of a year does where a study is silent. docs/formats/frameworks.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/yaml.hpp"

namespace stagecraft {

/// A recipe: the training that a framework's users get by default.
struct FrameworkRecipe {
  std::string name, description, sources;
  yaml::Node training; ///< a mapping as a study's `training`
};

/// Reads a recipe's document. InputError for unknown keys; what its training says is checked where it is used.
FrameworkRecipe read_framework(const yaml::Node& document);

} // namespace stagecraft
