// ZeRO, FSDP and HSDP proven: ranks that share states, gradients or weights come to the parameters of one unshared
// step.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "sim/plan/program/emit_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/models.hpp"

namespace stagecraft::testing {
namespace {

// Ranks share along the first dimension; those along the second hold the same.
Layout shared_layout(int sharing, int groups, int tensor) {
  return make_layout({{Axis::data, sharing}, {Axis::data, groups}, {Axis::tensor, tensor}});
}

Program program_of(const Transformer& model, const Layout& layout, bool sequence, Zero zero) {
  const auto shared = share_by_megatron(model.operators, layout, {.sequence = sequence});
  return emit_program(model.operators, std::get<SharedLetters>(shared), layout, SharedParameters{zero, 0});
}

Outcome unshared(const Transformer& model) {
  const Layout one = shared_layout(1, 1, 1);
  return run(program_of(model, one, false, Zero::none), model.inputs);
}

constexpr Zero kStages[] = {Zero::none, Zero::states, Zero::gradients, Zero::weights};

// Elements of a rank's buffer of the collectives of a kind that the ranks that share carry out.
double exchanged(const Program& program, const std::vector<Step>& steps, StepKind kind) {
  double elements = 0;
  for (const Step& step : steps) {
    if (step.kind == kind && step.dimension == 0) {
      const bool gathers = kind == StepKind::all_gather;
      elements += local_elements(program.tensors[gathers ? step.writes : step.reads.front()], program.layout);
    }
  }
  return elements;
}

} // namespace

TEST_CASE("ranks that share states, gradients or weights come to the parameters of an unshared step") {
  int runs = 0;
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    const Outcome whole = unshared(model);
    REQUIRE(whole.updated.size() == whole.gradients.size());
    for (const auto& [sharing, groups, tensor] :
         {std::tuple(2, 1, 1), {4, 1, 1}, {2, 2, 1}, {2, 1, 2}, {2, 2, 2}, {4, 2, 2}}) {
      if (sizes.key_value_heads % tensor != 0 || sizes.samples % (sharing * groups) != 0) {
        continue;
      }
      for (const bool sequence : {false, true}) {
        for (const Zero zero : kStages) {
          CAPTURE(describe(sizes), sharing, groups, tensor, sequence, static_cast<int>(zero));
          const Program program = program_of(model, shared_layout(sharing, groups, tensor), sequence, zero);
          const Outcome outcome = run(program, model.inputs);
          CHECK(ends_as_parameters_lie(program));
          CHECK(outcome.defects == std::vector<std::string>{});
          CHECK(error_of(outcome, whole) < 1e-12);
          ++runs;
        }
      }
    }
  }
  CHECK(runs > 200);
}

// Every parameter of this model has a dimension that two ranks can divide.
TEST_CASE("weights are gathered once a pass and gradients scattered once, as much as the parameters are") {
  const Transformer model = make_transformer({});
  double parameters = 0;
  for (const auto& [key, numbers] : model.inputs.parameters) {
    parameters += static_cast<double>(numbers.values.size());
  }
  const Program weights = program_of(model, shared_layout(2, 1, 1), false, Zero::weights);
  CHECK(exchanged(weights, weights.forward, StepKind::all_gather) == parameters);
  CHECK(exchanged(weights, weights.reduction, StepKind::reduce_scatter) == parameters);
  CHECK(exchanged(weights, weights.update, StepKind::all_gather) == 0);
  // As FSDP does, which gathers all that a unit has, be it needed or not.
  CHECK(exchanged(weights, weights.backward, StepKind::all_gather) == parameters);
  const Program states = program_of(model, shared_layout(2, 1, 1), false, Zero::states);
  CHECK(exchanged(states, states.forward, StepKind::all_gather) == 0);
  CHECK(exchanged(states, states.reduction, StepKind::reduce_scatter) == parameters);
  CHECK(exchanged(states, states.update, StepKind::all_gather) == parameters);
}

TEST_CASE(
    "a shared program without one of its collectives, with one twice or with two swapped comes to something else") {
  const Transformer model = make_transformer({});
  const Outcome whole = unshared(model);
  int spoilt_programs = 0;
  for (const Zero zero : {Zero::states, Zero::weights}) {
    for_each_mutation(program_of(model, shared_layout(2, 1, 2), true, zero),
                      [&](Mutation mutation, const Step& step, const Program& spoilt) {
                        CAPTURE(static_cast<int>(zero), static_cast<int>(mutation), step.writes);
                        CHECK(is_found_out(mutation, spoilt, model.inputs, whole));
                        ++spoilt_programs;
                      });
  }
  CHECK(spoilt_programs > 150);
}

} // namespace stagecraft::testing
