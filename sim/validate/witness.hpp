// What a framework measured of a model on one device, layer by layer and as a whole: docs/formats/witness.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/yaml.hpp"
#include "sim/workload/training.hpp"

namespace stagecraft {

/// One module that the framework ran, forward and backward, over the whole batch.
struct WitnessLayer {
  std::string name; ///< an operator's, or the framework's own
  std::string kind; ///< of kernel, or as the workload calls its layers
  Seconds forward, backward;
  Where where; ///< for errors
};

/// One training step on one device. What the program must look up keeps its place.
struct Witness {
  std::string software;
  yaml::Node model, device; ///< a name or a file, as in a study
  int batch = 1;
  const PrecisionRow* precision = nullptr;
  const OptimizerRow* optimizer = nullptr;
  Seconds step;
  std::optional<Seconds> graph; ///< the same without launches by the host
  std::optional<Bytes> peak;    ///< of the allocator
  std::vector<WitnessLayer> layers;
};

/// Whether a file looks like one.
bool is_witness_file(const std::filesystem::path& path);

/// Throws InputError.
Witness read_witness(const std::filesystem::path& path);

/// The operator of each layer: the one of its name; where no operator has it, the next of its kind that no layer names,
/// behind that of the layer before. InputError at the layer for one that matches nothing, or whose kind is not its
/// operator's.
std::vector<OperatorId> match_layers(const std::vector<WitnessLayer>& layers, const ModelGraph& model);

} // namespace stagecraft
