// Recipes of training frameworks: what a framework of a year does where a study is silent. docs/formats/frameworks.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// A model on whose measured runs constants of a recipe rest: none of its runs is a test of them.
struct CalibratedModel {
  std::string architecture; ///< the first words of its names, in lower case: "mpt", "llama2"
  int layers = 0, hidden = 0, heads = 0;
};

/// A recipe: the training that a framework's users get by default.
struct FrameworkRecipe {
  std::string name, description, sources;
  yaml::Node training; ///< a mapping as a study's `training`
  std::vector<CalibratedModel> calibrated_on;
};

/// Reads a recipe's document. InputError for unknown keys; what its training says is checked where it is used.
FrameworkRecipe read_framework(const yaml::Node& document);

} // namespace stagecraft
