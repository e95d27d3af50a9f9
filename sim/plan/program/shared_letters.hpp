// Which letter of each operator the ranks along a dimension of a layout share: all placements follow from this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/collective/layout.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

/// [operator][dimension of the layout]: a letter, or kNone where all ranks do the same work.
using SharedLetters = std::vector<std::vector<int>>;
inline constexpr int kNone = -1;

/// How a framework lays a transformer out.
struct MegatronRule {
  bool sequence = false; ///< sequence parallelism: between tensor-parallel layers the tensor axis cuts the tokens
  bool alone = false;    ///< a product without a partner is shared too, by its outputs, if they divide
  bool pads_vocabulary = false; ///< words that do not divide are made up to a number that does
};

/// Megatron-LM's rule (Shoeybi et al. 2019, Korthikanti et al. 2022). The data axis shares samples. The tensor axis
/// shares the outputs of a product that leads, through operators which keep its features apart, only to other products,
/// whose inputs it then shares (or to the loss); it shares the vocabulary of an embedding; and tokens, or nothing, of
/// all other operators. Infeasible, with the nearest size that works, where a letter does not divide.
std::variant<SharedLetters, Infeasible> share_by_megatron(const std::vector<Signature>& operators, const Layout& layout,
                                                          const MegatronRule& rule);

} // namespace stagecraft
