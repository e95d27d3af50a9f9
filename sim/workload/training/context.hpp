// Context parallelism: ranks that share the tokens of a sequence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// How attention, whose queries need keys and values of all tokens, is computed by ranks that share tokens.
enum class ContextRule : std::uint8_t {
  ring,       ///< keys and values go round; the kernel of a step runs beside the transfer of the next
  all_gather, ///< keys and values are gathered before
  all_to_all, ///< ranks exchange tokens for heads before, and back after
  both        ///< `heads` neighbours exchange tokens for heads; between such groups keys and values go round
};

struct ContextRuleRow {
  std::string_view name, help;
  ContextRule rule;
};
/// In the order of ContextRule.
inline constexpr std::array kContextRules = {
    ContextRuleRow{"ring", "keys and values go round a ring, beside the kernels (Liu et al. 2023)", ContextRule::ring},
    ContextRuleRow{"all-gather", "keys and values are gathered before attention (Llama Team 2024, 3.3.2)",
                   ContextRule::all_gather},
    ContextRuleRow{"all-to-all", "tokens are exchanged for heads and back (DeepSpeed-Ulysses, Jacobs et al. 2023)",
                   ContextRule::all_to_all},
    ContextRuleRow{"both", "all-to-alls among neighbours, rings between such groups (Fang, Zhao 2024)",
                   ContextRule::both},
};
constexpr const ContextRuleRow& row_of(ContextRule rule) { return kContextRules[static_cast<std::size_t>(rule)]; }

/// Which tokens each of c ranks has.
enum class TokenOrder : std::uint8_t {
  zig_zag,    ///< of 2c equal parts the i-th and the i-th from the end, so that a causal mask loads all alike
  contiguous, ///< of c equal parts the i-th
  by_document ///< zig-zag in each of the documents packed into the sequence
};

struct TokenOrderRow {
  std::string_view name, help;
  TokenOrder order;
};
/// In the order of TokenOrder.
inline constexpr std::array kTokenOrders = {
    TokenOrderRow{"zig-zag", "an early and a late part for each rank", TokenOrder::zig_zag},
    TokenOrderRow{"contiguous", "one part for each rank", TokenOrder::contiguous},
    TokenOrderRow{"by-document", "zig-zag in each packed document", TokenOrder::by_document},
};
constexpr const TokenOrderRow& row_of(TokenOrder order) { return kTokenOrders[static_cast<std::size_t>(order)]; }

/// Ranks of a replica that share tokens, each with all parameters.
struct Context {
  int ranks = 1;
  ContextRule rule = ContextRule::ring; ///< no matter with one rank
  int heads = 1; ///< neighbours that share heads in attention: all of them, none (1), or, with `both`, as given
  TokenOrder order = TokenOrder::zig_zag;
  bool operator==(const Context&) const = default;

  /// Groups of such neighbours, which share tokens in attention too.
  int loops() const { return ranks / heads; }
};

/// Reads the degree from key `degree`, and context_rule, context_heads and context_order beside it. Throws InputError
/// for neighbours that do not divide the ranks, and for what has no meaning with the rule.
Context read_context(yaml::Map& map, const char* degree);

} // namespace stagecraft
