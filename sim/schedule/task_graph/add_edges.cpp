// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/add_edges.hpp"

#include <algorithm>
#include <numeric>

namespace stagecraft {

void add_edges(TaskGraph& graph, std::span<const Edge> edges) {
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  graph.successor_begin.resize(tasks + 1, 0);
  graph.waits.resize(tasks, 0);
  std::vector<std::int32_t> begin(tasks + 1, 0);
  for (std::size_t task = 0; task < tasks; ++task) {
    begin[task + 1] = graph.successor_begin[task + 1] - graph.successor_begin[task];
  }
  for (const Edge& edge : edges) {
    ++begin[edge.from + 1];
    ++graph.waits[edge.to];
  }
  std::vector<std::int32_t> next(tasks); // [task]: place of its next new successor
  std::vector<TaskId> successors(graph.successors.size() + edges.size());
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    begin[task + 1] += begin[task];
    const auto old = graph.successors_of(task);
    std::copy(old.begin(), old.end(), successors.begin() + begin[task]);
    next[task] = begin[task] + static_cast<std::int32_t>(old.size());
  }
  for (const Edge& edge : edges) {
    successors[next[edge.from]++] = edge.to;
  }
  graph.successors = std::move(successors);
  graph.successor_begin = std::move(begin);
}

void set_ties(TaskGraph& graph, std::vector<std::pair<TaskId, Tie>> ties) {
  if (ties.empty()) {
    return;
  }
  std::stable_sort(ties.begin(), ties.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  graph.tie_begin.assign(graph.work.size() + 1, 0);
  for (const auto& [from, tie] : ties) {
    ++graph.tie_begin[from + 1];
    graph.ties.push_back(tie);
  }
  std::partial_sum(graph.tie_begin.begin(), graph.tie_begin.end(), graph.tie_begin.begin());
}

} // namespace stagecraft
