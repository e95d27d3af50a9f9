// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/program_seconds.hpp"

#include <map>

#include "sim/collective/dispatch.hpp"
#include "sim/plan/program/operator_placements.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

CollectiveKind collective_of(StepKind step) {
  switch (step) {
  case StepKind::reduce_scatter:
    return CollectiveKind::reduce_scatter;
  case StepKind::all_gather:
    return CollectiveKind::all_gather;
  case StepKind::all_to_all:
    return CollectiveKind::all_to_all;
  default:
    return CollectiveKind::all_reduce;
  }
}

Shard shard_of_operator(const Signature& signature, int letter, int degree) {
  if (!is_letter(letter)) {
    return {};
  }
  const auto part = [&](const TensorDimensions& dimensions) {
    return placement_used(dimensions, letter).is_shard() ? 1.0 / degree : 1.0;
  };
  double all = 0;
  double touched = 0;
  for (const InputSignature& input : signature.inputs) {
    all += elements_of(input.dimensions);
    touched += elements_of(input.dimensions) * part(input.dimensions);
  }
  all += elements_of(signature.output);
  touched += elements_of(signature.output) * part(signature.output);
  return {degree, touched / all, signature.letters[static_cast<std::size_t>(letter)].along == Along::sum};
}

Collective collective_on(CollectiveKind kind, const Group& group, Bytes tensor) {
  const bool own = kind == CollectiveKind::all_to_all || is_of_tokens(kind);
  return {kind, group, own ? tensor / group.ranks : tensor};
}

Seconds exchange_seconds(CollectiveKind kind, const TensorDimensions& dimensions, Bytes element,
                         const StepTimes& times) {
  return seconds_of(collective_on(kind, times.group, element * (elements_of(dimensions) * times.samples)));
}

Seconds reduction_seconds(double elements, const StepTimes& times) {
  if (elements == 0) {
    return Seconds{0};
  }
  const Collective sum{CollectiveKind::all_reduce, times.group, times.gradient * elements};
  return Seconds{seconds_of(sum).value / times.micro_batches};
}

Seconds program_seconds(const Program& program, const SharedLetters& shared, const StepTimes& times) {
  Seconds sum;
  for (std::size_t op = 0; op < program.operators.size(); ++op) {
    const Shard shard = shard_of_operator(program.operators[op], shared[op].front(), times.group.ranks);
    sum += times.computation(static_cast<int>(op), shard);
  }
  for (const auto* pass : {&program.forward, &program.backward}) {
    for (const Step& step : *pass) {
      if (is_collective(step.kind)) {
        const ProgramTensor& tensor = program.tensors[step.reads.front()];
        const Bytes element{tensor.role == ProgramTensor::Role::reduction ? row_of(Precision::fp32).bytes
                                                                          : times.element.value};
        sum += exchange_seconds(collective_of(step.kind), tensor.dimensions, element, times);
      }
    }
  }
  std::map<int, double> reduced; // [operator]: elements
  for (const Step& step : program.reduction) {
    if (is_collective(step.kind)) {
      const ProgramTensor& gradient = program.tensors[step.reads.front()];
      reduced[gradient.op] += local_elements(gradient, program.layout);
    }
  }
  for (const auto& [op, elements] : reduced) {
    sum += reduction_seconds(elements, times);
  }
  return sum;
}

} // namespace stagecraft
