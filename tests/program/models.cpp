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
  TransformerSizes wide = gated;
  wide.hidden = 16;
  wide.heads = wide.key_value_heads = wide.tokens = 8;
  wide.intermediate = wide.samples = 16;
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
  return {gated, apart, gelu, tied, wide, experts, biased, latent, dense, adapted, joined};
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

Program without(Program program, Part part, std::size_t number) {
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
  return program;
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
