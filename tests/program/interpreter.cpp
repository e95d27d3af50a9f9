// SPDX-License-Identifier: Apache-2.0
#include "tests/program/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "sim/plan/program/operator_placements.hpp"

namespace stagecraft::testing {
namespace {

using Sections = std::vector<std::int64_t>;

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// The indices of part `part` of `parts` of a dimension whose sections are these.
std::vector<std::int64_t> indices_of(const Sections& sections, int part, int parts) {
  std::vector<std::int64_t> indices;
  std::int64_t begin = 0;
  for (const std::int64_t section : sections) {
    if (section % parts != 0) {
      throw std::runtime_error("a section does not divide");
    }
    for (std::int64_t i = 0; i < section / parts; ++i) {
      indices.push_back(begin + part * (section / parts) + i);
    }
    begin += section;
  }
  return indices;
}

// Calls action(whole index, part index) for every number of a part that holds `indices` of a dimension.
template <class Action>
void for_part(const std::vector<std::int64_t>& sizes, int dimension, const std::vector<std::int64_t>& indices,
              const Action& action) {
  const std::int64_t inner = product({sizes.begin() + dimension + 1, sizes.end()});
  const std::int64_t outer = product({sizes.begin(), sizes.begin() + dimension});
  const auto width = static_cast<std::int64_t>(indices.size());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t n = 0; n < inner; ++n) {
        action((o * sizes[dimension] + indices[i]) * inner + n, (o * width + i) * inner + n);
      }
    }
  }
}

void check_dimension(const Numbers& numbers, int dimension) {
  if (dimension >= static_cast<int>(numbers.sizes.size())) {
    throw std::runtime_error("a tensor lacks the dimension that is cut");
  }
}

Numbers cut(const Numbers& whole, int dimension, const Sections& sections, int part, int parts) {
  check_dimension(whole, dimension);
  const auto indices = indices_of(sections, part, parts);
  if (std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) != whole.sizes[dimension]) {
    throw std::runtime_error("sections do not fit the dimension");
  }
  Numbers result = whole;
  result.sizes[dimension] = static_cast<std::int64_t>(indices.size());
  result.values.resize(product(result.sizes));
  for_part(whole.sizes, dimension, indices, [&](auto from, auto to) { result.values[to] = whole.values[from]; });
  return result;
}

// The whole of parts, in their order.
Numbers join(const std::vector<const Numbers*>& parts, int dimension, const Sections& sections) {
  check_dimension(*parts.front(), dimension);
  Numbers whole = *parts.front();
  whole.sizes[dimension] = std::accumulate(sections.begin(), sections.end(), std::int64_t{0});
  whole.values.assign(product(whole.sizes), 0);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto indices = indices_of(sections, static_cast<int>(part), static_cast<int>(parts.size()));
    if (parts[part]->sizes != parts.front()->sizes ||
        static_cast<std::int64_t>(indices.size()) != parts[part]->sizes[dimension]) {
      throw std::runtime_error("parts do not fit");
    }
    for_part(whole.sizes, dimension, indices,
             [&](auto to, auto from) { whole.values[to] = parts[part]->values[from]; });
  }
  return whole;
}

Numbers combine(const std::vector<const Numbers*>& terms, bool maximum) {
  Numbers result = *terms.front();
  for (std::size_t i = 1; i < terms.size(); ++i) {
    if (terms[i]->sizes != result.sizes) {
      throw std::runtime_error("terms do not fit");
    }
    for (std::size_t n = 0; n < result.values.size(); ++n) {
      const double other = terms[i]->values[n];
      result.values[n] = maximum ? std::max(result.values[n], other) : result.values[n] + other;
    }
  }
  return result;
}

class Run {
public:
  Run(const Program& program, const Inputs& inputs)
      : program_(program), inputs_(inputs), ranks_(program.layout.ranks()),
        local_(ranks_, std::vector<std::optional<Numbers>>(program.tensors.size())) {
    sorts_.assign(program.layout.dimensions.size(), 0);
    for (const ProgramTensor& tensor : program.tensors) {
      for (std::size_t axis = 0; axis < tensor.placements.size(); ++axis) {
        sorts_[axis] = tensor.placements[axis].sorted ? char{1} : sorts_[axis];
      }
    }
    for (const Signature& signature : program.operators) {
      for (const Letter& letter : signature.letters) {
        experts_ = letter.name == kExperts ? std::max(experts_, letter.pieces) : experts_;
      }
    }
  }

  Outcome run() {
    try {
      hand_out();
      used_ = tensors_used();
      for (const auto* steps : {&program_.forward, &program_.backward, &program_.reduction, &program_.update}) {
        done_.clear();
        for (const Step& step : *steps) {
          if (is_collective(step.kind) || step.kind == StepKind::take_part) {
            exchange(step);
          } else {
            compute(step);
          }
        }
      }
      collect();
    } catch (const std::runtime_error& error) {
      outcome_.defects.emplace_back(error.what());
    }
    return std::move(outcome_);
  }

private:
  const ProgramTensor& tensor(TensorId id) const { return program_.tensors[id]; }

  // [tensor]: whether a step reads it, or it is a result.
  std::vector<char> tensors_used() const {
    std::vector<char> used(program_.tensors.size(), 0);
    const auto use = [&](const std::vector<TensorId>& ids) {
      for (const TensorId id : ids) {
        used[static_cast<std::size_t>(std::max(0, id))] |= id >= 0 ? 1 : 0;
      }
    };
    for (const auto* steps : {&program_.forward, &program_.backward, &program_.reduction, &program_.update}) {
      for (const Step& step : *steps) {
        use(step.reads);
      }
    }
    for (const auto* lists : {&program_.reduced, &program_.updated}) {
      std::for_each(lists->begin(), lists->end(), use);
    }
    use({program_.values.back()});
    return used;
  }

  // Sections of a dimension of a tensor after those dimensions of the layout have cut it that cut before this one.
  Sections sections_before(const ProgramTensor& tensor, std::size_t own, const Placement& placement) const {
    Sections sections = placement.sections;
    for (std::size_t axis = 0; axis < tensor.placements.size(); ++axis) {
      const Placement& other = tensor.placements[axis];
      const bool before = placement.last ? axis != own && !other.last : axis < own && !other.last;
      if (before && other.is_shard() && !other.sorted && other.dimension == placement.dimension) {
        for (std::int64_t& section : sections) {
          section /= program_.layout.dimensions[axis].size;
        }
      }
    }
    return sections;
  }

  // The same where those that cut after it have cut already: rows come from experts so, or go there.
  Sections sections_between(const ProgramTensor& tensor, std::size_t own, const Placement& placement) const {
    Sections sections = sections_before(tensor, own, placement);
    for (std::size_t axis = own + 1; axis < tensor.placements.size(); ++axis) {
      const Placement& other = tensor.placements[axis];
      if (!placement.last && other.is_shard() && !other.sorted && !other.last &&
          other.dimension == placement.dimension) {
        for (std::int64_t& section : sections) {
          section /= program_.layout.dimensions[axis].size;
        }
      }
    }
    return sections;
  }

  // The dimensions of the layout as they cut a tensor.
  static std::vector<std::size_t> in_order(const ProgramTensor& tensor) {
    std::vector<std::size_t> order(tensor.placements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_partition(order.begin(), order.end(), [&](std::size_t axis) { return !tensor.placements[axis].last; });
    return order;
  }

  Numbers part_of(const Numbers& whole, const ProgramTensor& tensor, int rank) const {
    Numbers part = whole;
    for (const std::size_t axis : in_order(tensor)) {
      const Placement& placement = tensor.placements[axis];
      if (placement.is_shard()) {
        part = cut(part, placement.dimension, sections_before(tensor, axis, placement),
                   program_.layout.coordinate(rank, axis), program_.layout.dimensions[axis].size);
      }
    }
    return part;
  }

  // Parameters, data and the gradient of what no one reads, which are there from the start.
  void hand_out() {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::size_t id = 0; id < program_.tensors.size(); ++id) {
        const ProgramTensor& tensor = program_.tensors[id];
        if (tensor.role == ProgramTensor::Role::parameter && owned(id)) {
          local_[rank][id] = part_of(inputs_.parameters.at({tensor.op, tensor.index}), tensor, rank);
        } else if (tensor.role == ProgramTensor::Role::value && tensor.op < 0) {
          local_[rank][id] = part_of(inputs_.data.at(tensor.index), tensor, rank);
        } else if (tensor.role == ProgramTensor::Role::gradient && tensor.index == 1) {
          std::vector<std::int64_t> sizes;
          for (const TensorDimension& dimension : tensor.dimensions) {
            sizes.push_back(dimension.size());
          }
          Numbers ones = zeros(sizes);
          std::fill(ones.values.begin(), ones.values.end(), 1.0);
          local_[rank][id] = part_of(ones, tensor, rank);
        }
      }
    }
  }

  // A parameter as it lies from the start, not what a step makes of it.
  bool owned(std::size_t id) const {
    const ProgramTensor& tensor = program_.tensors[id];
    return program_.parameters[tensor.op][tensor.index] == static_cast<TensorId>(id);
  }

  const Numbers& read(int rank, TensorId id) const {
    if (!local_[rank][id]) {
      throw std::runtime_error("tensor " + std::to_string(id) + " is read before it is made");
    }
    return *local_[rank][id];
  }

  void write(int rank, TensorId id, Numbers numbers) {
    double elements = local_elements(tensor(id), program_.layout);
    for (std::size_t axis = 0; axis < tensor(id).placements.size(); ++axis) {
      elements *=
          tensor(id).placements[axis].sorted ? program_.layout.dimensions[axis].size : 1; // zeros for the others'
    }
    if (static_cast<double>(numbers.values.size()) != elements) {
      throw std::runtime_error("tensor " + std::to_string(id) + " has another size than the program says");
    }
    local_[rank][id] = std::move(numbers);
  }

  void exchange(const Step& step) {
    const std::size_t axis = step.dimension;
    std::vector<Numbers> results(ranks_);
    bool known = true;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<const Numbers*> all;
      for (const int peer : peers_of(program_.layout, axis, rank)) {
        all.push_back(&read(peer, step.reads.front()));
      }
      results[rank] = received(step, all, rank);
      known = known && relative_error(results[rank], read(rank, step.reads.front())) == 0;
    }
    if (is_collective(step.kind)) {
      const bool is_new = done_.emplace(step.kind, step.dimension, step.reads.front()).second;
      if (known || !is_new || used_[step.writes] == 0) {
        outcome_.redundant.push_back(collectives_);
      }
      ++collectives_;
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      write(rank, step.writes, std::move(results[rank]));
    }
  }

  Numbers received(const Step& step, const std::vector<const Numbers*>& all, int rank) {
    const int mine = program_.layout.coordinate(rank, step.dimension);
    const ProgramTensor& from = tensor(step.reads.front());
    const ProgramTensor& to = tensor(step.writes);
    const Placement& before = from.placements[step.dimension];
    const Placement& after = to.placements[step.dimension];
    const int parts = static_cast<int>(all.size());
    const auto cut_mine = [&](const Numbers& whole) {
      return after.sorted ? of_own_experts(whole, to, step.dimension, rank)
                          : cut(whole, after.dimension, sections_between(to, step.dimension, after), mine, parts);
    };
    const auto joined = [&] {
      return before.sorted ? combine(all, false)
                           : join(all, before.dimension, sections_between(from, step.dimension, before));
    };
    switch (step.kind) {
    case StepKind::all_reduce:
      return combine(all, step.maximum);
    case StepKind::reduce_scatter:
      return cut_mine(combine(all, false));
    case StepKind::all_gather:
      return joined();
    case StepKind::all_to_all:
      return cut_mine(joined());
    default:
      return after.is_partial() ? term_of(from, step.dimension, all, mine) : cut_mine(*all[mine]);
    }
  }

  // A rank's term of a tensor, made of its own numbers alone.
  Numbers term_of(const ProgramTensor& from, std::size_t axis, const std::vector<const Numbers*>& all, int mine) const {
    const Placement& before = from.placements[axis];
    if (!before.is_shard()) {
      return mine == 0 ? *all[mine] : zeros(all[mine]->sizes);
    }
    if (before.sorted) {
      return *all[mine]; // it has zeros for the others' rows
    }
    const Numbers nothing = zeros(all[mine]->sizes);
    std::vector<const Numbers*> parts(all.size(), &nothing);
    parts[static_cast<std::size_t>(mine)] = all[mine];
    return join(parts, before.dimension, sections_before(from, axis, before));
  }

  // The router by whose choices rows go to experts: the operator itself, or whose choices it reads.
  int router_of(int op) const {
    const auto& inputs = program_.operators[op].inputs;
    return inputs.size() > 1 ? inputs[1].maker : op;
  }

  // Rows, or choices, of experts that this rank has along a dimension of the layout, with those of others as zeros, or
  // as choices of no expert. Tensors keep their size: what matters is whose numbers a rank knows.
  Numbers of_own_experts(Numbers numbers, const ProgramTensor& tensor, std::size_t dimension, int rank) {
    const Numbers choices = choices_of(tensor, rank);
    const std::int64_t width = static_cast<std::int64_t>(numbers.values.size()) / product(choices.sizes);
    if (width * product(choices.sizes) != static_cast<std::int64_t>(numbers.values.size())) {
      throw std::runtime_error("rows do not fit their choices");
    }
    const bool is_choice = tensor.op == router_of(tensor.op) && tensor.role == ProgramTensor::Role::value;
    for (std::size_t i = 0; i < choices.values.size(); ++i) {
      if (!has_expert(choices.values[i], dimension, rank)) {
        std::fill_n(numbers.values.begin() + static_cast<std::ptrdiff_t>(i) * width, width, is_choice ? -1.0 : 0.0);
      }
    }
    return numbers;
  }

  // The choices of which a rank has the rows of such a tensor, or zeros for them.
  Numbers choices_of(const ProgramTensor& tensor, int rank) {
    const int router = router_of(tensor.op);
    const auto [known, is_new] = choices_.try_emplace(router);
    if (is_new) {
      known->second = whole(program_.values[router]);
    }
    ProgramTensor as_choices = program_.tensors[program_.values[router]];
    as_choices.placements = tensor.placements;
    for (Placement& placement : as_choices.placements) {
      const bool cuts_choices = placement.is_shard() && !placement.sorted && placement.dimension < 2;
      placement = cuts_choices ? placement : Placement{};
      for (std::int64_t& section : placement.sections) { // of rows, of which a token has several
        section =
            section * as_choices.dimensions[placement.dimension].size() / tensor.dimensions[placement.dimension].size();
      }
    }
    return part_of(known->second, as_choices, rank);
  }

  // Whether the expert of a choice is among this rank's by its coordinate of a dimension of the layout: all dimensions
  // that share experts divide them, the outer first.
  bool has_expert(double choice, std::size_t dimension, int rank) const {
    std::int64_t experts = experts_;
    for (std::size_t axis = 0; axis <= dimension; ++axis) {
      experts /= sorts_[axis] != 0 ? program_.layout.dimensions[axis].size : 1;
    }
    const auto expert = static_cast<std::int64_t>(std::floor(choice));
    return expert / experts % program_.layout.dimensions[dimension].size == program_.layout.coordinate(rank, dimension);
  }

  // The numbers that a computation reads, sorted by what they are.
  Reads sort(const Step& step, int rank) const {
    Reads reads;
    const auto& inputs = program_.operators[step.op].inputs;
    for (const TensorId id : step.reads) {
      const Numbers& numbers = read(rank, id);
      switch (tensor(id).role) {
      case ProgramTensor::Role::gradient:
        reads.gradient = &numbers;
        break;
      case ProgramTensor::Role::parameter:
        reads.parameters.push_back(&numbers);
        break;
      case ProgramTensor::Role::reduction:
        reads.reductions.push_back(&numbers);
        break;
      default:
        reads.inputs.push_back(&numbers);
      }
      if (tensor(id).role == ProgramTensor::Role::parameter && !program_.operators[step.op].parameters.empty()) {
        reads.first_expert = std::max(reads.first_expert, first_index(step.op, tensor(id), rank, kExperts));
      }
      const bool words = tensor(id).role == ProgramTensor::Role::parameter || tensor(id).dimensions.size() == 3;
      if (words && !inputs.empty()) {
        reads.first_word = std::max(reads.first_word, first_index(step.op, tensor(id), rank, "words"));
      }
      if (tensor(id).role == ProgramTensor::Role::value && reads.inputs.size() == 1) { // the first input's
        reads.first_token = first_index(step.op, tensor(id), rank, kTokens);
      }
    }
    return reads;
  }

  // Where this rank's part of a letter begins in a tensor; outer dimensions of the layout cut it first.
  std::int64_t first_index(int op, const ProgramTensor& tensor, int rank, std::string_view name) const {
    std::int64_t first = 0, size = 0;
    for (std::size_t axis = 0; axis < tensor.placements.size(); ++axis) {
      const Placement& placement = tensor.placements[axis];
      if (placement.is_shard() &&
          program_.operators[op].letters[letter_of(op, tensor, placement.dimension)].name == name) {
        size = (size > 0 ? size : placement.sections.front()) / program_.layout.dimensions[axis].size;
        first += program_.layout.coordinate(rank, axis) * size;
      }
    }
    return first;
  }

  // The letter by which the operator knows a dimension of a tensor that it reads.
  int letter_of(int op, const ProgramTensor& tensor, int dimension) const {
    const Signature& signature = program_.operators[op];
    if (tensor.role == ProgramTensor::Role::parameter && !signature.parameters.empty()) {
      return signature.parameters.front().dimensions[dimension].letter;
    }
    const bool of_output = tensor.role == ProgramTensor::Role::gradient;
    return (of_output ? signature.output : signature.inputs.front().dimensions)[dimension].letter;
  }

  void compute(const Step& step) {
    for (int rank = 0; rank < ranks_; ++rank) {
      write(rank, step.writes, computed(step, rank));
    }
  }

  // An operator finds its inputs in backward as it did in forward, whether or not it needs their numbers.
  Reads with_same_inputs(Reads reads, int op, int rank) {
    if (!program_.operators[op].reads_inputs) {
      return reads;
    }
    std::vector<std::vector<std::int64_t>> sizes;
    for (const Numbers* input : reads.inputs) {
      sizes.push_back(input->sizes);
    }
    const auto [forward, is_new] = inputs_read_.try_emplace({op, rank}, sizes);
    const std::size_t both = std::min(sizes.size(), forward->second.size()); // backward may read the output too
    if (!is_new && !std::equal(sizes.begin(), sizes.begin() + both, forward->second.begin())) {
      throw std::runtime_error("an operator reads an input otherwise in backward than in forward");
    }
    return reads;
  }

  Numbers computed(const Step& step, int rank) {
    if (step.kind == StepKind::add) {
      return combine({&read(rank, step.reads[0]), &read(rank, step.reads[1])}, false);
    }
    if (step.kind == StepKind::step) {
      return stepped(read(rank, step.reads[0]), read(rank, step.reads[1]));
    }
    const Math& math = inputs_.maths[step.op];
    switch (step.kind) {
    case StepKind::forward:
      return math.forward(with_same_inputs(sort(step, rank), step.op, rank));
    case StepKind::reduced:
      return math.reduced(sort(step, rank), step.index);
    case StepKind::backward_input:
      return math.backward_input(with_same_inputs(sort(step, rank), step.op, rank), step.index);
    case StepKind::add_last:
      if (has_experts(step.op)) {
        Numbers value = read(rank, step.reads[0]);
        const ProgramTensor& bias = tensor(step.reads[1]);
        for_each_row(tensor(step.reads[0]), bias, rank, value.values.size(),
                     [&](std::size_t at, std::size_t of) { value.values[at] += read(rank, step.reads[1]).values[of]; });
        return value;
      }
      return add_last(read(rank, step.reads[0]), read(rank, step.reads[1]));
    default:
      break;
    }
    const bool last = program_.operators[step.op].parameters[step.index].added_last;
    if (last && has_experts(step.op)) {
      const Numbers& gradient = read(rank, step.reads.front());
      Numbers sum = zeros(local_sizes(tensor(step.writes)));
      for_each_row(tensor(step.reads.front()), tensor(step.writes), rank, gradient.values.size(),
                   [&](std::size_t at, std::size_t of) { sum.values[of] += gradient.values[at]; });
      return sum;
    }
    return last ? summed(read(rank, step.reads.front()), tensor(step.writes))
                : math.backward_weight(sort(step, rank), step.index);
  }

  bool has_experts(int op) const {
    const auto& letters = program_.operators[op].letters;
    return std::any_of(letters.begin(), letters.end(), [](const Letter& one) { return one.name == kExperts; });
  }

  std::vector<std::int64_t> local_sizes(const ProgramTensor& tensor) const {
    std::vector<std::int64_t> sizes;
    for (std::size_t at = 0; at < tensor.dimensions.size(); ++at) {
      std::int64_t size = tensor.dimensions[at].size();
      for (std::size_t axis = 0; axis < tensor.placements.size(); ++axis) {
        const Placement& placement = tensor.placements[axis];
        size /= placement.is_shard() && placement.dimension == static_cast<int>(at)
                    ? program_.layout.dimensions[axis].size
                    : 1;
      }
      sizes.push_back(size);
    }
    return sizes;
  }

  // Numbers of rows of a rank's own experts, and those of these experts' biases that belong to them.
  template <class Use>
  void for_each_row(const ProgramTensor& rows, const ProgramTensor& bias, int rank, std::size_t numbers,
                    const Use& use) {
    const Numbers choices = choices_of(rows, rank);
    const std::size_t width = numbers / choices.values.size();
    std::int64_t first = 0;
    for (std::size_t axis = 0, experts = static_cast<std::size_t>(experts_); axis < bias.placements.size(); ++axis) {
      const Placement& placement = bias.placements[axis];
      if (placement.is_shard() && placement.dimension == 0) {
        experts /= static_cast<std::size_t>(program_.layout.dimensions[axis].size);
        first += program_.layout.coordinate(rank, axis) * static_cast<std::int64_t>(experts);
      }
    }
    const std::int64_t own = local_sizes(bias).front();
    for (std::size_t row = 0; row < choices.values.size(); ++row) {
      const auto expert = static_cast<std::int64_t>(std::floor(choices.values[row])) - first;
      for (std::size_t i = 0; expert >= 0 && expert < own && i < width; ++i) {
        use(row * width + i, static_cast<std::size_t>(expert) * width + i);
      }
    }
  }

  // Plain gradient descent.
  static Numbers stepped(Numbers parameter, const Numbers& gradient) {
    constexpr double kRate = 0.5;
    if (parameter.sizes != gradient.sizes) {
      throw std::runtime_error("a parameter and its gradient lie otherwise");
    }
    for (std::size_t i = 0; i < parameter.values.size(); ++i) {
      parameter.values[i] -= kRate * gradient.values[i];
    }
    return parameter;
  }

  // A parameter added to the last dimensions of a value, for every index of the others.
  static Numbers add_last(Numbers value, const Numbers& parameter) {
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      value.values[i] += parameter.values[i % parameter.values.size()];
    }
    return value;
  }

  static Numbers summed(const Numbers& gradient, const ProgramTensor& parameter) {
    Numbers sum =
        zeros({gradient.sizes.end() - static_cast<std::ptrdiff_t>(parameter.dimensions.size()), gradient.sizes.end()});
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      sum.values[i % sum.values.size()] += gradient.values[i];
    }
    return sum;
  }

  // Puts the gradients together; ranks that should have the same must have the same.
  void collect() {
    for (std::size_t op = 0; op < program_.reduced.size(); ++op) {
      for (std::size_t i = 0; i < program_.reduced[op].size(); ++i) {
        if (program_.reduced[op][i] >= 0) {
          outcome_.gradients[{static_cast<int>(op), static_cast<int>(i)}] = whole(program_.reduced[op][i]);
        }
      }
    }
    for (std::size_t op = 0; op < program_.updated.size(); ++op) {
      for (std::size_t i = 0; i < program_.updated[op].size(); ++i) {
        if (program_.updated[op][i] >= 0) {
          outcome_.updated[{static_cast<int>(op), static_cast<int>(i)}] = whole(program_.updated[op][i]);
        }
      }
    }
    outcome_.loss = whole(program_.values.back());
  }

  Numbers whole(TensorId id) {
    const ProgramTensor& tensor = program_.tensors[id];
    std::vector<Numbers> now;
    for (int rank = 0; rank < ranks_; ++rank) {
      now.push_back(read(rank, id));
    }
    const std::vector<std::size_t> order = in_order(tensor);
    for (std::size_t at = order.size(); at-- > 0;) {
      const std::size_t axis = order[at];
      const Placement& placement = tensor.placements[axis];
      std::vector<Numbers> next;
      for (int rank = 0; rank < ranks_; ++rank) {
        std::vector<const Numbers*> all;
        for (const int peer : peers_of(program_.layout, axis, rank)) {
          all.push_back(&now[peer]);
        }
        next.push_back(placement.sorted       ? combine(all, false)
                       : placement.is_shard() ? join(all, placement.dimension, sections_before(tensor, axis, placement))
                                              : now[rank]);
        if (placement.is_partial()) {
          outcome_.defects.push_back("tensor " + std::to_string(id) + " is still in terms");
        }
        if (!placement.is_shard() && relative_error(*all.front(), now[rank]) > 1e-12) {
          outcome_.defects.push_back("ranks disagree on tensor " + std::to_string(id));
        }
      }
      now = std::move(next);
    }
    return now.front();
  }

  const Program& program_;
  const Inputs& inputs_;
  int ranks_;
  std::vector<std::vector<std::optional<Numbers>>> local_; // [rank][tensor]
  Outcome outcome_;
  std::map<std::pair<int, int>, std::vector<std::vector<std::int64_t>>> inputs_read_; // [operator, rank]: sizes
  std::size_t collectives_ = 0;
  std::set<std::tuple<StepKind, std::size_t, TensorId>> done_; // in this pass: kind and dimension, of which tensor
  std::vector<char> used_;
  std::int64_t experts_ = 0;       // of a mixture
  std::vector<char> sorts_;        // [dimension of the layout]: shares experts
  std::map<int, Numbers> choices_; // [router]
};

} // namespace

Numbers zeros(const std::vector<std::int64_t>& sizes) { return {sizes, std::vector<double>(product(sizes), 0.0)}; }

double norm_of(const Numbers& numbers) {
  return std::sqrt(std::inner_product(numbers.values.begin(), numbers.values.end(), numbers.values.begin(), 0.0));
}

double relative_error(const Numbers& left, const Numbers& right) {
  if (left.sizes != right.sizes) {
    return std::numeric_limits<double>::infinity();
  }
  Numbers difference = left;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    difference.values[i] -= right.values[i];
  }
  const double norm = norm_of(right);
  return norm > 0 ? norm_of(difference) / norm : norm_of(difference);
}

Outcome run(const Program& program, const Inputs& inputs) { return Run(program, inputs).run(); }

} // namespace stagecraft::testing
