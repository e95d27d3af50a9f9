// The training that Megatron-LM's arguments ask for, whoever wrote them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/config/megatron/megatron_arguments.hpp"
#include "sim/workload/config/megatron/megatron_formats.hpp"

namespace stagecraft {

/// What the arguments say of a training. `unheeded`: what else the file asks for, one line each. Throws InputError for
/// degrees that do not divide the ranks, for two precisions, and without a micro-batch. `dispatcher`: how tokens go to
/// experts where no argument says so; "": as a study has it.
ImportedTraining megatron_training(const MegatronArguments& arguments, std::vector<std::string> unheeded,
                                   const ConfigContext& context, std::string_view dispatcher = "");

/// The arguments that say this training beside those that place layers and set degrees, a line each; and a comment for
/// what they cannot say.
std::string write_megatron_training(const ConfigToWrite& what);

} // namespace stagecraft
