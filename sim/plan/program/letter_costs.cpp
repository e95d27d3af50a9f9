// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/letter_costs.hpp"

#include <algorithm>

#include "sim/plan/program/operator_placements.hpp"
#include "sim/workload/training.hpp"

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
  return times_.computation(op, shard).value + values(op, letters);
}

Placement LetterCosts::needed(const OutputReader& reader, const std::vector<int>& letters) const {
  return placement_used(operators_[reader.op].inputs[reader.input].dimensions, letters[reader.op]);
}

double LetterCosts::exchanged(int op, const Placement& from, const Placement& to) const {
  if (from == to || !is_collective(way_between(from, to))) {
    return 0;
  }
  return exchange_seconds(collective_of(way_between(from, to)), operators_[op].output, times_.element, times_).value;
}

// Forward, and then all else that depends on how the output lies.
double LetterCosts::values(int op, const std::vector<int>& letters) const {
  const Signature& signature = operators_[op];
  const int letter = letters[op];
  double sum = 0;
  if (letter != kNone && signature.letters[letter].along == Along::reduce) {
    const Bytes element{row_of(Precision::fp32).bytes};
    for (const InnerReduction& reduction : signature.reductions) {
      sum += exchange_seconds(CollectiveKind::all_reduce, reduction.tensor, element, times_).value;
    }
  }
  std::vector<Placement> needs;
  for (const OutputReader& reader : readers_[op]) {
    needs.push_back(needed(reader, letters));
  }
  const Placement made = placement_made(signature, signature.output, letter, true);
  const Placement kept = made.is_partial() ? agreed_placement(needs) : made;
  sum += exchanged(op, made, kept);
  sum += read(op, kept, letters);
  return has_gradient_[op] ? sum + gradients(op, made, kept, letters) + reduction(op, letter, kept) : sum;
}

// Each placement that readers need is made once for all of them; and again in backward for those that read their inputs
// there, since a rank keeps what it has of a value.
double LetterCosts::read(int op, const Placement& kept, const std::vector<int>& letters) const {
  std::vector<Placement> forward, backward;
  for (const OutputReader& reader : readers_[op]) {
    const Placement need = needed(reader, letters);
    add_once(forward, need);
    if (has_gradient_[reader.op] && operators_[reader.op].reads_inputs) {
      add_once(backward, need);
    }
  }
  double sum = 0;
  for (const auto* needs : {&forward, &backward}) {
    for (const Placement& need : *needs) {
      sum += exchanged(op, kept, need);
    }
  }
  return sum;
}

// Gradients that lie alike are added up before they are put where the value is, and the operator takes the sum as it
// made its output.
double LetterCosts::gradients(int op, const Placement& made, const Placement& kept,
                              const std::vector<int>& letters) const {
  std::vector<Placement> arriving;
  for (const OutputReader& reader : readers_[op]) {
    const Signature& signature = operators_[reader.op];
    const InputSignature& input = signature.inputs[reader.input];
    if (has_gradient_[reader.op] && input.passes_gradient) {
      add_once(arriving, placement_made(signature, input.dimensions, letters[reader.op], false));
    }
  }
  double sum = exchanged(op, kept, without_partial(made));
  for (const Placement& one : arriving) {
    sum += exchanged(op, one, kept);
  }
  return sum;
}

double LetterCosts::reduction(int op, int letter, const Placement& kept) const {
  const Signature& signature = operators_[op];
  double elements = 0;
  for (const ParameterSignature& parameter : signature.parameters) {
    if (!parameter.trained || parameter.tied_to >= 0) { // its gradient is added to the owner's
      continue;
    }
    const Placement made = parameter.added_last
                               ? placement_beside(signature, parameter.dimensions, kept, Placement::Kind::partial)
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
