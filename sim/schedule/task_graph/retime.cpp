// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/retime.hpp"

#include <map>

namespace stagecraft {

void retime(TaskGraph& graph, const std::function<Seconds(TaskKind kind, int stage, int micro_batch)>& seconds_of) {
  std::map<std::pair<std::int32_t, double>, std::int32_t> made; // (work it was, seconds) -> work it becomes
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const std::int32_t was = graph.work[task];
    const TaskKind kind = graph.works[was].kind;
    if (!graph.works[was].computes() || (kind != TaskKind::forward && kind != TaskKind::backward)) {
      continue;
    }
    const Seconds seconds = seconds_of(kind, graph.works[was].stage, graph.micro_batch[task]);
    const auto [slot, is_new] = made.try_emplace({was, seconds.value}, static_cast<std::int32_t>(graph.works.size()));
    if (is_new) {
      Work work = graph.works[was];
      work.seconds = seconds;
      graph.works.push_back(work);
    }
    graph.work[task] = slot->second;
  }
}

} // namespace stagecraft
