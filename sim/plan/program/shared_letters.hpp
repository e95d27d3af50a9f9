// Which letter of each operator the ranks along a dimension of a layout share: all placements follow from this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/collective/layout.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

/// [operator][dimension of the layout]: a letter; or, where all ranks do the same work, kNone, or one of the other two.
using SharedLetters = std::vector<std::vector<int>>;
inline constexpr int kNone = -1;
/// Each rank does all the work on terms of a sum: of those inputs that take terms (InputSignature::takes_terms), and so
/// of the output; or in backward, of the output's gradient, and so of these inputs'.
inline constexpr int kTerms = -2, kTermsOfGradient = -3;
constexpr bool is_letter(int shared) { return shared >= 0; }

/// Why the ranks along a dimension of the layout cannot share these letters, with the nearest size that works; no value
/// where they can. Letters of `padded` operators may be made up to a number that divides.
std::optional<Infeasible> sharing_defect(const std::vector<Signature>& operators, const Layout& layout,
                                         const SharedLetters& shared, std::size_t axis, const std::set<int>& padded);

/// What a rule chooses along one axis.
struct AxisLetters {
  std::vector<int> letters; ///< [operator]
  std::set<int> padded;     ///< operators whose letters may be made up to a number that divides
};

/// What the rules of frameworks have in common: the data axis shares samples, a context axis tokens. `along_tensor`
/// says what a tensor axis of so many ranks shares. Infeasible where it does, and where a letter does not divide.
std::variant<SharedLetters, Infeasible>
share_axes(const std::vector<Signature>& operators, const Layout& layout, std::string_view framework,
           const std::function<std::variant<AxisLetters, Infeasible>(int ranks)>& along_tensor);

/// How Megatron-LM lays a transformer out.
struct MegatronRule {
  bool sequence = false; ///< sequence parallelism: between tensor-parallel layers the tensor axis cuts the tokens
  bool alone = false;    ///< a product without a partner is shared too, by its outputs, if they divide
  bool pads_vocabulary = false; ///< words that do not divide are made up to a number that does
  /// Ranks that have parts of every expert make rows of gathered tokens and add up terms of tokens (its all-gather
  /// dispatcher); else they gather rows of their own tokens, and add up terms of rows.
  bool gathers_tokens = false;
};

/// Megatron-LM's rule (Shoeybi et al. 2019, Korthikanti et al. 2022). The data axis shares samples. The tensor axis
/// shares the outputs of a product that leads, through operators which keep its features apart, only to other products,
/// whose inputs it then shares (or to the loss); it shares the vocabulary of an embedding; and tokens, or nothing, of
/// all other operators. Infeasible, with the nearest size that works, where a letter does not divide.
std::variant<SharedLetters, Infeasible> share_by_megatron(const std::vector<Signature>& operators, const Layout& layout,
                                                          const MegatronRule& rule);

/// How TorchTitan lays a transformer out.
struct TorchTitanRule {
  bool sequence = true;          ///< its enable_sequence_parallel: norms and sums share tokens
  bool loss_parallel = true;     ///< the loss is computed on shared words; else every rank gathers all logits
  bool experts_by_token = false; ///< ranks of a tensor group have experts of their own; else parts of every expert
};

/// TorchTitan's rule: parallelize_llama() and apply_non_moe_tp() of its DeepSeek-V3, Liang et al. 2024 (section 2.2.2).
/// As Megatron-LM's, but a product without a partner (NoParallel), and what follows it up to the next product, is done
/// whole by every rank, for which the tokens are gathered; and the loss may be. Words that do not divide are shared
/// unevenly, and count as made up to a number that does. Mixtures of experts (apply_moe_ep_tp() until 2026,
/// moe_sharding.py since): where ranks have parts of every expert, each makes rows of all tokens, from gathered ones,
/// and combines terms of rows to terms of tokens, before these are added up; else each routes its own tokens.
std::variant<SharedLetters, Infeasible> share_by_torchtitan(const std::vector<Signature>& operators,
                                                            const Layout& layout, const TorchTitanRule& rule);

} // namespace stagecraft
