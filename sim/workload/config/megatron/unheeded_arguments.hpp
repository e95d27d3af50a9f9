// Arguments of Megatron-LM that nothing here reads, and what is said of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

/// Arguments that place no layer and that megatron_training() does not take, though they change time or memory.
std::span<const std::string_view> unheeded_megatron_flags();
/// What a line says of an argument that is not among megatron_flags(): "--window-size", "--frobnicate (not known
/// here)"; "" for one that changes neither time nor memory, or that the model says.
std::string megatron_line(const std::string& name);
/// Arguments that say how large the model is and that nothing follows from.
std::span<const std::string_view> megatron_dimensions();

} // namespace stagecraft
