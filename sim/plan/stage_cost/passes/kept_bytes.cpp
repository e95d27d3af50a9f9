// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/kept_bytes.hpp"

#include <algorithm>
#include <set>

namespace stagecraft {

double part_made_again(const Problem& problem, const Stage& stage, OperatorId op) {
  return part_made_again(problem, op, [&](OperatorId other) { return stage.recomputes(other); });
}

std::vector<KeptBytes> kept_by_operators(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  std::vector<KeptBytes> kept(stage.operators.size());
  std::set<OperatorId> read; // makers whose outputs are kept for recompute to read, each counted once
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    const OperatorId op = stage.operators[at];
    if (!stage.recomputes(op)) {
      kept[at].all = problem.stash_bytes(op) * split.operators[at].stash * (1 - part_made_again(problem, stage, op));
      continue;
    }
    const std::vector<OperatorId>& before = problem.model.predecessors[op];
    Bytes& input = kept[at].read_again;
    input = before.empty() ? problem.input_bytes() : Bytes{0};
    for (const OperatorId maker : before) {
      const auto place = std::lower_bound(stage.operators.begin(), stage.operators.end(), maker);
      const bool inside = place != stage.operators.end() && *place == maker;
      const bool is_kept = problem.segments[maker] != problem.segments[op] || !inside || !stage.recomputes(maker);
      if (is_kept && read.insert(maker).second) {
        input += problem.output_bytes(maker) *
                 (inside ? split.operators[static_cast<std::size_t>(place - stage.operators.begin())].output
                         : split.borders);
      }
    }
    kept[at].all = input;
  }
  return kept;
}

} // namespace stagecraft
