// On which of the shipped device types a model can be trained alone, and on how many of each at least.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/run/given_study.hpp"

namespace stagecraft {

/// Memory that training one sample takes on a single device: weights, gradients, the optimiser's states and what the
/// sample keeps for backward (docs/model.md, "Memory").
struct TrainingMemory {
  std::string precision, optimizer;
  Bytes whole;
  std::optional<Bytes> recomputed; ///< with `recompute`, where that takes less
  std::string recompute;           ///< "blocks" or "full"

  Bytes least() const { return recomputed.value_or(whole); }
};

struct DeviceFit {
  std::string device;
  Bytes memory;
  bool fits = false, fits_recomputed = false;
  int devices = 1; ///< no split over fewer holds it: least() over the memory of one, rounded up
};

struct DeviceFits {
  TrainingMemory needs;
  std::vector<DeviceFit> devices; ///< every shipped type, by memory
};

/// The fits of a model, a name or a file; nothing for one that brings its devices along.
std::optional<DeviceFits> device_fits(const std::string& model, const ModelReading& reading);

} // namespace stagecraft
