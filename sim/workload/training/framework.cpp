// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/framework.hpp"

namespace stagecraft {
namespace {

CalibratedModel read_calibrated_model(const yaml::Node& node) {
  constexpr int kMost = 1'000'000;
  yaml::Map map(node, "calibrated_on");
  CalibratedModel model{.architecture = map.text("architecture"),
                        .layers = map.integer("layers", 1, kMost),
                        .hidden = map.integer("hidden", 1, kMost),
                        .heads = map.integer("heads", 1, kMost)};
  map.finish();
  return model;
}

} // namespace

FrameworkRecipe read_framework(const yaml::Node& document) {
  yaml::Map map(document, "framework");
  FrameworkRecipe recipe{map.text("name"), map.text("description"), map.text("sources"), map.node("training"), {}};
  for (const yaml::Node* model : map.list("calibrated_on")) {
    recipe.calibrated_on.push_back(read_calibrated_model(*model));
  }
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
