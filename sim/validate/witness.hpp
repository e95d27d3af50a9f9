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
  std::string kind; ///< kind of kernel, or the workload's name for this kind of layer
  Seconds forward, backward;
  Where where; ///< for errors
};

/// One training step on one device. `model` and `device`, which the program must look up, keep their place for errors.
struct Witness {
  std::string software;
  yaml::Node model, device; ///< a name or a file, as in a study
  int batch = 1;
  const PrecisionRow* precision = nullptr;
  const OptimizerRow* optimizer = nullptr;
  Seconds step;
  std::optional<Seconds> graph; ///< the step without launches by the host
  std::optional<Bytes> peak;    ///< peak of the allocator
  std::vector<WitnessLayer> layers;
};

/// Whether a file looks like one.
bool is_witness_file(const std::filesystem::path& path);

/// Throws InputError.
Witness read_witness(const yaml::Node& document);

/// The operator of each layer: the one with its name; where there is none, the next operator of its kind that no layer
/// names, after the operator of the layer before. InputError at a layer that matches nothing or whose kind is not its
/// operator's.
std::vector<OperatorId> match_layers(const std::vector<WitnessLayer>& layers, const ModelGraph& model);

} // namespace stagecraft
