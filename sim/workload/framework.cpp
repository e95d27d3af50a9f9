// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/framework.hpp"

namespace stagecraft {

FrameworkRecipe read_framework(const yaml::Node& document) {
  yaml::Map map(document, "framework");
  FrameworkRecipe recipe{map.text("name"), map.text("description"), map.text("sources"), map.node("training")};
  if (recipe.training.kind != yaml::Node::Kind::map) {
    throw InputError(recipe.training.where, "'training' must be a mapping; its keys: docs/formats/study.md");
  }
  for (const yaml::Node::Entry& entry : recipe.training.entries) {
    if (entry.key == "framework" || entry.key == "config") {
      throw InputError(entry.where, "a recipe rests on no other; allowed: the other keys of 'training'");
    }
  }
  map.finish();
  return recipe;
}

} // namespace stagecraft
