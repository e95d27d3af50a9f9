// What devices leave to their hosts: ZeRO-Offload (Ren et al. 2021), ZeRO-Infinity (Rajbhandari et al. 2021), FSDP's
// CPUOffload, and activations as Transformer Engine moves them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// All numbered blocks of a stage.
inline constexpr int kAllBlocks = std::numeric_limits<int>::max();

/// What is in the host's memory in place of the device's.
struct Offload {
  /// The part of a replica's parameters whose optimiser states are there; the host's cores step them.
  double optimizer = 0;
  /// Their gradients go there as soon as they are reduced, and are added up there; else once an iteration, before the
  /// step.
  bool gradients = false;
  bool parameters = false; ///< weights too: a unit's are copied to the device before it is gathered
  int activations = 0;     ///< of the first so many numbered blocks of each stage, from forward until backward

  bool on() const { return optimizer > 0 || parameters || activations > 0; }
  bool operator==(const Offload&) const = default;
};

/// Reads `training.offload` of a study: docs/formats/study.md. Throws InputError.
Offload load_offload(const yaml::Node& node);

} // namespace stagecraft
