// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/operator_placements.hpp"

#include <algorithm>
#include <functional>

namespace stagecraft {
namespace {

using Kind = Placement::Kind;

void set_sections(Signature& signature, int letter, const std::vector<std::int64_t>& sections) {
  const auto set = [&](TensorDimensions& dimensions) {
    for (TensorDimension& dimension : dimensions) {
      dimension.sections = dimension.letter == letter ? sections : dimension.sections;
    }
  };
  set(signature.output);
  for (InputSignature& input : signature.inputs) {
    set(input.dimensions);
  }
  for (ParameterSignature& parameter : signature.parameters) {
    set(parameter.dimensions);
  }
}

// Where the operator may hand out a letter of `own` in any order, it takes the sections of its neighbour's dimension.
void take_order(Signature& signature, const TensorDimensions& own, const TensorDimensions& neighbour) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (signature.letters[own[i].letter].any_order && own[i].sections.size() < neighbour[i].sections.size()) {
      set_sections(signature, own[i].letter, neighbour[i].sections);
    }
  }
}

} // namespace

Placement shard_of(const TensorDimensions& dimensions, int dimension) {
  return {Kind::shard, dimension, dimensions[dimension].sections};
}

Placement placement_used(const TensorDimensions& dimensions, int letter) {
  const int dimension = is_letter(letter) ? dimension_of(dimensions, letter) : -1;
  if (dimension < 0) {
    return {};
  }
  Placement placement = shard_of(dimensions, dimension);
  placement.sorted = dimensions[dimension].letter != letter;
  return placement;
}

Placement placement_made(const Signature& signature, const TensorDimensions& dimensions, int letter, bool output) {
  Placement placement = placement_used(dimensions, letter);
  const bool inside = output && is_letter(letter) && signature.letters[letter].along == Along::reduce;
  if ((is_letter(letter) && !placement.is_shard() && !inside) || (output && letter == kTerms)) {
    placement.kind = Kind::partial;
  }
  return placement;
}

Placement placement_read(const InputSignature& input, int letter) {
  return letter == kTerms && input.takes_terms ? Placement{Kind::partial} : placement_used(input.dimensions, letter);
}

Placement placement_passed(const Signature& signature, const InputSignature& input, int letter) {
  return letter == kTermsOfGradient && input.takes_terms ? Placement{Kind::partial}
                                                         : placement_made(signature, input.dimensions, letter, false);
}

Placement placement_of_gradient(const Placement& value, int letter) {
  return letter == kTermsOfGradient ? Placement{Kind::partial} : without_partial(value);
}

Placement without_partial(const Placement& placement) { return placement.is_partial() ? Placement{} : placement; }

Placement agreed_placement(const std::vector<Placement>& needed) {
  const bool alike = std::adjacent_find(needed.begin(), needed.end(), std::not_equal_to<>()) == needed.end();
  return alike && !needed.empty() ? needed.front() : Placement{};
}

Placement placement_beside(const Signature& signature, const TensorDimensions& dimensions, const Placement& value,
                           Kind otherwise) {
  if (!value.is_shard()) {
    return value;
  }
  const TensorDimension& cut = signature.output[value.dimension];
  const int dimension = dimension_of(dimensions, value.sorted ? cut.sorted_by : cut.letter);
  return dimension < 0 ? Placement{otherwise, 0, {}} : shard_of(dimensions, dimension);
}

StepKind way_between(const Placement& from, const Placement& to) {
  if (to.is_partial()) {
    return StepKind::take_part;
  }
  if (from.is_partial()) {
    return to.is_shard() ? StepKind::reduce_scatter : StepKind::all_reduce;
  }
  if (from.is_shard()) {
    return to.is_shard() ? StepKind::all_to_all : StepKind::all_gather;
  }
  return StepKind::take_part;
}

void agree_on_order(std::vector<Signature>& operators) {
  const auto readers = readers_of(operators);
  const int count = static_cast<int>(operators.size());
  for (int op = count - 1; op >= 0; --op) {
    for (const auto& [reader, index] : readers[op]) {
      take_order(operators[op], TensorDimensions(operators[op].output), operators[reader].inputs[index].dimensions);
    }
  }
  for (int op = 0; op < count; ++op) {
    for (const InputSignature& input : std::vector<InputSignature>(operators[op].inputs)) {
      if (input.maker >= 0) {
        take_order(operators[op], input.dimensions, operators[input.maker].output);
      }
    }
  }
}

} // namespace stagecraft
