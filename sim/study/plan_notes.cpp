// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_notes.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Whether the plan recomputes just what the choice asks for.
bool is_carried_out(const RecomputeChoice& choice, const Plan& plan, const ModelGraph& model) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
    return std::all_of(stage.operators.begin(), stage.operators.end(), [&](OperatorId op) {
      return stage.recomputes(op) == selects(choice, model.operators[static_cast<std::size_t>(op)]);
    });
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
