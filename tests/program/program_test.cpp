// Programs carried out with numbers: they come to what the unsharded model comes to, and to nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/layer_math.hpp"
#include "tests/program/meaning.hpp"
#include "tests/program/models.hpp"
#include "tests/program/rules.hpp"

using namespace stagecraft;
using namespace stagecraft::testing;

namespace {

Program program_by(const NamedRule& rule, const Transformer& model, const Layout& layout) {
  const Letters shared = rule.share(model.operators, layout);
  if (const auto* defect = std::get_if<Infeasible>(&shared)) {
    FAIL(rule.name << ": " << defect->reason);
  }
  return emit_program(model.operators, std::get<SharedLetters>(shared), layout);
}

Layout grid(int data, int tensor) { return make_layout({{Axis::data, data}, {Axis::tensor, tensor}}); }

int count(const std::vector<Step>& steps, StepKind kind) {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [=](const Step& step) { return step.kind == kind; }));
}

} // namespace

TEST_CASE("the unsharded program's gradients are the slopes of its loss") {
  for (const TransformerSizes& sizes : program_models()) {
    Transformer model = make_transformer(sizes);
    const Program program = program_of(model, make_layout({}));
    const Outcome outcome = run(program, model.inputs);
    REQUIRE(outcome.defects.empty());
    const auto loss = [&] {
      const Numbers losses = run(program, model.inputs).loss;
      double sum = 0;
      for (const double value : losses.values) {
        sum += value;
      }
      return sum;
    };
    for (const auto& [parameter, gradient] : outcome.gradients) {
      double& number = model.inputs.parameters.at(parameter).values.at(1);
      const double before = number;
      constexpr double kStep = 1e-5;
      number = before + kStep;
      const double above = loss();
      number = before - kStep;
      const double below = loss();
      number = before;
      INFO(describe(sizes) << ", data " << 1 << ", tensor " << 1 << ", "
                           << "megatron"
                           << ", parameter " << parameter.second << " of operator " << parameter.first);
      CHECK(gradient.values.at(1) == Approx((above - below) / (2 * kStep)).margin(1e-6));
    }
  }
}

TEST_CASE("the emitted program of every layout comes to the unsharded run's loss and gradients") {
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    const Outcome whole = run(program_of(model, make_layout({})), model.inputs);
    for (const auto& [data, tensor] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {4, 2}, {1, 4}}) {
      if (sizes.key_value_heads % tensor != 0 || sizes.samples % data != 0) {
        continue;
      }
      for (const NamedRule& rule : named_rules()) {
        INFO(describe(sizes) << ", data " << data << ", tensor " << tensor << ", " << rule.name);
        const Program program = program_by(rule, model, grid(data, tensor));
        const Outcome outcome = run(program, model.inputs);
        CHECK(outcome.defects == std::vector<std::string>{});
        CHECK(ends_as_parameters_lie(program));
        CHECK(error_of(outcome, whole) < 1e-12);
        if (data > 1 && tensor > 1) {
          CHECK(outcome.redundant.empty());
        }
      }
    }
  }
}

// Megatron-LM's mamba_mixer.py: one product by groups of heads, all that follows on these, one product back.
TEST_CASE("a state space in groups is shared by these, and gathers and scatters tokens once") {
  TransformerSizes sizes;
  sizes.state_space = true;
  const Transformer model = make_transformer(sizes);
  const Outcome whole = run(program_of(model, make_layout({})), model.inputs);
  for (const bool sequence : {false, true}) {
    const Program program = program_of(model, grid(2, 2), sequence);
    const Outcome outcome = run(program, model.inputs);
    CHECK(outcome.defects == std::vector<std::string>{});
    CHECK(error_of(outcome, whole) < 1e-12);
    // One for each state space and MLP, one for the embedding or the head, and three for the loss over shared words.
    const int whole_tokens = 2 * sizes.blocks + 1, loss = 3;
    CHECK(count(program.forward, StepKind::all_gather) == (sequence ? whole_tokens : 0));
    CHECK(count(program.forward, StepKind::reduce_scatter) == (sequence ? whole_tokens : 0));
    CHECK(count(program.forward, StepKind::all_reduce) == (sequence ? loss : whole_tokens + loss));
  }
}

// Operators begin … end as a stage: what comes in is data, and what goes out has a gradient of ones.
Transformer stage_of(const Transformer& model, int begin, int end) {
  std::vector<OperatorId> stage;
  for (OperatorId op = begin; op < end; ++op) {
    stage.push_back(op);
  }
  const CutStage cut = cut_stage(model.operators, stage);
  Transformer made{.operators = cut.operators};
  const Math border = add_math(); // of one tensor
  for (int at = 0; at < static_cast<int>(cut.operators.size()); ++at) {
    const int op = begin + at - cut.incoming;
    const bool inside = op >= begin && op < end;
    made.inputs.maths.push_back(inside ? model.inputs.maths[op] : border);
    for (std::size_t i = 0; inside && i < model.operators[op].parameters.size(); ++i) {
      made.inputs.parameters[{at, static_cast<int>(i)}] = model.inputs.parameters.at({op, static_cast<int>(i)});
    }
  }
  made.inputs.data = model.inputs.data;
  if (cut.incoming > 0) {
    std::vector<std::int64_t> sizes;
    for (const TensorDimension& dimension : cut.operators.front().output) {
      sizes.push_back(dimension.size());
    }
    Numbers incoming = zeros(sizes);
    for (std::size_t i = 0; i < incoming.values.size(); ++i) {
      incoming.values[i] = std::sin(static_cast<double>(i)); // anything
    }
    made.inputs.data[0] = incoming;
  }
  return made;
}

// Whether all that comes in has one size: the interpreter knows data by the number of the input that reads it.
bool alike_data(const Transformer& stage) {
  std::optional<std::int64_t> features;
  for (const Signature& op : stage.operators) {
    if (op.inputs.front().maker < 0) {
      const std::int64_t size = op.inputs.front().dimensions.back().size();
      if (features.value_or(size) != size) {
        return false;
      }
      features = size;
    }
  }
  return true;
}

TEST_CASE("a stage's program comes to the unsharded stage's results, wherever the model is cut") {
  for (const TransformerSizes& sizes : program_models()) {
    if (sizes.tied) {
      continue; // cut apart, the weight would be two
    }
    const Transformer model = make_transformer(sizes);
    const int operators = static_cast<int>(model.operators.size());
    int runs = 0;
    for (int at = 1; at < operators; ++at) {
      for (const auto& [begin, end] : {std::pair(0, at), {at, operators}}) {
        const Transformer stage = stage_of(model, begin, end);
        if (!alike_data(stage)) {
          continue;
        }
        ++runs;
        const Outcome whole = run(program_of(stage, make_layout({})), stage.inputs);
        for (const bool sequence : {false, true}) {
          for (const bool megatron : {true, false}) {
            INFO(describe(sizes) << ", data " << 1 << ", tensor " << 2 << ", " << (megatron ? "megatron" : "torchtitan")
                                 << (sequence ? ", sequence" : "") << ", operators " << begin << " to " << end);
            const Letters shared = megatron ? share_by_megatron(stage.operators, grid(1, 2), {sequence, true, true})
                                            : share_by_torchtitan(stage.operators, grid(1, 2), {.sequence = sequence});
            REQUIRE(std::holds_alternative<SharedLetters>(shared));
            const Program program = emit_program(stage.operators, std::get<SharedLetters>(shared), grid(1, 2));
            CHECK(error_of(run(program, stage.inputs), whole) < 1e-12);
          }
        }
      }
    }
    CHECK(runs > operators);
  }
}

TEST_CASE("a block has the collectives that Megatron-LM's papers name") {
  TransformerSizes one;
  one.blocks = 1;
  TransformerSizes two = one;
  two.blocks = 2;
  const auto more = [&](bool sequence, bool forward, StepKind kind) {
    const auto steps = [&](const TransformerSizes& sizes) {
      const Program program = program_of(make_transformer(sizes), grid(1, 2), sequence);
      return count(forward ? program.forward : program.backward, kind);
    };
    return steps(two) - steps(one);
  };
  // Shoeybi et al. 2019, figure 4: one all-reduce after each of attention and MLP, in each pass.
  CHECK(more(false, true, StepKind::all_reduce) == 2);
  CHECK(more(false, false, StepKind::all_reduce) == 2);
  CHECK(more(false, true, StepKind::all_gather) == 0);
  // Korthikanti et al. 2022, section 4.2.2: four collectives forward; backward four, and two that gather inputs again.
  CHECK(more(true, true, StepKind::all_gather) == 2);
  CHECK(more(true, true, StepKind::reduce_scatter) == 2);
  CHECK(more(true, true, StepKind::all_reduce) == 0);
  CHECK(more(true, false, StepKind::all_gather) == 4);
  CHECK(more(true, false, StepKind::reduce_scatter) == 2);
  CHECK(more(true, false, StepKind::all_reduce) == 0);
  for (const bool sequence : {false, true}) { // each rank has the queries, keys and values of its heads
    CHECK(more(sequence, true, StepKind::all_to_all) + more(sequence, false, StepKind::all_to_all) == 0);
  }
}

TEST_CASE("a program without one of its collectives, with one twice or with two swapped does not come to the same") {
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    const Outcome whole = run(program_of(model, make_layout({})), model.inputs);
    for (const NamedRule& rule : named_rules()) {
      for_each_mutation(program_by(rule, model, grid(2, 2)),
                        [&](Mutation mutation, const Step& step, const Program& spoilt) {
                          INFO(describe(sizes) << ", data 2, tensor 2, " << rule.name << ", tensor " << step.writes);
                          CHECK(is_found_out(mutation, spoilt, model.inputs, whole));
                        });
    }
  }
}

TEST_CASE("a collective done once more, or that nothing reads, is reported as redundant") {
  const Transformer model = make_transformer({});
  for (const NamedRule& rule : named_rules()) {
    const Program program = program_by(rule, model, grid(2, 2));
    REQUIRE(run(program, model.inputs).redundant.empty());
    for (std::size_t i = 0; i < program.forward.size(); ++i) {
      if (!is_collective(program.forward[i].kind)) {
        continue;
      }
      for (const bool is_read : {false, true}) {
        Program more = program;
        Step again = program.forward[i];
        more.tensors.push_back(program.tensors[again.writes]);
        again.writes = static_cast<TensorId>(more.tensors.size()) - 1;
        for (std::size_t later = i + 1; is_read && later < more.forward.size(); ++later) {
          auto& reads = more.forward[later].reads;
          std::replace(reads.begin(), reads.end(), program.forward[i].writes, again.writes);
        }
        more.forward.insert(more.forward.begin() + static_cast<std::ptrdiff_t>(i) + 1, again);
        INFO(rule.name << ", step " << i);
        CHECK_FALSE(run(more, model.inputs).redundant.empty());
      }
    }
  }
}

TEST_CASE("what does not divide is refused with the nearest size that does") {
  const Transformer model = make_transformer({}); // two key-value heads
  const auto shared = share_by_megatron(model.operators, grid(1, 4), {});
  REQUIRE(std::holds_alternative<Infeasible>(shared));
  CHECK(std::get<Infeasible>(shared).reason ==
        "2 key-value heads do not divide over 4 tensor-parallel ranks; nearest that does: 2");
}

// Four ranks would have a token each, and three a key-value head each: two have neither.
TEST_CASE("the nearest size is one that divides everything that ranks share") {
  TransformerSizes sizes;
  sizes.heads = 6;
  sizes.key_value_heads = 3;
  sizes.hidden = 12;
  const Transformer model = make_transformer(sizes);
  for (const int ranks : {3, 4, 6}) {
    const auto shared = share_by_megatron(model.operators, grid(1, ranks), {.sequence = true});
    REQUIRE(std::holds_alternative<Infeasible>(shared));
    CHECK_THAT(std::get<Infeasible>(shared).reason, Catch::Contains("; nearest that does: 1"));
  }
}

TEST_CASE("axes that the rule has no letter for are refused") {
  const Transformer model = make_transformer({});
  const auto reason_of = [&](Axis axis) {
    const auto shared = share_by_megatron(model.operators, make_layout({{axis, 2}}), {});
    return std::holds_alternative<Infeasible>(shared) ? std::get<Infeasible>(shared).reason : "";
  };
  CHECK(reason_of(Axis::data).empty());
  CHECK(reason_of(Axis::context) == "operator 3 needs all tokens at once, so the context axis cannot share them");
  CHECK(reason_of(Axis::experts) == "the rule of Megatron-LM lays out experts by their own layout");
}

namespace {

SharedLetters by_torchtitan(const Transformer& model, const TorchTitanRule& rule) {
  return std::get<SharedLetters>(share_by_torchtitan(model.operators, grid(1, 2), rule));
}

SharedLetters by_megatron(const Transformer& model, bool sequence) {
  return std::get<SharedLetters>(share_by_megatron(model.operators, grid(1, 2), {.sequence = sequence}));
}

// The collectives of both passes.
std::vector<StepKind> collectives_of(const Transformer& model, const SharedLetters& shared) {
  const Program program = emit_program(model.operators, shared, grid(1, 2));
  std::vector<StepKind> kinds;
  for (const auto* pass : {&program.forward, &program.backward}) {
    for (const Step& step : *pass) {
      if (is_collective(step.kind)) {
        kinds.push_back(step.kind);
      }
    }
  }
  return kinds;
}

int count_kind(const std::vector<StepKind>& kinds, StepKind kind) {
  return static_cast<int>(std::count(kinds.begin(), kinds.end(), kind));
}

} // namespace

TEST_CASE("TorchTitan lays out transformers as Megatron-LM does, where every product has a partner") {
  for (const TransformerSizes& sizes : program_models()) {
    if (sizes.latent || sizes.experts > 0) {
      continue;
    }
    INFO(describe(sizes));
    const Transformer model = make_transformer(sizes);
    for (const bool sequence : {false, true}) {
      const SharedLetters ours = by_torchtitan(model, {.sequence = sequence});
      CHECK(ours == by_megatron(model, sequence));
      CHECK(collectives_of(model, ours) == collectives_of(model, by_megatron(model, sequence)));
    }
  }
}

// parallelize_llama() with a whole loss: the head's outputs are gathered, and no number of the loss is exchanged. Back
// comes nothing, since every rank has all gradients of the logits.
TEST_CASE("TorchTitan without a parallel loss gathers the logits") {
  const Transformer model = make_transformer({});
  const auto parallel = collectives_of(model, by_torchtitan(model, {}));
  const auto whole = collectives_of(model, by_torchtitan(model, {.loss_parallel = false}));
  CHECK(count_kind(parallel, StepKind::all_reduce) == 3); // greatest, sum, label
  CHECK(count_kind(whole, StepKind::all_reduce) == 0);
  // forward, and again for backward, which reads the logits
  CHECK(count_kind(whole, StepKind::all_gather) == count_kind(parallel, StepKind::all_gather) + 2);
  CHECK(count_kind(whole, StepKind::reduce_scatter) == count_kind(parallel, StepKind::reduce_scatter));
}

// apply_non_moe_tp() of DeepSeek-V3: wq_a, q_norm, wkv_a and kv_norm are NoParallel and read the tokens that attention
// has gathered once; Megatron-LM has each rank work on its own tokens, and gathers three short vectors.
TEST_CASE("TorchTitan does latent attention's way down whole on every rank") {
  TransformerSizes sizes;
  sizes.latent = true;
  sizes.hidden = 16;
  sizes.key_value_heads = sizes.heads;
  sizes.blocks = 1;
  const Transformer model = make_transformer(sizes);
  const SharedLetters ours = by_torchtitan(model, {});
  const SharedLetters other =
      std::get<SharedLetters>(share_by_megatron(model.operators, grid(1, 2), {.sequence = true, .alone = true}));
  const int tokens = 1;
  // embedding, norm, then the two ways down with a norm each: query 2 3 4, keys 5 6 7 8 9
  for (const int op : {2, 3, 5, 6, 7, 9}) {
    INFO("operator " << op);
    CHECK(ours[op][1] == kNone);
    CHECK(other[op][1] == tokens);
  }
  CHECK(ours[1][1] == tokens);
  const auto gathers = [&](const SharedLetters& shared) {
    return count(emit_program(model.operators, shared, grid(1, 2)).forward, StepKind::all_gather);
  };
  CHECK(gathers(other) == gathers(ours) + 2);
}

TEST_CASE("TorchTitan's rule refuses what it does not lay out, and what does not divide") {
  const auto reason = [](const TransformerSizes& sizes, const Layout& layout) {
    const auto shared = share_by_torchtitan(make_transformer(sizes).operators, layout, {});
    return std::holds_alternative<Infeasible>(shared) ? std::get<Infeasible>(shared).reason : "";
  };
  TransformerSizes odd;
  odd.tokens = 3;
  CHECK(reason(odd, grid(1, 2)) == "3 tokens do not divide over 2 tensor-parallel ranks; nearest that does: 1");
  CHECK(reason({}, grid(1, 4)) == "2 key-value heads do not divide over 4 tensor-parallel ranks; nearest that does: 2");
}

// Two sources a and b in terms, each reduced, and read by an operator of both.
namespace {
Program two_exchanges(bool multiplies) {
  Program program;
  program.layout = make_layout({{Axis::tensor, 2}});
  const TensorDimensions rows = {{.letter = 0, .sections = {4}}};
  const Signature source{.letters = {{.name = "rows"}}, .output = rows};
  Signature both = source;
  both.inputs = {{.maker = 0, .dimensions = rows}, {.maker = 1, .dimensions = rows}};
  both.reads_inputs = multiplies;
  program.operators = {source, source, both};
  const auto tensor = [&](int op, Placement::Kind kind) {
    program.tensors.push_back({.op = op, .dimensions = rows, .placements = {{.kind = kind}}});
    return static_cast<TensorId>(program.tensors.size()) - 1;
  };
  for (const int op : {0, 1}) {
    const TensorId terms = tensor(op, Placement::Kind::partial), whole = tensor(op, Placement::Kind::replicate);
    program.forward.push_back({.kind = StepKind::all_reduce, .reads = {terms}, .writes = whole});
    program.values.push_back(whole);
  }
  program.values.push_back(tensor(2, Placement::Kind::replicate));
  program.forward.push_back({.kind = StepKind::forward, .op = 2, .reads = program.values, .writes = program.values[2]});
  program.forward.back().reads.pop_back();
  return program;
}
} // namespace

TEST_CASE("exchanges of two terms of one sum may be swapped, those of two factors or of two kinds may not") {
  const auto swapped = [](Program program) {
    std::swap(program.forward[0].reads, program.forward[1].reads);
    return program;
  };
  CHECK(mean_the_same(two_exchanges(false), swapped(two_exchanges(false))));
  CHECK_FALSE(mean_the_same(two_exchanges(true), swapped(two_exchanges(true))));
  Program greatest = two_exchanges(false);
  greatest.forward[0].maximum = true;
  CHECK_FALSE(mean_the_same(greatest, swapped(greatest)));
  Program once = two_exchanges(false);
  once.forward[1].reads = once.forward[0].reads; // a + a
  CHECK_FALSE(mean_the_same(once, two_exchanges(false)));
}
