// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/mend_cuts.hpp"

#include <algorithm>

#include "sim/base/count_of.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// Moves of one cut until a stage shares everything as the whole model does. Each move finds another product or reader,
// and a block has no more of them.
constexpr int kMostMoves = 7;

// All tensor groups alike, and each stage behind the one before it.
bool cuts_may_move(const Plan& plan) {
  const StageAxes axes = plan.stages.front().axes();
  if (axes.degree == 1 || axes.rule == TensorRule::search || !plan.rounds.empty()) {
    return false;
  }
  OperatorId next = 0;
  for (const Stage& stage : plan.stages) {
    const bool is_interval = !stage.operators.empty() && stage.operators.front() == next &&
                             stage.operators.back() - next + 1 == static_cast<OperatorId>(stage.operators.size());
    if (!is_interval || !(stage.axes() == axes)) {
      return false;
    }
    next = stage.operators.back() + 1;
  }
  return true;
}

// How the ranks of a group share each operator of a stage; nothing where they cannot.
std::vector<Shard> shards_of(const Problem& problem, const std::vector<OperatorId>& stage, const StageAxes& axes) {
  const auto split = split_tensors(problem, stage, axes);
  std::vector<Shard> shards;
  if (const TensorSplit* const found = std::get_if<TensorSplit>(&split)) {
    for (const RankShare& share : found->operators) {
      shards.push_back(share.shard);
    }
  }
  return shards;
}

// Where a stage begins behind another: the first operator of the earlier one, that of the later one, and its end.
struct Cut {
  OperatorId first, begin, end;
};

// How a model's operators are shared where nothing cuts it, and where a cut lets the stage behind it differ.
class WholeModel {
public:
  WholeModel(const Problem& problem, const StageAxes& axes)
      : problem_(problem), axes_(axes), shards_(shards_of(problem, all_operators(problem.model), axes)) {}

  /// The first operator behind the cut that its group shares otherwise than in the whole model.
  std::optional<OperatorId> first_unlike(const Cut& cut) const {
    const std::vector<Shard> own = shards_of(problem_, operators_between(cut.begin, cut.end), axes_);
    for (std::size_t at = 0; at < own.size() && !shards_.empty(); ++at) {
      const OperatorId op = cut.begin + static_cast<OperatorId>(at);
      if (!(own[at] == shards_[static_cast<std::size_t>(op)])) {
        return op;
      }
    }
    return std::nullopt;
  }

  /// The cut before the products that divide what the later stage has whole, of which `unlike` is the first.
  std::optional<Cut> earlier(const Cut& cut, OperatorId unlike) const {
    return moved(cut, unlike, [&](const Cut& now, OperatorId reader) -> std::optional<OperatorId> {
      const auto& makers = problem_.model.predecessors[reader];
      const auto maker = std::find_if(makers.rbegin(), makers.rend(),
                                      [&](OperatorId one) { return one > now.first && one < now.begin; });
      return maker != makers.rend() ? std::optional(*maker) : std::nullopt;
    });
  }

  /// The cut behind all that they divide.
  std::optional<Cut> later(const Cut& cut, OperatorId unlike) const {
    return moved(cut, unlike, [](const Cut& now, OperatorId reader) {
      return reader + 1 < now.end ? std::optional(reader + 1) : std::nullopt;
    });
  }

private:
  // Moves a cut until the later stage shares everything as the whole model does. `next_begin` says where that stage
  // begins after a move; nothing where a stage would be left empty.
  template <typename NextBegin> std::optional<Cut> moved(Cut cut, OperatorId unlike, NextBegin next_begin) const {
    for (int move = 0; move < kMostMoves; ++move) {
      const std::optional<OperatorId> begin = next_begin(cut, unlike);
      if (!begin) {
        return std::nullopt;
      }
      cut.begin = *begin;
      const std::optional<OperatorId> next = first_unlike(cut);
      if (!next) {
        return cut;
      }
      unlike = *next;
    }
    return std::nullopt;
  }

  const Problem& problem_;
  StageAxes axes_;
  std::vector<Shard> shards_;
};

// A stage of other operators recomputes those of them that the training says; one that a planner chose to recompute
// whole, or not at all, stays so.
void recompute_again(const Problem& problem, Stage& stage) {
  if (problem.training.recompute.what == Recompute::selective && stage.recompute != Recompute::full) {
    recompute_as_trained(problem, stage);
  }
}

// The plan with another cut before that stage.
Plan with_cut(const Problem& problem, Plan plan, std::size_t stage, const Cut& cut) {
  plan.stages[stage - 1].operators = operators_between(cut.first, cut.begin);
  plan.stages[stage].operators = operators_between(cut.begin, cut.end);
  recompute_again(problem, plan.stages[stage - 1]);
  recompute_again(problem, plan.stages[stage]);
  return plan;
}

} // namespace

std::optional<Plan> mend_cuts(const Problem& problem, const Plan& plan) {
  if (!cuts_may_move(plan)) {
    return std::nullopt;
  }
  const std::vector<int> blocks = block_numbers(problem.model);
  std::optional<WholeModel> whole; // asked for where a stage begins within a block
  Plan mended = plan;
  int moved = 0;
  // From the last cut to the first, so that nothing but its beginning leaves a stage unlike the whole model.
  for (std::size_t at = plan.stages.size() - 1; at > 0; --at) {
    const Cut cut{mended.stages[at - 1].operators.front(), mended.stages[at].operators.front(),
                  mended.stages[at].operators.back() + 1};
    if (blocks[cut.begin] != blocks[cut.begin - 1]) {
      continue;
    }
    if (!whole) {
      whole.emplace(problem, plan.stages.front().axes());
    }
    const std::optional<OperatorId> unlike = whole->first_unlike(cut);
    if (!unlike) {
      continue;
    }
    std::optional<Plan> best;
    Seconds least;
    for (const std::optional<Cut>& other : {whole->earlier(cut, *unlike), whole->later(cut, *unlike)}) {
      if (!other) {
        continue;
      }
      Plan one = with_cut(problem, mended, at, *other);
      const Seconds seconds = estimate_iteration(problem, one, cost_plan(problem, one));
      if (!best || seconds < least) {
        least = seconds;
        best = std::move(one);
      }
    }
    if (best) {
      mended = std::move(*best);
      ++moved;
    }
  }
  if (moved == 0) {
    return std::nullopt;
  }
  mended.note += (mended.note.empty() ? "" : "; ") + count_of(moved, "cut") +
                 " moved that would leave a stage to compute whole what its tensor group divides";
  return mended;
}

} // namespace stagecraft
