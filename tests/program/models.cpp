// SPDX-License-Identifier: Apache-2.0
#include "tests/program/models.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft::testing {

std::vector<TransformerSizes> program_models() {
  TransformerSizes gated;
  TransformerSizes apart = gated;
  apart.fused = false;
  TransformerSizes gelu;
  gelu.gated = false;
  gelu.key_value_heads = gelu.heads;
  TransformerSizes tied = gelu;
  tied.tied = true;
  TransformerSizes experts = gated;
  experts.experts = 4;
  TransformerSizes biased = experts;
  biased.expert_bias = true;
  TransformerSizes latent = experts;
  latent.latent = true;
  latent.hidden = 16;
  latent.key_value_heads = latent.heads;
  TransformerSizes dense = latent;
  dense.experts = 0;
  TransformerSizes adapted = gated;
  adapted.adapters = 3;
  TransformerSizes joined = experts;
  joined.joins = true;
  return {gated, apart, gelu, tied, experts, biased, latent, dense, adapted, joined};
}

std::string describe(const TransformerSizes& sizes) {
  return std::string(sizes.gated ? sizes.fused ? "gated" : "two products" : "gelu") + (sizes.tied ? ", tied" : "") +
         (sizes.adapters > 0 ? ", adapters" : "") + (sizes.experts > 0 ? ", experts" : "") +
         (sizes.expert_bias ? " with biases" : "") + (sizes.latent ? ", latent" : "") + (sizes.joins ? ", joined" : "");
}

Program program_of(const Transformer& model, const Layout& layout, bool sequence) {
  const auto shared = share_by_megatron(model.operators, layout, {.sequence = sequence});
  if (const auto* defect = std::get_if<Infeasible>(&shared)) {
    throw std::runtime_error(defect->reason);
  }
  return emit_program(model.operators, std::get<SharedLetters>(shared), layout);
}

namespace {

void leave_out(Program& program, Part part, std::size_t number) {
  const Step step = (program.*part)[number];
  (program.*part).erase((program.*part).begin() + static_cast<std::ptrdiff_t>(number));
  const auto redirect = [&](std::vector<TensorId>& ids) {
    std::replace(ids.begin(), ids.end(), step.writes, step.reads.front());
  };
  for (const Part any : kParts) {
    for (Step& reader : program.*any) {
      redirect(reader.reads);
    }
  }
  for (auto* lists : {&program.reduced, &program.updated}) {
    std::for_each(lists->begin(), lists->end(), redirect);
  }
  redirect(program.values);
}

void do_twice(Program& program, Part part, std::size_t number) {
  Step again = (program.*part)[number];
  again.reads = {again.writes};
  (program.*part).insert((program.*part).begin() + static_cast<std::ptrdiff_t>(number) + 1, again);
}

// A collective and the next of its kind, of another tensor, each get what the other should; the next of any kind, in
// any part, where it is the last of its own. False for the last of all.
bool swap_with_next(Program& program, Part part, std::size_t number) {
  Step& one = (program.*part)[number];
  Step *alike = nullptr, *other = nullptr;
  bool is_later = false;
  for (const Part any : kParts) {
    for (Step& step : program.*any) {
      if (is_later && is_collective(step.kind) && step.reads != one.reads) {
        other = other ? other : &step;
        alike = alike || step.kind != one.kind || any != part ? alike : &step;
      }
      is_later = is_later || &step == &one;
    }
  }
  if (other) {
    std::swap(one.reads, (alike ? alike : other)->reads);
  }
  return other != nullptr;
}

// The steps as they were: a copy of all of a program for each mutation would take longer than its run.
void restore(Program& spoilt, const Program& program) {
  for (const Part part : kParts) {
    spoilt.*part = program.*part;
  }
  spoilt.values = program.values;
  spoilt.reduced = program.reduced;
  spoilt.updated = program.updated;
}

} // namespace

void for_each_mutation(const Program& program,
                       const std::function<void(Mutation, const Step&, const Program&)>& action) {
  Program spoilt = program;
  for (const Part part : kParts) {
    for (std::size_t i = 0; i < (program.*part).size(); ++i) {
      const Step& step = (program.*part)[i];
      if (!is_collective(step.kind) || program.layout.dimensions[step.dimension].size == 1) {
        continue;
      }
      leave_out(spoilt, part, i);
      action(Mutation::left_out, step, spoilt);
      restore(spoilt, program);
      do_twice(spoilt, part, i);
      action(Mutation::twice, step, spoilt);
      restore(spoilt, program);
      if (swap_with_next(spoilt, part, i)) {
        action(Mutation::swapped, step, spoilt);
      }
      restore(spoilt, program);
    }
  }
}

bool ends_as_parameters_lie(const Program& program) {
  for (const auto* ends : {&program.reduced, &program.updated}) {
    const bool as_parts = ends == &program.reduced && !program.updated.empty(); // which the step then puts together
    for (std::size_t op = 0; !as_parts && op < ends->size(); ++op) {
      for (std::size_t i = 0; i < (*ends)[op].size(); ++i) {
        const TensorId end = (*ends)[op][i];
        if (end >= 0 && program.tensors[end].placements != program.tensors[program.parameters[op][i]].placements) {
          return false;
        }
      }
    }
  }
  return true;
}

bool is_found_out(Mutation mutation, const Program& spoilt, const Inputs& inputs, const Outcome& whole) {
  const Outcome outcome = run(spoilt, inputs);
  const bool is_wrong = !ends_as_parameters_lie(spoilt) || !(error_of(outcome, whole) < 1e-9);
  return is_wrong || (mutation == Mutation::twice && !outcome.redundant.empty());
}

double error_of(const Outcome& outcome, const Outcome& whole) {
  if (!outcome.defects.empty() || outcome.gradients.size() != whole.gradients.size() ||
      outcome.updated.size() != whole.updated.size()) {
    return INFINITY;
  }
  double error = relative_error(outcome.loss, whole.loss);
  for (const auto& [parameter, gradient] : whole.gradients) {
    error = std::max(error, relative_error(outcome.gradients.at(parameter), gradient));
  }
  for (const auto& [parameter, numbers] : whole.updated) {
    error = std::max(error, relative_error(outcome.updated.at(parameter), numbers));
  }
  return error;
}

} // namespace stagecraft::testing
