// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/order_transfers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/schedule/task_graph/add_edges.hpp"

namespace stagecraft {
namespace {

/// Finds the transfers between stages, after the computations that make their data.
class Carriers {
public:
  explicit Carriers(const TaskGraph& graph) : graph_(graph) {
    for (const Work& work : graph.works) {
      carries_.push_back(work.transfers() && work.kind == TaskKind::transfer ? 1 : 0);
    }
  }

  /// Calls visit(transfer, place of its maker in the programs), in the order of the programs, and for a leg before the
  /// legs after it. A transfer that several computations feed is visited after each of them.
  template <class Visit> void for_each(const Visit& visit) const {
    for (std::size_t at = 0; at < graph_.program.size(); ++at) {
      visit_behind(graph_.program[at], static_cast<std::int32_t>(at), visit);
    }
  }

private:
  template <class Visit> void visit_behind(TaskId task, std::int32_t at, const Visit& visit) const {
    for (const TaskId next : graph_.successors_of(task)) {
      if (carries_[graph_.work[next]] != 0) {
        visit(next, at);
        visit_behind(next, at, visit);
      }
    }
  }

  const TaskGraph& graph_;
  std::vector<char> carries_; // [work]
};

// Orders transfers by what those of a channel have in common: the sender, whether replicas exchange gradients or
// parameters, and the links.
struct ByChannel {
  const TaskGraph& graph;

  bool operator()(const Work* one, const Work* other) const {
    const bool together = is_collective(one->kind), other_together = is_collective(other->kind);
    return std::tie(one->device, together, graph.legs[one->leg].links) <
           std::tie(other->device, other_together, graph.legs[other->leg].links);
  }
};
using KnownChannels = std::map<const Work*, std::int32_t, ByChannel>;

} // namespace

Channels channels_of(const TaskGraph& graph) {
  KnownChannels known(ByChannel{graph});
  Channels channels;
  for (std::size_t work = 0; work < graph.works.size(); ++work) {
    const Work& one = graph.works[work];
    channels.of_work.push_back(-1);
    if (one.transfers()) {
      const auto [slot, fresh] = known.try_emplace(&one, static_cast<std::int32_t>(channels.work_of.size()));
      if (fresh) {
        channels.work_of.push_back(static_cast<std::int32_t>(work));
        channels.transfers.push_back(0);
      }
      channels.of_work.back() = slot->second;
    }
  }
  for (const std::int32_t work : graph.work) {
    if (channels.of_work[work] >= 0) {
      ++channels.transfers[channels.of_work[work]];
    }
  }
  return channels;
}

void order_transfers(TaskGraph& graph) {
  KnownChannels known(ByChannel{graph});
  for (Work& work : graph.works) {
    if (work.transfers() && work.kind == TaskKind::transfer) {
      work.channel = known.try_emplace(&work, static_cast<std::int32_t>(known.size())).first->second;
    }
  }
  graph.channels = static_cast<int>(known.size());
}

TaskGraph chain_transfers(TaskGraph graph) {
  constexpr std::int32_t kDone = -1;
  const Channels channels = channels_of(graph);
  const Carriers carriers(graph);
  std::vector<std::int32_t> last_maker(graph.tasks(), kDone); // [task]: its last maker's place, after which it is sent
  carriers.for_each(
      [&](TaskId transfer, std::int32_t at) { last_maker[transfer] = std::max(last_maker[transfer], at); });
  std::vector<TaskId> sent(channels.work_of.size(), -1); // [channel]: the last transfer
  std::vector<Edge> edges;
  carriers.for_each([&](TaskId transfer, std::int32_t at) {
    if (last_maker[transfer] != at) {
      return;
    }
    last_maker[transfer] = kDone;
    TaskId& before = sent[channels.of_work[graph.work[transfer]]];
    if (before >= 0) {
      edges.push_back({before, transfer});
    }
    before = transfer;
  });
  add_edges(graph, edges);
  for (Work& work : graph.works) {
    work.channel = -1;
  }
  graph.channels = 0;
  return graph;
}

} // namespace stagecraft
