// Ranks that share tokens: the programs of every way to share attention come to what the unsharded model comes to.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/shared_letters.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/models.hpp"
#include "tests/program/rules.hpp"

using namespace stagecraft;
using namespace stagecraft::testing;

namespace {

struct Degrees {
  int data, context, heads, tensor;
};

Layout layout_of(const Degrees& degrees) {
  std::vector<AxisSize> sizes = {{Axis::data, degrees.data}};
  if (degrees.context > 1) {
    sizes.push_back({Axis::context, degrees.context});
  }
  if (degrees.heads > 1) {
    sizes.push_back({Axis::heads, degrees.heads});
  }
  sizes.push_back({Axis::tensor, degrees.tensor});
  return make_layout(sizes);
}

// Four key and value heads, for which tensor and context ranks compete.
TransformerSizes with_heads(TransformerSizes sizes) {
  sizes.hidden = 16;
  sizes.heads = 8;
  sizes.key_value_heads = 4;
  sizes.tokens = 8;
  return sizes;
}

int count_along(const std::vector<Step>& steps, const Layout& layout, StepKind kind, Axis axis) {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(), [&](const Step& step) {
    return step.kind == kind && layout.dimensions[step.dimension].axis == axis;
  }));
}

} // namespace

TEST_CASE("programs whose ranks share tokens come to the unsharded run's loss and gradients") {
  for (const TransformerSizes& kind : program_models()) {
    const TransformerSizes sizes = with_heads(kind);
    const Transformer model = make_transformer(sizes);
    const Transformer apart = with_keys_apart(model, sizes);
    const Outcome whole = run(program_of(apart, make_layout({})), apart.inputs);
    CHECK(relative_error(whole.loss, run(program_of(model, make_layout({})), model.inputs).loss) < 1e-12);
    for (const Degrees& degrees : std::initializer_list<Degrees>{{1, 2, 1, 1},
                                                                 {1, 4, 1, 1},
                                                                 {1, 1, 2, 1},
                                                                 {1, 1, 4, 1},
                                                                 {1, 2, 2, 1},
                                                                 {2, 2, 1, 2},
                                                                 {2, 1, 2, 2},
                                                                 {1, 2, 2, 2}}) {
      for (const bool sequence : {false, true}) {
        INFO(describe(sizes) << ", data " << degrees.data << ", context " << degrees.context << " x " << degrees.heads
                             << ", tensor " << degrees.tensor << (sequence ? ", sequence" : ""));
        const Outcome outcome = run(program_of(apart, layout_of(degrees), sequence), apart.inputs);
        CHECK(outcome.defects.empty());
        CHECK(error_of(outcome, whole) < 1e-12);
        if (degrees.data > 1 && degrees.tensor > 1) {
          CHECK(outcome.redundant.empty());
        }
      }
    }
  }
}

// Keys and values are gathered before each attention, and again in its backward, where their gradients are reduced to
// the ranks that have the tokens; or tokens are exchanged for heads before and after, and the same backward.
TEST_CASE("each attention of ranks that share tokens exchanges what its rule says") {
  const TransformerSizes sizes = with_heads({});
  const Transformer apart = with_keys_apart(make_transformer(sizes), sizes);
  const Layout gathers = layout_of({1, 4, 1, 1}), swaps = layout_of({1, 1, 4, 1});
  const Program gathered = program_of(apart, gathers), swapped = program_of(apart, swaps);
  CHECK(count_along(gathered.forward, gathers, StepKind::all_gather, Axis::context) == sizes.blocks);
  CHECK(count_along(gathered.backward, gathers, StepKind::all_gather, Axis::context) == sizes.blocks);
  CHECK(count_along(gathered.backward, gathers, StepKind::reduce_scatter, Axis::context) == sizes.blocks);
  CHECK(count_along(swapped.forward, swaps, StepKind::all_to_all, Axis::heads) == 2 * sizes.blocks);
  CHECK(count_along(swapped.backward, swaps, StepKind::all_to_all, Axis::heads) == 2 * sizes.blocks);
}

TEST_CASE("no exchange of ranks that share tokens can be left out, doubled or swapped") {
  const TransformerSizes sizes = with_heads({});
  const Transformer apart = with_keys_apart(make_transformer(sizes), sizes);
  const Outcome whole = run(program_of(apart, make_layout({})), apart.inputs);
  for (const Degrees& degrees : std::initializer_list<Degrees>{{1, 2, 1, 1}, {1, 1, 2, 1}, {1, 2, 2, 2}}) {
    for_each_mutation(program_of(apart, layout_of(degrees), true),
                      [&](Mutation mutation, const Step& step, const Program& spoilt) {
                        INFO("context " << degrees.context << " x " << degrees.heads << ", tensor " << step.writes);
                        CHECK(is_found_out(mutation, spoilt, apart.inputs, whole));
                      });
  }
}

TEST_CASE("heads that tensor and context ranks share together must divide over both") {
  TransformerSizes sizes = with_heads({});
  sizes.key_value_heads = 2;
  const Transformer model = make_transformer(sizes);
  const auto shared = share_by_megatron(model.operators, layout_of({1, 1, 2, 2}), {});
  REQUIRE(std::holds_alternative<Infeasible>(shared));
  CHECK(std::get<Infeasible>(shared).reason == "2 key-value heads do not divide over 2 context-parallel x 2 "
                                               "tensor-parallel ranks; nearest that does: 1");
}

// Attention needs the keys of all tokens, but what it makes has each token by itself.
TEST_CASE("ranks that share tokens may be cut into stages behind any operator") {
  const Transformer model = make_transformer(with_heads({}));
  const auto operators = static_cast<OperatorId>(model.operators.size());
  StageAxes axes;
  axes.degree = 2;
  axes.sequence = true;
  axes.context = {.ranks = 2};
  for (OperatorId cut = 1; cut < operators; ++cut) {
    for (const auto& [first, last] : {std::pair{0, cut}, std::pair{cut, operators}}) {
      CAPTURE(first, last);
      std::vector<OperatorId> stage(static_cast<std::size_t>(last - first));
      std::iota(stage.begin(), stage.end(), first);
      const auto made = stage_program(graph_of(model), stage, axes, made_up_times(model.operators, axes.degree, 1.0));
      CHECK(std::holds_alternative<StageProgram>(made));
    }
  }
}
