// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/mend_cuts.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/count_of.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// Moves of one cut until a stage shares everything as the whole model does. Each move finds another product or reader,
// and a block has no more of them.
constexpr int kMostMoves = 8;

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

// Two stages, one behind the other.
struct Cut {
  Stage before, behind;

  void move_earlier(OperatorId begin) {
    auto& from = before.operators;
    const auto at = std::lower_bound(from.begin(), from.end(), begin);
    behind.operators.insert(behind.operators.begin(), at, from.end());
    from.erase(at, from.end());
  }
  void move_later(OperatorId begin) {
    auto& from = behind.operators;
    const auto at = std::lower_bound(from.begin(), from.end(), begin);
    before.operators.insert(before.operators.end(), from.begin(), at);
    from.erase(from.begin(), at);
  }
};

// A stage of other operators recomputes those of them that the training says; one that a planner chose to recompute
// whole, or not at all, stays so.
void recompute_again(const Problem& problem, Stage& stage) {
  if (problem.training.recompute.what == Recompute::selective && stage.recompute != Recompute::full) {
    recompute_as_trained(problem, stage);
  }
}

// How a model's operators are shared where nothing cuts it, and where a stage differs.
class WholeModel {
public:
  WholeModel(const Problem& problem, const StageAxes& axes) : problem_(problem) {
    std::vector<OperatorId> all(static_cast<std::size_t>(problem.model.size()));
    std::iota(all.begin(), all.end(), OperatorId{0});
    shards_ = shards_of(problem, all, axes);
  }

  /// The first operator of a stage that its group shares otherwise than in the whole model.
  std::optional<OperatorId> first_unlike(const Stage& stage) const {
    const std::vector<Shard> own = shards_of(problem_, stage.operators, stage.axes());
    for (std::size_t at = 0; at < own.size() && !shards_.empty(); ++at) {
      if (!(own[at] == shards_[static_cast<std::size_t>(stage.operators[at])])) {
        return stage.operators[at];
      }
    }
    return std::nullopt;
  }

  /// The cut before the products that divide what the later stage has whole.
  std::optional<Cut> earlier(Cut cut) const {
    for (int move = 0; move < kMostMoves; ++move) {
      const auto unlike = first_unlike(cut.behind);
      if (!unlike) {
        return cut;
      }
      const auto& makers = problem_.model.predecessors[*unlike];
      const auto maker = std::find_if(makers.rbegin(), makers.rend(), [&](OperatorId one) {
        return one > cut.before.operators.front() && one <= cut.before.operators.back();
      });
      if (maker == makers.rend()) {
        return std::nullopt;
      }
      cut.move_earlier(*maker);
    }
    return std::nullopt;
  }

  /// The cut behind all that they divide.
  std::optional<Cut> later(Cut cut) const {
    for (int move = 0; move < kMostMoves; ++move) {
      const auto unlike = first_unlike(cut.behind);
      if (!unlike) {
        return cut;
      }
      if (*unlike == cut.behind.operators.back()) {
        return std::nullopt;
      }
      cut.move_later(*unlike + 1);
    }
    return std::nullopt;
  }

private:
  const Problem& problem_;
  std::vector<Shard> shards_;
};

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
    const Cut cut{mended.stages[at - 1], mended.stages[at]};
    const OperatorId first = cut.behind.operators.front();
    if (blocks[first] != blocks[first - 1]) {
      continue;
    }
    if (!whole) {
      whole.emplace(problem, plan.stages.front().axes());
    }
    if (!whole->first_unlike(cut.behind)) {
      continue;
    }
    std::optional<Plan> best;
    double least = std::numeric_limits<double>::infinity();
    for (const std::optional<Cut>& other : {whole->earlier(cut), whole->later(cut)}) {
      if (!other) {
        continue;
      }
      Plan one = mended;
      one.stages[at - 1] = other->before;
      one.stages[at] = other->behind;
      recompute_again(problem, one.stages[at - 1]);
      recompute_again(problem, one.stages[at]);
      const double seconds = estimate_iteration(problem, one, cost_plan(problem, one)).value;
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
