// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/groups/dispatch_traffic.hpp"

#include <algorithm>
#include <numeric>

#include "sim/plan/stage_cost/groups/expert_loads.hpp"
#include "sim/workload/expert_spread.hpp"

namespace stagecraft {

DispatchTraffic dispatch_traffic(const Routing& routing, const std::vector<int>& node_of) {
  const auto ranks = static_cast<int>(node_of.size());
  std::vector<int> rank_of(routing.experts), of_expert(routing.experts);
  for (int i = 0; i < routing.experts; ++i) {
    rank_of[i] = static_cast<int>(static_cast<long long>(i) * ranks / routing.experts);
    of_expert[i] = node_of[rank_of[i]];
  }
  std::vector<double> to_rank = hit_probabilities(routing, rank_of);
  std::vector<double> to_node = hit_probabilities(routing, of_expert);
  // What an expert drops beyond its capacity is not sent: no more copies than rows that are kept.
  const std::vector<double> kept = kept_rows(routing, ranks);
  std::vector<int> size(to_node.size(), 0);
  std::vector<double> inside(to_node.size(), 0), kept_inside(to_node.size(), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    to_rank[rank] = std::min(to_rank[rank], kept[rank] * routing.top);
    ++size[node_of[rank]];
    inside[node_of[rank]] += to_rank[rank];
    kept_inside[node_of[rank]] += kept[rank] * routing.top;
  }
  for (std::size_t node = 0; node < to_node.size(); ++node) {
    to_node[node] = std::min(to_node[node], kept_inside[node]);
  }
  // A rank has tokens of its own, 1 for each of a rank's. Those of all ranks that go to a node come to its ranks in
  // equal parts, ranks / size each, and are sent on from there.
  const double nodes = std::accumulate(to_node.begin(), to_node.end(), 0.0);
  DispatchTraffic traffic;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = node_of[rank];
    const double parts = static_cast<double>(ranks) / size[node];
    traffic.between = std::max({traffic.between, nodes - to_node[node], to_node[node] * (parts - 1)});
    traffic.inside =
        std::max({traffic.inside, parts * (inside[node] - to_rank[rank]), parts * to_rank[rank] * (size[node] - 1)});
  }
  return traffic;
}

DispatchTraffics::DispatchTraffics(const Problem& problem, const Stage& stage) : problem_(problem) {
  const TokenDispatcher& dispatcher = problem.training.dispatcher;
  if (!dispatcher.sends_once() || stage.experts.ranks == 1) {
    return;
  }
  for (const OperatorId op : stage.operators) {
    const Operator& one = problem.model.operators[op];
    if (one.routing && one.signature && one.signature->inputs.size() > 1) { // it makes rows of tokens
      routing_ = routing_of(problem, op);
      const auto width = static_cast<double>(one.signature->output.back().size());
      // Ranks of a tensor group have parts of each token, or by TorchTitan's rule all of it.
      const double parts = stage.tensor_rule == TensorRule::megatron ? stage.experts.tensor : 1;
      of_token_.dispatched = Bytes{width / parts * dispatcher.dispatch_bytes(problem.training.precision)};
      of_token_.combined = Bytes{width / parts * row_of(problem.training.precision).bytes};
      of_token_.processors = dispatcher.processors;
      of_token_.kernels = row_of(dispatcher.kind).name;
      return;
    }
  }
}

const DispatchTraffic* DispatchTraffics::among(const std::vector<DeviceId>& devices) {
  if (!routing_) {
    return nullptr;
  }
  std::map<int, int> number; // of a node
  std::vector<int> node_of;
  for (const DeviceId device : devices) {
    const int node = problem_.platform.devices[device].node;
    node_of.push_back(number.try_emplace(node, static_cast<int>(number.size())).first->second);
  }
  const auto [known, is_new] = known_.try_emplace(node_of);
  if (is_new) {
    const DispatchTraffic copies = dispatch_traffic(*routing_, node_of);
    known->second = of_token_;
    known->second.between = copies.between;
    known->second.inside = copies.inside;
  }
  return &known->second;
}

} // namespace stagecraft
