// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/offload.hpp"

#include <cctype>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

// "all", "none", or a number of blocks.
int read_activations(yaml::Map& map) {
  constexpr int kMostBlocks = 100'000;
  const yaml::Node* node = map.find("activations");
  if (node == nullptr || node->kind != yaml::Node::Kind::scalar) {
    return map.integer("activations", 0, kMostBlocks, 0);
  }
  const bool is_word = !node->text.empty() && std::isalpha(static_cast<unsigned char>(node->text.front())) != 0;
  if (is_word && node->text != "all" && node->text != "none") {
    throw InputError(node->where, "'activations' is '" + excerpt(node->text) +
                                      "'; allowed: all, none, or the number of a stage's first blocks");
  }
  return node->text == "all" ? kAllBlocks : is_word ? 0 : map.integer("activations", 0, kMostBlocks, 0);
}

} // namespace

Offload load_offload(const yaml::Node& node) {
  yaml::Map map(node, "offload");
  constexpr yaml::Range kPart{0, 1, true, "0 to 1"};
  Offload offload;
  offload.optimizer = map.number("optimizer", kPart, 0);
  offload.gradients = map.boolean("gradients", false);
  offload.parameters = map.boolean("parameters", false);
  offload.activations = read_activations(map);
  if (offload.gradients && offload.optimizer == 0) {
    throw InputError(map.where("gradients"),
                     "the host has no use for gradients of parameters that it does not step; allowed: with 'optimizer' "
                     "above 0");
  }
  if (offload.parameters && offload.optimizer < 1) {
    throw InputError(map.where("parameters"), "parameters are stepped where they are; allowed: with 'optimizer' 1");
  }
  map.finish();
  return offload;
}

} // namespace stagecraft
