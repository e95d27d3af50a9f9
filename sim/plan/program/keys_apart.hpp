// Attention as ranks that share tokens need it: queries of a rank's own tokens, keys and values of all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/workload/signature.hpp"

namespace stagecraft {

/// The parts of an attention. Where keys and values lie beside queries in one tensor, an operator without work hands
/// them out from it, which the attention then reads as its second input.
struct KeysApart {
  std::optional<Signature> keys; ///< reads what the attention's first input is; nothing: they are inputs already
  Signature attention;           ///< its second input has no maker yet where `keys` is its maker
};

/// Nothing for an operator that is no attention.
std::optional<KeysApart> keys_apart(const Signature& signature);

} // namespace stagecraft
