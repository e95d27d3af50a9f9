// Ranks that share experts: rows of tokens go to the ranks of their experts and back, and the program comes to what the
// unsharded model comes to, however unequally experts are chosen.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/models.hpp"
#include "tests/program/rules.hpp"

using namespace stagecraft;
using namespace stagecraft::testing;

namespace {

TransformerSizes mixture() {
  TransformerSizes sizes;
  sizes.experts = 8;
  sizes.heads = sizes.key_value_heads = 4;
  sizes.hidden = 16;
  sizes.tokens = 8;
  return sizes;
}

std::variant<StageProgram, Infeasible> staged(const Transformer& model, const StageAxes& axes) {
  std::vector<OperatorId> all(model.operators.size());
  std::iota(all.begin(), all.end(), 0);
  return stage_program(graph_of(model), all, axes);
}

// Adds to a router's weights what makes every token choose the first experts.
void prefer_first_experts(Transformer& model) {
  for (auto& [parameter, numbers] : model.inputs.parameters) {
    if (model.operators[parameter.first].output.size() == 3 && numbers.sizes.size() == 2 && numbers.sizes[0] == 8) {
      for (std::size_t i = 0; i < numbers.values.size(); ++i) {
        numbers.values[i] *= i < numbers.values.size() / 4 ? 1 : 1e-3;
      }
    }
  }
}

// The unsharded run, of a model as it is and with its keys apart, as some layouts have them.
class Unsharded {
public:
  Unsharded(const Transformer& model, const TransformerSizes& sizes)
      : model_(model), apart_(with_keys_apart(model, sizes)),
        whole_(run(program_of(model, make_layout({})), model.inputs)),
        whole_apart_(run(program_of(apart_, make_layout({})), apart_.inputs)) {}

  /// The program of ranks that share the model comes to the same loss and gradients.
  void check(const std::variant<StageProgram, Infeasible>& shared) const {
    if (const auto* defect = std::get_if<Infeasible>(&shared)) {
      FAIL(defect->reason);
    }
    const Program& program = std::get<StageProgram>(shared).program;
    const bool is_apart = program.operators.size() > model_.operators.size();
    const Outcome outcome = run(program, is_apart ? apart_.inputs : model_.inputs);
    CHECK(outcome.defects.empty());
    CHECK(error_of(outcome, is_apart ? whole_apart_ : whole_) < 1e-12);
  }

private:
  const Transformer& model_;
  Transformer apart_;
  Outcome whole_, whole_apart_;
};

} // namespace

TEST_CASE("programs whose ranks share experts come to the unsharded run's loss and gradients") {
  TransformerSizes sizes = mixture();
  for (const bool skewed : {false, true}) {
    sizes.expert_bias = skewed;
    Transformer model = make_transformer(sizes);
    if (skewed) {
      prefer_first_experts(model);
    }
    const Unsharded unsharded(model, sizes);
    for (const StageAxes& axes : std::initializer_list<StageAxes>{
             {.experts = {2}},
             {.experts = {4}},
             {.degree = 2, .sequence = true, .experts = {2}},
             {.degree = 2, .sequence = true, .experts = {4}},
             {.degree = 2, .sequence = true, .experts = {8}},
             {.degree = 2, .sequence = true, .experts = {2, 2}},
             {.degree = 2, .experts = {4, 2}},
             {.degree = 2, .rule = TensorRule::torchtitan, .experts = {4, 2}},
             {.degree = 2, .sequence = true, .experts = {4, 2}, .gathers_tokens = true},
             {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan, .experts = {4, 2}},
             {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan, .experts = {2}},
             {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan, .experts = {8}},
             {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan_whole_loss, .experts = {4, 2}},
             {.degree = 2,
             .sequence = true,
             .rule = TensorRule::torchtitan,
             .context = {.ranks = 2},
             .experts = {2, 2}},
             {.context = {.ranks = 2}, .experts = {2}},
             {.context = {.ranks = 2}, .experts = {4}},
             {.context = {.ranks = 2, .rule = ContextRule::all_to_all, .heads = 2}, .experts = {4}},
             {.degree = 2, .sequence = true, .context = {.ranks = 2}, .experts = {8}}}) {
      INFO((skewed ? "skewed, " : "") << "tensor " << axes.degree << ", context " << axes.context.ranks << ", expert "
                                      << axes.experts.ranks << " x " << axes.experts.tensor);
      unsharded.check(staged(model, axes));
    }
  }
}

// A hybrid's experts square what is above zero, which needs no router: rows stay where their expert is all the same.
TEST_CASE("an activation without weights of rows keeps them with the rank of their expert") {
  TransformerSizes sizes = mixture();
  sizes.plain_experts = true;
  const Transformer model = make_transformer(sizes);
  const Unsharded unsharded(model, sizes);
  for (const StageAxes& axes : std::initializer_list<StageAxes>{
           {.experts = {4}},
           {.degree = 2, .sequence = true, .experts = {8}},
           {.degree = 2, .sequence = true, .experts = {2, 2}},
           {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan, .experts = {2}}}) {
    const auto shared = staged(model, axes);
    unsharded.check(shared);
    if (axes.degree == 1) {
      const std::vector<Step>& steps = std::get<StageProgram>(shared).program.forward;
      const auto sent =
          std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.kind == StepKind::all_to_all; });
      CHECK(sent == 3 * sizes.blocks); // rows, their choices, and rows back: not the activation's rows
    }
  }
}

// Rows go to experts and come back, forward and backward; choices go with them once.
TEST_CASE("each mixture sends its rows twice in each pass, and what they weigh with them") {
  const TransformerSizes sizes = mixture();
  const Program program = std::get<StageProgram>(staged(make_transformer(sizes), {.experts = {4}})).program;
  const auto sent = [](const std::vector<Step>& steps) {
    return std::count_if(steps.begin(), steps.end(),
                         [](const Step& step) { return step.kind == StepKind::all_to_all; });
  };
  CHECK(sent(program.forward) == 3L * sizes.blocks);
  CHECK(sent(program.backward) == 3L * sizes.blocks); // gradients of rows, and of what they weigh
}

TEST_CASE("no exchange of rows can be left out, doubled or swapped") {
  const TransformerSizes sizes = mixture();
  const Transformer model = make_transformer(sizes);
  const Outcome whole = run(program_of(model, make_layout({})), model.inputs);
  for (const StageAxes& axes : std::initializer_list<StageAxes>{
           {.experts = {4}},
           {.degree = 2, .sequence = true, .experts = {4}},
           {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan, .experts = {4, 2}}}) {
    for_each_mutation(std::get<StageProgram>(staged(model, axes)).program,
                      [&](Mutation mutation, const Step& step, const Program& spoilt) {
                        INFO("tensor " << axes.degree << ", tensor " << step.writes);
                        CHECK(is_found_out(mutation, spoilt, model.inputs, whole));
                      });
  }
}

// Letters are searched for along the tensor axis, while tokens and experts are shared by rule.
TEST_CASE("a search along the tensor axis goes with ranks that share tokens or experts") {
  const TransformerSizes sizes = mixture();
  const Transformer model = make_transformer(sizes);
  const Unsharded unsharded(model, sizes);
  std::vector<OperatorId> all(model.operators.size());
  std::iota(all.begin(), all.end(), 0);
  for (const double per_element : {0.01, 100.0}) {
    for (const StageAxes& axes : std::initializer_list<StageAxes>{
             {.degree = 2, .experts = {4, 2}},
             {.degree = 2, .sequence = true, .experts = {2, 2}},
             {.degree = 2, .sequence = true, .experts = {4}},
             {.degree = 2, .context = {.ranks = 2}},
             {.degree = 2, .context = {.ranks = 2, .rule = ContextRule::all_to_all, .heads = 2}},
             {.degree = 2, .sequence = true, .context = {.ranks = 2}, .experts = {8}}}) {
      INFO("tensor " << axes.degree << ", context " << axes.context.ranks << ", expert " << axes.experts.ranks << " x "
                     << axes.experts.tensor << ", links " << per_element);
      StageAxes searched = axes;
      searched.rule = TensorRule::search;
      unsharded.check(
          stage_program(graph_of(model), all, searched, made_up_times(model.operators, axes.degree, per_element)));
    }
  }
}

// Both gather the tokens that attention left apart, and that shared experts need. Where ranks have parts of every
// expert, Megatron-LM routes a rank's own tokens and gathers their rows, two for each token, whose terms it then adds
// up; TorchTitan makes all rows of gathered tokens, and adds up terms of tokens. Counted in tokens of 16 numbers that a
// block's mixture, shared experts and attention (two collectives of 8 tokens) exchange forward.
TEST_CASE("TorchTitan adds up terms of tokens where Megatron-LM adds up those of rows, unless it gathers tokens") {
  TransformerSizes one = mixture();
  one.blocks = 1;
  TransformerSizes two = mixture();
  const auto exchanged = [&](TensorRule rule, int experts, int of_each, bool gathers = false) {
    const auto of = [&](const TransformerSizes& sizes) {
      const StageAxes axes{
          .degree = 2, .sequence = true, .rule = rule, .experts = {experts, of_each}, .gathers_tokens = gathers};
      const Program program = std::get<StageProgram>(staged(make_transformer(sizes), axes)).program;
      double numbers = 0;
      for (const Step& step : program.forward) {
        if (step.kind == StepKind::all_gather || step.kind == StepKind::reduce_scatter) {
          numbers += elements_of(program.tensors[step.reads.front()].dimensions);
        }
      }
      return numbers;
    };
    const int samples = one.samples, hidden = one.hidden;
    return (of(two) - of(one)) / (samples * hidden);
  };
  const int tokens = one.tokens, rows = 2 * one.tokens;
  const double choices = 2.0 * one.tokens / one.hidden; // two for each token, of one number
  const int attention = 2 * tokens, shared = 2 * tokens;
  CHECK(exchanged(TensorRule::megatron, 4, 2) == Approx(attention + shared + 2 * rows + choices));
  CHECK(exchanged(TensorRule::torchtitan, 4, 2) == Approx(attention + shared + tokens));
  CHECK(exchanged(TensorRule::megatron, 4, 2, true) == Approx(attention + shared + tokens + choices)); // of own tokens
  // Tokens of their own go to experts of their own, and nothing else differs.
  CHECK(exchanged(TensorRule::torchtitan, 4, 1) == exchanged(TensorRule::megatron, 4, 1));
}

TEST_CASE("experts are shared by whole axes from the inside, and by ranks with tokens of their own") {
  const Transformer model = make_transformer(mixture());
  const auto reason = [&](const StageAxes& axes) {
    const auto found = staged(model, axes);
    return std::holds_alternative<Infeasible>(found) ? std::get<Infeasible>(found).reason : "";
  };
  CHECK(reason({.degree = 2, .experts = {4}}) ==
        "the 2 ranks of a tensor group have the same tokens, so they cannot send them to different experts; allowed: "
        "sequence: true, or expert_tensor: 2");
  CHECK(reason({.degree = 4, .sequence = true, .experts = {2}}) ==
        "expert 2 does not go with the axes inside it; allowed: multiples of 4");
  CHECK(reason({.degree = 4, .sequence = true, .experts = {4, 2}}) ==
        "expert_tensor 2 is neither 1 nor the tensor degree 4");
  CHECK(reason({.context = {.ranks = 4}, .experts = {2}}) ==
        "expert 2 does not go with the axes inside it; allowed: multiples of 4");
  CHECK(reason({.degree = 2, .sequence = true, .context = {.ranks = 2}, .experts = {6}}) ==
        "expert 6 does not go with the axes inside it; allowed: 2, multiples of 4");
  CHECK(reason({.experts = {16}}) == "8 experts do not divide over 16 data-parallel ranks; nearest that does: 8");
}
