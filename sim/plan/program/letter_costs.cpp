// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/letter_costs.hpp"

#include <algorithm>

#include "sim/plan/program/operator_placements.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {
namespace {

void add_once(std::vector<Placement>& placements, const Placement& one) {
  if (std::find(placements.begin(), placements.end(), one) == placements.end()) {
    placements.push_back(one);
  }
}

} // namespace

LetterCosts::LetterCosts(const std::vector<Signature>& operators, const StepTimes& times)
    : operators_(operators), times_(times), readers_(readers_of(operators)), has_gradient_(operators.size(), 0) {
  for (int op = static_cast<int>(operators.size()) - 1; op >= 0; --op) {
    has_gradient_[op] =
        readers_[op].empty() || std::any_of(readers_[op].begin(), readers_[op].end(), [&](const OutputReader& reader) {
          return has_gradient_[reader.op] && operators_[reader.op].inputs[reader.input].passes_gradient;
        });
  }
}

double LetterCosts::seconds(int op, const std::vector<int>& letters) const {
  const Shard shard = shard_of_operator(operators_[op], letters[op], times_.group.ranks);
  return times_.computation(op, shard).value + inner(op, letters[op]) + exchanges(op, letters);
}

Reading LetterCosts::reading(const OutputReader& reader, int letter) const {
  const Signature& signature = operators_[reader.op];
  const InputSignature& input = signature.inputs[reader.input];
  Reading reading{.need = placement_read(input, letter)};
  if (has_gradient_[reader.op] != 0) {
    reading.again = signature.reads_inputs;
    reading.differentiates = input.passes_gradient;
  }
  if (reading.differentiates) {
    reading.gradient = placement_passed(signature, input, letter);
  }
  return reading;
}

double LetterCosts::exchanged(int op, const Placement& from, const Placement& to) const {
  if (from == to || !is_collective(way_between(from, to))) {
    return 0;
  }
  return exchange_seconds(collective_of(way_between(from, to)), operators_[op].output, times_.element, times_).value;
}

// What an operator reduces inside.
double LetterCosts::inner(int op, int letter) const {
  double sum = 0;
  if (is_letter(letter) && operators_[op].letters[letter].along == Along::reduce) {
    const Bytes element{row_of(Precision::fp32).bytes};
    for (const InnerReduction& reduction : operators_[op].reductions) {
      sum += exchange_seconds(CollectiveKind::all_reduce, reduction.tensor, element, times_).value;
    }
  }
  return sum;
}

// Forward, each placement that readers need is made once for all of them, and in backward again, since a rank keeps
// what it has of a value. Gradients that lie alike are added up before they are put where the value is, and the
// operator takes the sum as it made its output.
double LetterCosts::exchanges(int op, const std::vector<int>& letters) const {
  std::vector<Placement> needs, again, gradients;
  for (const OutputReader& reader : readers_[op]) {
    const Reading one = reading(reader, letters[reader.op]);
    add_once(needs, one.need);
    if (one.again) {
      add_once(again, one.need);
    }
    if (one.differentiates) {
      add_once(gradients, one.gradient);
    }
  }
  const Placement made = placement_made(operators_[op], operators_[op].output, letters[op], true);
  const Placement kept = made.is_partial() ? agreed_placement(needs) : made;
  double sum = exchanged(op, made, kept);
  for (const auto* some : {&needs, &again}) {
    for (const Placement& need : *some) {
      sum += exchanged(op, kept, need);
    }
  }
  const Placement wanted = placement_of_gradient(kept, letters[op]);
  for (const Placement& gradient : gradients) {
    sum += exchanged(op, gradient, wanted);
  }
  if (has_gradient_[op] != 0) {
    sum += exchanged(op, wanted, placement_of_gradient(made, letters[op])) + reduction(op, letters[op], wanted);
  }
  return sum;
}

double LetterCosts::reduction(int op, int letter, const Placement& gradient) const {
  const Signature& signature = operators_[op];
  double elements = 0;
  for (const ParameterSignature& parameter : signature.parameters) {
    if (!parameter.stepped()) { // its gradient is added to the owner's
      continue;
    }
    const Placement made = parameter.added_last
                               ? placement_beside(signature, parameter.dimensions, gradient, Placement::Kind::partial)
                               : placement_made(signature, parameter.dimensions, letter, false);
    const Placement wanted = placement_used(parameter.dimensions, letter);
    if (made != wanted && is_collective(way_between(made, wanted))) {
      elements += elements_of(parameter.dimensions) / (made.is_shard() ? times_.group.ranks : 1);
    }
  }
  return reduction_seconds(elements, times_).value;
}

bool LetterCosts::tie_holds(int op, const std::vector<int>& letters) const {
  const Signature& signature = operators_[op];
  return std::all_of(signature.parameters.begin(), signature.parameters.end(), [&](const ParameterSignature& own) {
    if (own.tied_to < 0) {
      return true;
    }
    const Signature& owner = operators_[own.tied_to];
    return placement_made(signature, own.dimensions, letters[op], false) ==
           placement_made(owner, owner.parameters.front().dimensions, letters[own.tied_to], false);
  });
}

} // namespace stagecraft
