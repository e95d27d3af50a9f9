// What a framework measured of a model on one device, layer by layer and as a whole: docs/formats/witness.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// One module that the framework ran, forward and backward, over the whole batch.
struct WitnessLayer {
  std::string name; ///< an operator's, or the framework's own
  std::string kind; ///< kind of kernel, or the workload's name for this kind of layer
  Seconds forward, backward;
  Where where; ///< for errors
};

/// How the framework ran the step.
struct WitnessWayRow {
  std::string_view name, help;
  bool launched; ///< the host launches each kernel
};
inline constexpr std::array kWitnessWays = {
    WitnessWayRow{"eager", "one operator after another", true},
    WitnessWayRow{"captured", "as one CUDA graph, whose kernels no host launches", false},
    WitnessWayRow{"compiled", "by a compiler of networks", true},
};

/// One training step, run in one way: what of it was measured.
struct WitnessWay {
  const WitnessWayRow* row = nullptr;
  std::optional<yaml::Node> framework; ///< the name of the recipe that predicts it; nothing: none
  std::optional<Seconds> step;         ///< each step waited for
  std::optional<Seconds> loop;         ///< a step in a loop that waits only at its end
  std::optional<Seconds> host;         ///< until the host has issued it
  std::optional<double> kernels;       ///< that ran
  std::optional<Seconds> kernel_time;  ///< of all of them
  std::optional<Bytes> peak, reserved; ///< peaks of the allocator: in tensors, and held
  std::optional<Bytes> outside;        ///< held by others than the allocator
};

/// What was measured of one model on one device. `model` and `device`, which the program must look up, keep their place
/// for errors.
struct Witness {
  std::string software;
  yaml::Node model, device; ///< a name or a file, as in a study
  int batch = 1;
  const PrecisionRow* precision = nullptr;
  const OptimizerRow* optimizer = nullptr;
  std::vector<WitnessWay> ways; ///< in the order of kWitnessWays
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
