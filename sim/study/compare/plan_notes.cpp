// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/plan_notes.hpp"

#include <algorithm>
#include <iterator>

#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// Whether the plan recomputes just what the choice asks for.
bool is_carried_out(const RecomputeChoice& choice, const Plan& plan, const ModelGraph& model) {
  const std::vector<int> numbers = block_numbers(model);
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
    std::vector<OperatorId> again;
    std::copy_if(stage.operators.begin(), stage.operators.end(), std::back_inserter(again),
                 [&](OperatorId op) { return stage.recomputes(op); });
    return again == selected_in_stage(choice, model, numbers, stage.operators);
  });
}

} // namespace

std::string plan_notes(const Plan& plan, const ModelGraph& model, const Training& training) {
  std::string notes = plan.note;
  for (const RecomputeChoice& choice : training.recomputes) {
    if (choice.what != Recompute::none && !is_carried_out(choice, plan, model)) {
      notes += (notes.empty() ? "" : "; ") + std::string("training.recompute ") + std::string(name_of(choice.what)) +
               " is not carried out: the plan says itself what its stages recompute";
    }
  }
  return notes;
}

} // namespace stagecraft
