// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/context.hpp"

#include <string>

#include "sim/base/divisors.hpp"

namespace stagecraft {
namespace {

constexpr int kMostContextRanks = 1 << 20;

// Neighbours that share heads by the rule `both`: some of the ranks, in equal groups.
int read_heads(yaml::Map& map, int ranks) {
  const int heads = map.integer("context_heads", 1, kMostContextRanks);
  if (ranks % heads != 0) {
    throw InputError(map.where("context_heads"), "'context_heads' " + std::to_string(heads) + " does not divide the " +
                                                     std::to_string(ranks) +
                                                     " ranks of the context axis; nearest that "
                                                     "do: " +
                                                     nearest_divisors(ranks, heads));
  }
  return heads;
}

} // namespace

Context read_context(yaml::Map& map, const char* degree) {
  Context context;
  context.ranks = map.integer(degree, 1, kMostContextRanks, 1);
  context.rule = map.choice("context_rule", kContextRules, kContextRules.front().name).rule;
  context.order = map.choice("context_order", kTokenOrders, kTokenOrders.front().name).order;
  if (map.has("context_heads") && context.rule != ContextRule::both) {
    throw InputError(map.where("context_heads"),
                     "'context_heads' says how many neighbours exchange tokens for heads, "
                     "which 'context_rule' says already; allowed: with 'context_rule: both'");
  }
  if (context.rule == ContextRule::both) {
    context.heads = read_heads(map, context.ranks);
  } else if (context.rule == ContextRule::all_to_all) {
    context.heads = context.ranks;
  }
  return context.ranks > 1 ? context : Context{};
}

} // namespace stagecraft
