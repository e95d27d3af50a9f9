// Layouts of up to 16 ranks: how ranks share samples, states, tokens, heads, tensors and experts of every small model,
// by every rule. A set in which each choice meets each other choice is in the suite; all of them run at night.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/meaning.hpp"
#include "tests/program/models.hpp"
#include "tests/program/rules.hpp"

namespace stagecraft::testing {
namespace {

constexpr int kMostRanks = 16;

// A model of which everything that ranks may share divides by 16.
TransformerSizes divisible(TransformerSizes sizes) {
  const bool grouped = sizes.key_value_heads < sizes.heads;
  sizes.key_value_heads = sizes.samples = sizes.tokens = sizes.intermediate = sizes.words = kMostRanks;
  sizes.heads = grouped ? 2 * kMostRanks : kMostRanks;
  sizes.hidden = 2 * sizes.heads;
  sizes.experts = sizes.experts > 0 ? kMostRanks : 0;
  sizes.blocks = 1;
  return sizes;
}

// The model, with keys apart where ranks share tokens, and its unsharded run.
struct Whole {
  Transformer model;
  Outcome outcome;
};

class Models {
public:
  Models() {
    for (const TransformerSizes& sizes : program_models()) {
      sizes_.push_back(divisible(sizes));
    }
  }
  int count() const { return static_cast<int>(sizes_.size()); }
  const TransformerSizes& sizes(int model) const { return sizes_[model]; }

  const Whole& whole(int model, bool keys_apart) {
    const auto [known, is_new] = known_.try_emplace({model, keys_apart});
    if (is_new) {
      Whole& made = known->second;
      made.model = make_transformer(sizes_[model]);
      if (keys_apart) {
        made.model = with_keys_apart(made.model, sizes_[model]);
      }
      const Layout alone = make_layout({{Axis::data, 1}});
      const auto shared = std::get<SharedLetters>(share_by_megatron(made.model.operators, alone, {}));
      made.outcome = run(emit_program(made.model.operators, shared, alone, SharedParameters{}), made.model.inputs);
    }
    return known->second;
  }

private:
  std::vector<TransformerSizes> sizes_;
  std::map<std::pair<int, bool>, Whole> known_;
};

// What is chosen, one number for each choice.
template <std::size_t choices> using Choices = std::array<int, choices>;

template <std::size_t choices> using Pair = std::tuple<std::size_t, int, std::size_t, int>;

template <std::size_t choices> std::vector<Pair<choices>> pairs_of(const Choices<choices>& one) {
  std::vector<Pair<choices>> pairs;
  for (std::size_t i = 0; i < choices; ++i) {
    for (std::size_t j = i + 1; j < choices; ++j) {
      pairs.emplace_back(i, one[i], j, one[j]);
    }
  }
  return pairs;
}

// Few of all, with every pair that there is: first those that bring most new pairs.
template <std::size_t choices> std::vector<Choices<choices>> covering(const std::vector<Choices<choices>>& all) {
  std::vector<Choices<choices>> chosen;
  std::set<Pair<choices>> covered;
  for (std::size_t least = choices * (choices - 1) / 2; least > 0; --least) {
    for (const Choices<choices>& one : all) {
      const auto pairs = pairs_of(one);
      const auto known =
          std::count_if(pairs.begin(), pairs.end(), [&](const auto& at) { return covered.contains(at); });
      if (pairs.size() - static_cast<std::size_t>(known) >= least) {
        covered.insert(pairs.begin(), pairs.end());
        chosen.push_back(one);
      }
    }
  }
  return chosen;
}

template <std::size_t choices> std::set<Pair<choices>> all_pairs(const std::vector<Choices<choices>>& of) {
  std::set<Pair<choices>> all;
  for (const Choices<choices>& one : of) {
    const auto pairs = pairs_of(one);
    all.insert(pairs.begin(), pairs.end());
  }
  return all;
}

// A program that must come to what the unsharded model comes to.
struct Case {
  std::string what;
  Program program;
  const Inputs* inputs = nullptr;
  Outcome whole;
};

void check_case(const Case& one) {
  INFO(one.what);
  const Outcome outcome = run(one.program, *one.inputs);
  CHECK(outcome.defects == std::vector<std::string>{});
  CHECK(outcome.redundant.empty());
  CHECK(ends_as_parameters_lie(one.program));
  CHECK(error_of(outcome, one.whole) < 1e-12);
}

// Along the axes: data ranks that share states, those that hold the same, context ranks that gather keys, those that
// exchange tokens for heads, tensor ranks; the rule of tensor parallelism; what data ranks share.
enum Along { model_of, sharing, groups, context, heads, tensor, rule_of, zero_of, kAlong };
using Axes = Choices<kAlong>;

std::vector<Axes> all_axes(int models, int rules) {
  std::vector<Axes> all;
  const int sizes[] = {1, 2, 4, 8, 16};
  for (const int s : sizes) {
    for (const int g : {1, 2, 4}) {
      for (const int c : sizes) {
        for (const int h : sizes) {
          for (const int t : sizes) {
            for (int rule = 0; s * g * c * h * t <= kMostRanks && rule < (t > 1 ? rules : 1); ++rule) {
              for (int zero = 0; zero < (s > 1 ? 4 : 1); ++zero) {
                for (int model = 0; model < models; ++model) {
                  all.push_back({model, s, g, c, h, t, rule, zero});
                }
              }
            }
          }
        }
      }
    }
  }
  return all;
}

Case case_of(const Axes& axes, Models& models, const std::vector<NamedRule>& rules) {
  std::vector<AxisSize> sizes = {{Axis::data, axes[sharing]}, {Axis::data, axes[groups]}};
  sizes.push_back({Axis::context, axes[context]});
  sizes.push_back({Axis::heads, axes[heads]});
  sizes.push_back({Axis::tensor, axes[tensor]});
  std::erase_if(sizes, [](const AxisSize& one) { return one.size == 1; });
  if (sizes.empty() || axes[sharing] == 1) {
    sizes.insert(sizes.begin(), {Axis::data, 1});
  }
  const Layout layout = make_layout(sizes);
  Case made;
  const Whole& whole = models.whole(axes[model_of], axes[context] * axes[heads] > 1);
  made.inputs = &whole.model.inputs;
  made.whole = whole.outcome;
  const NamedRule& rule = rules[axes[rule_of]];
  made.what = describe(models.sizes(axes[model_of])) + ", " + rule.name;
  for (const std::size_t choice : {sharing, groups, context, heads, tensor, zero_of}) {
    made.what += ' ' + std::to_string(axes[choice]);
  }
  const Letters shared = rule.share(whole.model.operators, layout);
  if (const auto* defect = std::get_if<Infeasible>(&shared)) {
    FAIL(made.what << ": " << defect->reason);
  }
  made.program = emit_program(whole.model.operators, std::get<SharedLetters>(shared), layout,
                              SharedParameters{static_cast<Zero>(axes[zero_of]), 0});
  return made;
}

// Stages that share experts: tensor ranks, whether these share tokens between products, context ranks, how these share
// attention, ranks that share experts, those of a tensor group that share each, whether they gather tokens, the rule.
enum AlongStage {
  model_of_stage,
  degree,
  sequence,
  context_ranks,
  context_rule,
  expert_ranks,
  shared_experts,
  gathers,
  rule_of_stage,
  kAlongStage
};
using Stages = Choices<kAlongStage>;

StageAxes axes_of(const Stages& stage) {
  StageAxes axes;
  axes.degree = stage[degree];
  axes.sequence = stage[sequence] != 0;
  axes.rule = static_cast<TensorRule>(stage[rule_of_stage]);
  axes.context = {.ranks = stage[context_ranks], .rule = static_cast<ContextRule>(stage[context_rule])};
  axes.context.heads = axes.context.rule == ContextRule::all_to_all ? axes.context.ranks
                       : axes.context.rule == ContextRule::both     ? 2
                                                                    : 1;
  axes.experts = {stage[expert_ranks], stage[shared_experts] != 0 ? stage[degree] : 1};
  axes.gathers_tokens = stage[gathers] != 0;
  return axes;
}

// Whether ranks can share so: what has a choice has more than one rank, and they are no more than 16.
bool is_stage(const Stages& stage) {
  const StageAxes axes = axes_of(stage);
  const bool chosen_for_all =
      (stage[degree] > 1 || stage[sequence] + stage[rule_of_stage] + stage[shared_experts] == 0) &&
      (stage[context_ranks] > 1 || stage[context_rule] == 0) &&
      (stage[expert_ranks] > 1 || stage[shared_experts] + stage[gathers] == 0);
  const bool is_both = axes.context.rule == ContextRule::both;
  const int inside = axes.degree * axes.context.ranks;
  const int all = std::max(inside, axes.experts.ranks * axes.experts.tensor);
  return chosen_for_all && (!is_both || axes.context.ranks > 2) && all <= kMostRanks && expert_defect(axes).empty();
}

std::vector<Stages> all_stages(const Models& models) {
  std::vector<Stages> all;
  const auto add = [&](const Stages& stage) {
    for (int model = 0; model < models.count(); ++model) {
      Stages of = stage;
      of[model_of_stage] = model;
      if (models.sizes(model).experts > 0 && is_stage(of)) {
        all.push_back(of);
      }
    }
  };
  const int sizes[] = {1, 2, 4, 8, 16};
  for (const int t : sizes) {
    for (const int c : sizes) {
      for (const int e : sizes) {
        for (int flags = 0; flags < 8; ++flags) {
          for (int of_context = 0; of_context < static_cast<int>(kContextRules.size()); ++of_context) {
            for (int rule = 0; rule < static_cast<int>(kTensorRules.size()); ++rule) {
              add({0, t, flags & 1, c, of_context, e, flags >> 1 & 1, flags >> 2, rule});
            }
          }
        }
      }
    }
  }
  return all;
}

Case case_of(const Stages& stage, Models& models) {
  const StageAxes axes = axes_of(stage);
  const int model = stage[model_of_stage];
  Case made;
  made.what = describe(models.sizes(model));
  for (const int choice : stage) {
    made.what += ' ' + std::to_string(choice);
  }
  const Transformer& whole = models.whole(model, false).model;
  std::vector<OperatorId> all(whole.operators.size());
  std::iota(all.begin(), all.end(), 0);
  auto found = stage_program(graph_of(whole), all, axes, made_up_times(whole.operators, axes.degree, 1.0));
  if (const auto* defect = std::get_if<Infeasible>(&found)) {
    FAIL(made.what << ": " << defect->reason);
  }
  made.program = std::get<StageProgram>(std::move(found)).program;
  const Whole& as_cut = models.whole(model, made.program.operators.size() > whole.operators.size());
  made.inputs = &as_cut.model.inputs;
  made.whole = as_cut.outcome;
  made.whole.updated.clear(); // a stage's program has no optimiser's step
  return made;
}

} // namespace

TEST_CASE("layouts of up to 16 ranks, with every pair of choices, come to the unsharded run's step") {
  Models models;
  const std::vector<NamedRule> rules = named_rules();
  const std::vector<Axes> all = all_axes(models.count(), static_cast<int>(rules.size()));
  const std::vector<Axes> few = covering(all);
  CHECK(all_pairs(few) == all_pairs(all));
  for (const Axes& axes : few) {
    check_case(case_of(axes, models, rules));
  }
}

TEST_CASE("stages of up to 16 ranks that share experts, with every pair of choices, come to the unsharded run's step") {
  Models models;
  const std::vector<Stages> all = all_stages(models);
  const std::vector<Stages> few = covering(all);
  CHECK(all_pairs(few) == all_pairs(all));
  for (const Stages& stage : few) {
    check_case(case_of(stage, models));
  }
}

TEST_CASE("all layouts of up to 16 ranks come to the unsharded run's step", "[.nightly][layouts]") {
  Models models;
  const std::vector<NamedRule> rules = named_rules();
  for (const Axes& axes : all_axes(models.count(), static_cast<int>(rules.size()))) {
    check_case(case_of(axes, models, rules));
  }
}

TEST_CASE("all stages of up to 16 ranks that share experts come to the unsharded run's step", "[.nightly][layouts]") {
  Models models;
  for (const Stages& stage : all_stages(models)) {
    check_case(case_of(stage, models));
  }
}

// Exchanges of two terms of one sum may be swapped, as those of x + a + b where ranks of a search give up a and b
// alike, and so may those of their gradients, which are the same. The spoilt program tells that it means the same.
TEST_CASE("no collective of layouts with every pair of choices can be left out, doubled or swapped",
          "[.nightly][mutations]") {
  Models models;
  const std::vector<NamedRule> rules = named_rules();
  int swaps = 0, harmless = 0;
  const auto check = [&](const Case& one) {
    for_each_mutation(one.program, [&](Mutation mutation, const Step& step, const Program& spoilt) {
      INFO(one.what << ", mutation " << static_cast<int>(mutation) << " of tensor " << step.writes);
      const bool same = mutation == Mutation::swapped && mean_the_same(one.program, spoilt);
      CHECK(is_found_out(mutation, spoilt, *one.inputs, one.whole) != same);
      swaps += mutation == Mutation::swapped ? 1 : 0;
      harmless += same ? 1 : 0;
    });
  };
  for (const Axes& axes : covering(all_axes(models.count(), static_cast<int>(rules.size())))) {
    check(case_of(axes, models, rules));
  }
  for (const Stages& stage : covering(all_stages(models))) {
    check(case_of(stage, models));
  }
  CHECK(swaps > 3000);
  CHECK(harmless > 0);
}

} // namespace stagecraft::testing
