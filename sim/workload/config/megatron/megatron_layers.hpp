// Which layers Megatron-LM's arguments give to each stage, and which run again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/config/megatron/megatron_arguments.hpp"
#include "sim/workload/training/pipeline_layout.hpp"

namespace stagecraft {

/// The layers of each stage, of so many layers (0: the layout alone says) on so many ranks. InputError where they
/// cannot be spread so.
PipelineLayout read_megatron_layout(const MegatronArguments& arguments, int layers, int ranks);

/// Whether stages may have unlike numbers of layers.
bool places_unevenly(const MegatronArguments& arguments);

/// What runs again: all layers, the first ones of each stage, or parts of each layer.
struct MegatronRecompute {
  bool full = false, selective = false;
  bool first_ones = false; ///< full: only the first `layers` of each stage, else all of them, `layers` at a time
  int layers = 1;
  std::vector<std::string> modules{}; ///< selective: those named, core_attn where none is
};
/// InputError for names that Megatron-LM does not know.
MegatronRecompute read_megatron_recompute(const MegatronArguments& arguments);

} // namespace stagecraft
