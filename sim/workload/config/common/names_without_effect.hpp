// Names that frameworks know and that change neither time nor memory of an iteration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace stagecraft {

/// Whether Megatron-LM, Megatron-Core or a launcher has an argument of this name, with hyphens, that an iteration does
/// not depend on, or that the study's model says.
bool is_megatron_name_without_effect(std::string_view name);

/// The same of a key of MaxText.
bool is_maxtext_name_without_effect(std::string_view name);

} // namespace stagecraft
