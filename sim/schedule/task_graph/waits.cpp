// In a file of its own, since the module of SimGrid is compiled with it and without the rest of the task graph.
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

template <class Count> std::vector<Count> TaskGraph::waits_over(int iterations) const {
  std::vector<Count> counts;
  counts.reserve(waits.size() * iterations);
  for (int i = 0; i < iterations; ++i) {
    counts.insert(counts.end(), waits.begin(), waits.end());
  }
  for (const Tie& tie : ties) {
    for (int i = tie.iterations; i < iterations; ++i) {
      ++counts[static_cast<std::size_t>(i) * waits.size() + tie.to];
    }
  }
  return counts;
}
template std::vector<std::int32_t> TaskGraph::waits_over(int iterations) const;
template std::vector<double> TaskGraph::waits_over(int iterations) const;

} // namespace stagecraft
