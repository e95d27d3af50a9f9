// Writes out the blocks of a workload file: each use becomes the block's layers, with their names and arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// A layer named as an input. Inside a block a name means first a layer of the block, then one of an enclosing scope.
struct LayerReference {
  std::vector<std::string> candidates; ///< full names to try, in order; never empty
  Where where;
};

struct PlacedLayer {
  std::string name; ///< full name: "encoder.3.norm"
  yaml::Node node;  ///< the layer's mapping, with parameters replaced
  std::vector<LayerReference> inputs;
};

struct PlacedLayers {
  std::vector<PlacedLayer> layers;
  std::map<std::string, std::string> outputs; ///< name of a block's use -> the layer that is its output
};

/// The name by which layers read the model's input.
inline constexpr std::string_view kModelInputName = "input";

/// Writes out `layers` with the block definitions in `blocks` (nullptr: none).
PlacedLayers expand_blocks(const yaml::Node* blocks, const yaml::Node& layers);

} // namespace stagecraft
