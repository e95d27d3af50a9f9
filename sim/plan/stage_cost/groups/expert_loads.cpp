// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/groups/expert_loads.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stagecraft {
namespace {

// The number of experts whose weights an operator has; 0: it has none.
int experts_of(const Operator& op) {
  if (!op.signature || op.signature->parameters.empty()) {
    return 0;
  }
  const Letter& first = op.signature->letters[op.signature->parameters.front().dimensions.front().letter];
  return first.name == kExperts && first.along == Along::each ? static_cast<int>(first.pieces) : 0;
}

} // namespace

std::optional<Routing> routing_of(const Problem& problem, OperatorId op) {
  const ModelGraph& model = problem.model;
  const auto& signature = model.operators[op].signature;
  if (!signature) {
    return std::nullopt;
  }
  const OperatorId router = signature->inputs.size() > 1 ? signature->inputs[1].maker : op;
  if (router < 0) {
    return std::nullopt;
  }
  std::optional<Routing> routing;
  int experts = 0;
  for (const OperatorId reader : model.successors[router]) {
    routing = routing ? routing : model.operators[reader].routing;
    experts = std::max(experts, experts_of(model.operators[reader]));
  }
  if (!routing || experts == 0) {
    return std::nullopt;
  }
  routing->experts = experts;
  if (const std::optional<Routing>& choice = model.operators[router].routing) {
    routing->top = choice->top;
    routing->groups = choice->groups;
    routing->top_groups = choice->top_groups;
  }
  routing->choice = problem.training.expert_choice;
  routing->skew =
      routing->choice == ExpertChoice::round_robin ? 0 : problem.training.expert_skew.value_or(routing->skew);
  return routing;
}

std::vector<double> kept_rows(const Routing& routing, int ranks) {
  std::vector<double> rows(routing.experts);
  for (int i = 0; i < routing.experts; ++i) {
    rows[i] = std::pow(i + 1, -routing.skew);
  }
  const double mean = std::accumulate(rows.begin(), rows.end(), 0.0) / routing.experts;
  std::vector<double> kept(ranks, 0);
  for (int i = 0; i < routing.experts; ++i) {
    const double one = routing.most > 0 ? std::min(rows[i] / mean, routing.most) : rows[i] / mean;
    kept[static_cast<std::size_t>(i) * ranks / routing.experts] += one / routing.experts;
  }
  return kept;
}

std::vector<double> expert_loads(const Routing& routing, int ranks) {
  std::vector<double> loads = kept_rows(routing, ranks);
  const double kept = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (double& load : loads) {
    load *= ranks / kept;
  }
  return loads;
}

} // namespace stagecraft
