// The training that Megatron-LM's arguments ask for, whoever wrote them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/config/config_format.hpp"
#include "sim/workload/config/megatron_arguments.hpp"

namespace stagecraft {

/// What the arguments say of a training. `unheeded`: what else the file asks for, one line each. Throws InputError for
/// degrees that do not divide the ranks, for two precisions, and without a micro-batch. `dispatcher`: how tokens go to
/// experts where no argument says so; "": as a study has it.
ImportedTraining megatron_training(const MegatronArguments& arguments, std::vector<std::string> unheeded,
                                   const ConfigContext& context, std::string_view dispatcher = "");

/// The arguments that say this training beside those that place layers and set degrees, a line each; and a comment for
/// what they cannot say.
std::string write_megatron_training(const ConfigToWrite& what);

/// Arguments that place no layer and that megatron_training() does not take, though they change time or memory.
std::span<const std::string_view> unheeded_megatron_flags();
/// What a line says of an argument that is not among megatron_flags(): "--window-size", "--frobnicate (not known
/// here)";
/// "" for one that changes neither time nor memory, or that the model says.
std::string megatron_line(const std::string& name);
/// Arguments that say how large the model is and that nothing follows from.
std::span<const std::string_view> megatron_dimensions();

} // namespace stagecraft
