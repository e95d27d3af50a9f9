// SPDX-License-Identifier: Apache-2.0
#include "tests/program/meaning.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace stagecraft::testing {
namespace {

using Sum = std::vector<int>; // of terms, in ascending order; one that counts twice stands twice

// Whether an operator adds up what it reads: backward reads nothing again, and all are of the output's shape.
bool only_adds(const Signature& signature) {
  return signature.inputs.size() > 1 && signature.parameters.empty() && signature.reductions.empty() &&
         !signature.reads_inputs && !signature.reads_output &&
         std::all_of(signature.inputs.begin(), signature.inputs.end(),
                     [&](const InputSignature& input) { return input.dimensions == signature.output; });
}

// Numbers for whatever is alike, over all programs that it is asked about.
class Terms {
public:
  int of(const std::vector<int>& key) { return known_.try_emplace(key, static_cast<int>(known_.size())).first->second; }

private:
  std::map<std::vector<int>, int> known_;
};

// A program read with sums of terms in place of numbers.
class Reading {
public:
  Reading(const Program& program, Terms& terms)
      : program_(program), terms_(terms), sums_(program.tensors.size()), is_known_(program.tensors.size(), false) {
    for (const auto* part : {&program.forward, &program.backward, &program.reduction, &program.update}) {
      for (const Step& step : *part) {
        sums_[step.writes] = sum_of(step);
        is_known_[step.writes] = true;
      }
    }
  }

  // Of the loss, of gradients and parameters after the step, and of what experts are chosen by.
  std::vector<Sum> results() {
    std::vector<Sum> all = {sum(program_.values.back())};
    for (const auto* ends : {&program_.reduced, &program_.updated}) {
      for (const std::vector<TensorId>& of_operator : *ends) {
        for (const TensorId id : of_operator) {
          all.push_back(id >= 0 ? sum(id) : Sum{});
        }
      }
    }
    for (const int op : routers()) {
      all.push_back(sum(program_.values[op]));
    }
    return all;
  }

private:
  // What no step has written stands for itself.
  const Sum& sum(TensorId id) {
    if (!is_known_[id]) {
      sums_[id] = {terms_.of({-1, id})};
      is_known_[id] = true;
    }
    return sums_[id];
  }

  // By whose choices rows of experts are sorted.
  std::set<int> routers() const {
    std::set<int> found;
    for (const ProgramTensor& tensor : program_.tensors) {
      const bool sorted = std::any_of(tensor.placements.begin(), tensor.placements.end(),
                                      [](const Placement& placement) { return placement.sorted; });
      if (sorted && tensor.op >= 0) {
        const auto& inputs = program_.operators[tensor.op].inputs;
        found.insert(inputs.size() > 1 ? inputs[1].maker : tensor.op);
      }
    }
    return found;
  }

  // How a tensor lies; tensors of one shape that lie alike have the same number.
  int shape(TensorId id) {
    const ProgramTensor& tensor = program_.tensors[id];
    std::vector<int> key = {-2, static_cast<int>(tensor.role)};
    for (const TensorDimension& dimension : tensor.dimensions) {
      add_sections(dimension.sections, key);
    }
    for (const Placement& placement : tensor.placements) {
      key.insert(key.end(), {-3, static_cast<int>(placement.kind), placement.dimension,
                             placement.sorted ? tensor.op : -1, placement.last ? 1 : 0});
      add_sections(placement.sections, key);
    }
    return terms_.of(key);
  }
  static void add_sections(const std::vector<std::int64_t>& sections, std::vector<int>& key) {
    key.push_back(static_cast<int>(sections.size()));
    std::transform(sections.begin(), sections.end(), std::back_inserter(key),
                   [](std::int64_t section) { return static_cast<int>(section); });
  }

  Sum sum_of(const Step& step) {
    const bool adds = step.op >= 0 && !is_exchange(step.kind) && only_adds(program_.operators[step.op]);
    if (step.kind == StepKind::add || (adds && step.kind == StepKind::forward)) {
      return sum_of_all(step.reads);
    }
    if (adds && step.kind == StepKind::backward_input) {
      return sum(step.reads.front());
    }
    return is_exchange(step.kind) && !step.maximum ? exchanged(step) : Sum{computed(step)};
  }

  static bool is_exchange(StepKind kind) { return is_collective(kind) || kind == StepKind::take_part; }

  Sum sum_of_all(const std::vector<TensorId>& reads) {
    Sum all;
    for (const TensorId id : reads) {
      const Sum& one = sum(id);
      all.insert(all.end(), one.begin(), one.end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  Sum exchanged(const Step& step) {
    const int from = shape(step.reads.front()), to = shape(step.writes);
    Sum made;
    for (const int term : sum(step.reads.front())) {
      made.push_back(terms_.of({static_cast<int>(step.kind), static_cast<int>(step.dimension), from, to, term}));
    }
    std::sort(made.begin(), made.end());
    return made;
  }

  int computed(const Step& step) {
    std::vector<int> key = {-4,         static_cast<int>(step.kind),      step.op,
                            step.index, static_cast<int>(step.dimension), shape(step.writes)};
    for (const TensorId id : step.reads) {
      const Sum& read = sum(id);
      key.insert(key.end(), {shape(id), static_cast<int>(read.size())});
      key.insert(key.end(), read.begin(), read.end());
    }
    return terms_.of(key);
  }

  const Program& program_;
  Terms& terms_;
  std::vector<Sum> sums_; // [tensor]
  std::vector<char> is_known_;
};

} // namespace

bool mean_the_same(const Program& one, const Program& other) {
  Terms terms;
  return Reading(one, terms).results() == Reading(other, terms).results();
}

} // namespace stagecraft::testing
