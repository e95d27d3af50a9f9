// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/mend_cuts.hpp"

#include <algorithm>
#include <numeric>

#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/strategy/heuristic/plan_score.hpp"

namespace stagecraft {
namespace {

// Moves of one cut until a stage shares everything as the whole model does.
constexpr int kMostMoves = 8;

// All tensor groups alike, and each stage behind the one before it.
bool cuts_may_move(const Plan& plan) {
  const StageAxes axes = plan.stages.front().axes();
  if (axes.degree == 1 || axes.rule == TensorRule::search) {
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

  void move_earlier(OperatorId begin) { move(before, behind, begin, true); }
  void move_later(OperatorId begin) { move(behind, before, begin, false); }

private:
  // Operators from `begin` on go to the later stage, those before it to the earlier one.
  static void move(Stage& from, Stage& to, OperatorId begin, bool to_later) {
    for (std::vector<OperatorId> Stage::*const list : {&Stage::operators, &Stage::recomputed}) {
      std::vector<OperatorId>& given = from.*list;
      std::vector<OperatorId>& taken = to.*list;
      const auto at = std::lower_bound(given.begin(), given.end(), begin);
      if (to_later) {
        taken.insert(taken.begin(), at, given.end());
        given.erase(at, given.end());
      } else {
        taken.insert(taken.end(), given.begin(), at);
        given.erase(given.begin(), at);
      }
    }
  }
};

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

Plan mend_cuts(const PlanRequest& request, Plan plan) {
  if (!cuts_may_move(plan)) {
    return plan;
  }
  const WholeModel whole(request.problem, plan.stages.front().axes());
  std::optional<double> seconds;
  for (std::size_t at = 1; at < plan.stages.size(); ++at) {
    if (!whole.first_unlike(plan.stages[at])) {
      continue;
    }
    const Cut cut{plan.stages[at - 1], plan.stages[at]};
    for (const std::optional<Cut>& other : {whole.earlier(cut), whole.later(cut)}) {
      if (!other) {
        continue;
      }
      Plan mended = plan;
      mended.stages[at - 1] = other->before;
      mended.stages[at] = other->behind;
      seconds = seconds ? seconds : score_plan(request, plan).seconds;
      if (const double found = score_plan(request, mended).seconds; found < *seconds) {
        seconds = found;
        plan = std::move(mended);
      }
    }
  }
  return plan;
}

} // namespace stagecraft
