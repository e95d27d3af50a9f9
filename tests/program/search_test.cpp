// Letters found by search: what it adds up is what the emitted program takes, and nothing takes less.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/letter_costs.hpp"
#include "sim/plan/program/operator_placements.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "tests/catch.hpp"
#include "tests/program/models.hpp"
#include "tests/program/rules.hpp"

using namespace stagecraft;
using namespace stagecraft::testing;

namespace {

Layout group_of(int degree) { return make_layout({{Axis::tensor, degree}}); }

double seconds_by(const std::vector<Signature>& operators, const SharedLetters& shared, const StepTimes& times) {
  return program_seconds(emit_program(operators, shared, group_of(times.group.ranks)), shared, times).value;
}

constexpr double kLinks[] = {0.01, 1.0, 100.0};

// Some operators of a model, and those for the tensors that cross their border.
struct Segment {
  std::vector<Signature> operators;
  SearchRule rule;
};

Segment segment_of(const Transformer& model, int begin, int count, bool sequence, bool whole_weights) {
  std::vector<OperatorId> stage;
  for (int op = begin; op < std::min<int>(begin + count, static_cast<int>(model.operators.size())); ++op) {
    stage.push_back(op);
  }
  CutStage cut = cut_stage(model.operators, stage);
  Segment segment{std::move(cut.operators), {sequence, whole_weights, {}}};
  segment.rule.borders.assign(segment.operators.size(), 1);
  std::fill_n(segment.rule.borders.begin() + cut.incoming, stage.size(), char{0});
  return segment;
}

// The least seconds over all letters, for each kind of links, by emitting every program.
std::vector<double> least_of_all(const Segment& segment, int degree) {
  const auto choices = letters_to_search(segment.operators, group_of(degree), segment.rule);
  const auto operators = static_cast<int>(choices.size());
  std::vector<double> least(std::size(kLinks), INFINITY);
  std::vector<std::size_t> at(choices.size(), 0);
  for (bool more = true; more;) {
    SharedLetters shared;
    for (int op = 0; op < operators; ++op) {
      shared.push_back({choices[op][at[op]]});
    }
    const Program program = emit_program(segment.operators, shared, group_of(degree));
    for (std::size_t i = 0; i < least.size(); ++i) {
      const StepTimes times = made_up_times(segment.operators, degree, kLinks[i]);
      least[i] = std::min(least[i], program_seconds(program, shared, times).value);
    }
    int op = 0; // count on, as an odometer does
    while (op < operators && ++at[op] == choices[op].size()) {
      at[op++] = 0;
    }
    more = op < operators;
  }
  return least;
}

void check_segment(const Segment& segment, int degree) {
  const std::vector<double> least = least_of_all(segment, degree);
  for (std::size_t i = 0; i < least.size(); ++i) {
    const StepTimes times = made_up_times(segment.operators, degree, kLinks[i]);
    const FoundLetters found = share_by_search(segment.operators, group_of(degree), segment.rule, times);
    INFO("an element is sent in " << kLinks[i] << " of its computation");
    CHECK(found.exact);
    CHECK(found.seconds.value == Approx(least[i]).epsilon(1e-12));
    CHECK(seconds_by(segment.operators, found.shared, times) == Approx(least[i]).epsilon(1e-12));
  }
}

} // namespace

TEST_CASE("the terms of operators add up to what the emitted program takes, whatever they share") {
  std::mt19937 random(3);
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    std::vector<Signature> agreed = model.operators;
    agree_on_order(agreed);
    const auto choices = letters_to_search(agreed, group_of(2), {.whole_weights = true});
    const StepTimes times = made_up_times(agreed, 2, 1);
    const LetterCosts costs(agreed, times);
    for (int draw = 0; draw < 50; ++draw) {
      std::vector<int> letters;
      SharedLetters shared;
      for (const auto& some : choices) {
        letters.push_back(some[std::uniform_int_distribution<std::size_t>(0, some.size() - 1)(random)]);
        shared.push_back({letters.back()});
      }
      double sum = 0;
      bool ties = true;
      for (int op = 0; op < static_cast<int>(agreed.size()); ++op) {
        sum += costs.seconds(op, letters);
        ties = ties && costs.tie_holds(op, letters);
      }
      if (ties) {
        CHECK(sum == Approx(seconds_by(model.operators, shared, times)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("any letters that may be searched can be computed with") {
  std::mt19937 random(5);
  for (const TransformerSizes& sizes : program_models()) {
    if (sizes.tied) {
      continue; // most draws tear the weight apart
    }
    const Transformer model = make_transformer(sizes);
    const Outcome whole =
        run(emit_program(model.operators, SharedLetters(model.operators.size()), make_layout({})), model.inputs);
    for (int draw = 0; draw < 20; ++draw) {
      const Layout group = group_of(draw % 2 == 0 ? 2 : 4); // two key-value heads do not divide by 4
      const auto choices = letters_to_search(model.operators, group, {.whole_weights = true});
      SharedLetters shared;
      for (const auto& some : choices) {
        shared.push_back({some[std::uniform_int_distribution<std::size_t>(0, some.size() - 1)(random)]});
      }
      CHECK(error_of(run(emit_program(model.operators, shared, group), model.inputs), whole) < 1e-12);
    }
  }
}

TEST_CASE("no letters of eight operators take less than those found") {
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    for (int begin = 0; begin < static_cast<int>(model.operators.size()); begin += 6) {
      for (const bool sequence : {false, true}) {
        INFO(describe(sizes) << ", eight operators from " << begin << (sequence ? ", sequence" : ""));
        check_segment(segment_of(model, begin, 8, sequence, false), 2);
      }
    }
  }
}

TEST_CASE("no letters of five operators take less where a rank may hold whole weights") {
  for (const TransformerSizes& sizes : program_models()) {
    const Transformer model = make_transformer(sizes);
    for (int begin = 0; begin < static_cast<int>(model.operators.size()); begin += 4) {
      INFO(describe(sizes) << ", five operators from " << begin);
      check_segment(segment_of(model, begin, 5, true, true), 2);
    }
  }
}
