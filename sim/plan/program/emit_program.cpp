// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/emit_program.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/plan/program/operator_placements.hpp"

namespace stagecraft {
namespace {

using Role = ProgramTensor::Role;
using Kind = Placement::Kind;

class Emitter {
public:
  Emitter(std::vector<Signature> operators, const SharedLetters& shared, const Layout& layout,
          std::optional<SharedParameters> parameters)
      : shared_(shared), sharing_(parameters) {
    program_.layout = layout;
    program_.operators = std::move(operators);
    axes_ = layout.dimensions.size();
    agree_on_order(program_.operators);
    readers_ = readers_of(program_.operators);
  }

  Program emit() {
    place_parameters();
    steps_ = &program_.forward;
    for (int op = 0; op < count(); ++op) {
      forward(op);
    }
    steps_ = &program_.backward;
    forget_gathered();
    for (int op = count() - 1; op >= 0; --op) {
      backward(op);
    }
    steps_ = &program_.reduction;
    reduce_gradients();
    if (sharing_) {
      steps_ = &program_.update;
      update();
    }
    return std::move(program_);
  }

private:
  using Conversion = std::tuple<TensorId, std::size_t, Kind, int, std::vector<std::int64_t>, bool, bool>;
  static Conversion key_of(TensorId from, std::size_t axis, const Placement& to) {
    return {from, axis, to.kind, to.dimension, to.sections, to.sorted, to.last};
  }

  int count() const { return static_cast<int>(program_.operators.size()); }
  const Signature& signature(int op) const { return program_.operators[op]; }
  ProgramTensor& tensor(TensorId id) { return program_.tensors[id]; }

  TensorId make(Role role, int op, int index, TensorDimensions dimensions, Placements placements) {
    program_.tensors.push_back({role, op, index, std::move(dimensions), std::move(placements)});
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }

  // A value gathered for forward is gathered again for backward. What ranks that share tokens have exchanged among all
  // is kept instead of what it was made of, which has the same size.
  void forget_gathered() {
    std::erase_if(converted_, [&](const auto& one) {
      const auto& [from, axis, kind, dimension, sections, is_sorted, is_last] = one.first;
      const Placement& made_of = tensor(from).placements[axis];
      const bool of_tensor_rank =
          program_.layout.dimensions[axis].axis == Axis::tensor && !is_sorted && !made_of.sorted;
      return of_tensor_rank || kind != Kind::shard || !made_of.is_shard();
    });
  }

  // How an operator reads or keeps a tensor of these dimensions.
  Placements used(int op, const TensorDimensions& dimensions) const {
    Placements placements(axes_);
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      placements[axis] = along(axis, placement_used(dimensions, shared_[op][axis]), dimensions, op);
    }
    return by_ranks_of_rows(placements);
  }

  Placements read_as(int op, const InputSignature& input) const {
    Placements placements(axes_);
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      placements[axis] = along(axis, placement_read(input, shared_[op][axis]), input.dimensions, op);
    }
    return by_ranks_of_rows(placements);
  }

  Placements passed(int op, const InputSignature& input) const {
    Placements placements(axes_);
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      const Placement one = placement_passed(signature(op), input, shared_[op][axis]);
      placements[axis] = along(axis, one, input.dimensions, op);
    }
    return by_ranks_of_rows(placements);
  }

  // How an operator takes its output's gradient, where the output lies so.
  Placements of_gradient(int op, Placements value) const {
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      value[axis] = placement_of_gradient(value[axis], shared_[op][axis]);
    }
    return value;
  }

  // Ranks that exchange tokens for heads divide those that a tensor rank has.
  Placement along(std::size_t axis, Placement placement, const TensorDimensions& dimensions, int op) const {
    if (placement.is_shard() && program_.layout.dimensions[axis].axis == Axis::heads) {
      const std::string& letter = signature(op).letters[dimensions[placement.dimension].letter].name;
      placement.last = letter != kTokens && letter != kExperts;
    }
    return placement;
  }

  bool shares_tokens(std::size_t axis) const {
    const Axis of = program_.layout.dimensions[axis].axis;
    return of == Axis::context || of == Axis::heads;
  }

  // Where ranks that share tokens hold rows of their experts instead, an axis inside them cuts the rows of each of
  // these ranks, whose order they keep. `now` says which do.
  Placements by_ranks_of_rows(Placements placements, const Placements& now) const {
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      Placement& inner = placements[axis];
      for (std::size_t outer = 0; outer < axis && inner.is_shard() && !inner.sorted && !inner.last; ++outer) {
        if (shares_tokens(outer) && now[outer].is_shard() && !now[outer].last &&
            now[outer].dimension == inner.dimension) {
          const std::int64_t all = std::accumulate(inner.sections.begin(), inner.sections.end(), std::int64_t{0});
          inner.sections.assign(static_cast<std::size_t>(senders_of_rows(now, axis)), all / senders_of_rows(now, axis));
        }
      }
    }
    return placements;
  }
  Placements by_ranks_of_rows(const Placements& placements) const { return by_ranks_of_rows(placements, placements); }

  // Ranks that share tokens, outside of an axis, of which each has sent rows to the ranks of their experts.
  int senders_of_rows(const Placements& now, std::size_t axis) const {
    int senders = 1;
    for (std::size_t outer = 0; outer < axis; ++outer) {
      senders *= shares_tokens(outer) && now[outer].sorted ? program_.layout.dimensions[outer].size : 1;
    }
    return senders;
  }

  Placements made(int op, const TensorDimensions& dimensions, bool output) const {
    Placements placements(axes_);
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      placements[axis] =
          along(axis, placement_made(signature(op), dimensions, shared_[op][axis], output), dimensions, op);
    }
    return by_ranks_of_rows(placements);
  }

  // The tensor with other placements.
  TensorId convert(TensorId from, const Placements& to) {
    for (;;) {
      const Placements there = by_ranks_of_rows(to, tensor(from).placements);
      auto axis = gathered_before(from, there);
      axis = axis ? axis : next_to_convert(tensor(from).placements, there);
      if (!axis) {
        return from;
      }
      from = step_to(from, *axis, there[*axis]);
    }
  }

  // The innermost axis along which another reader has had the tensor gathered, as this one needs it.
  std::optional<std::size_t> gathered_before(TensorId from, const Placements& to) const {
    for (std::size_t axis = axes_; axis-- > 0;) {
      const Placements& now = program_.tensors[from].placements;
      if (now[axis].is_shard() && to[axis].kind == Kind::replicate &&
          converted_.contains(key_of(from, axis, to[axis]))) {
        return axis;
      }
    }
    return std::nullopt;
  }

  // Rows go to the ranks of their experts first, so that a rank sends only its own; then what is gathered is, from the
  // inside; and of all else outer dimensions are put right first. A dimension of a tensor is not given up while another
  // that cuts after it still cuts it, but rows of experts need no order.
  std::optional<std::size_t> next_to_convert(const Placements& now, const Placements& to) const {
    enum { sends, gathers, rest };
    std::optional<std::size_t> first;
    for (const auto turn : {sends, gathers, rest}) {
      for (std::size_t i = 0; i < axes_; ++i) {
        const std::size_t axis = turn == gathers ? axes_ - 1 - i : i;
        const bool is_gathered = way_between(now[axis], to[axis]) == StepKind::all_gather;
        const bool is_sent = to[axis].sorted && !now[axis].is_partial();
        if (now[axis] == to[axis] || turn != (is_sent ? sends : is_gathered ? gathers : rest)) {
          continue;
        }
        if (!is_cut_after(now, axis)) {
          return axis;
        }
        first = first ? first : axis;
      }
      if (turn == sends && first) {
        return first;
      }
    }
    return first;
  }

  // Whether another dimension of the layout divides what this one has cut. Rows of experts are no parts in an order.
  bool is_cut_after(const Placements& now, std::size_t axis) const {
    for (std::size_t other = 0; other < axes_ && now[axis].is_shard() && !now[axis].sorted; ++other) {
      const bool after = now[other].last != now[axis].last ? now[other].last : other > axis;
      if (after && now[other].is_shard() && !now[other].sorted && now[other].dimension == now[axis].dimension) {
        return true;
      }
    }
    return false;
  }

  TensorId step_to(TensorId from, std::size_t axis, const Placement& to) {
    const auto [known, is_new] = converted_.try_emplace(key_of(from, axis, to), -1);
    if (is_new) {
      ProgramTensor changed = tensor(from);
      const StepKind kind = way_between(changed.placements[axis], to);
      changed.placements[axis] = to;
      changed.placements = by_ranks_of_rows(changed.placements);
      known->second = make(changed.role, changed.op, changed.index, changed.dimensions, changed.placements);
      steps_->push_back({.kind = kind, .dimension = axis, .reads = {from}, .writes = known->second});
    }
    return known->second;
  }

  // An input as its operator uses it.
  TensorId input(int op, int index) {
    const InputSignature& input = signature(op).inputs[index];
    const Placements needed = read_as(op, input);
    if (input.maker >= 0) {
      return convert(program_.values[input.maker], needed);
    }
    const auto [known, is_new] = data_.try_emplace({op, index}, -1);
    if (is_new) {
      known->second = make(Role::value, -1, index, input.dimensions, needed);
    }
    return known->second;
  }

  std::vector<TensorId> inputs(int op) {
    std::vector<TensorId> ids;
    for (std::size_t i = 0; i < signature(op).inputs.size(); ++i) {
      ids.push_back(input(op, static_cast<int>(i)));
    }
    return ids;
  }

  // How the ranks that share have a parameter that lies otherwise so.
  Placements as_parts(const TensorDimensions& dimensions, Placements placements) const {
    const std::size_t axis = sharing_->dimension;
    const auto parts = program_.layout.dimensions[axis].size;
    for (std::size_t i = 0; placements[axis].kind == Kind::replicate && i < dimensions.size(); ++i) {
      const auto dimension = static_cast<int>(i);
      const std::vector<std::int64_t>& sections = dimensions[i].sections;
      const bool is_cut = std::any_of(placements.begin(), placements.end(), [&](const Placement& other) {
        return other.is_shard() && other.dimension == dimension;
      });
      if (!is_cut && std::all_of(sections.begin(), sections.end(), [&](auto size) { return size % parts == 0; })) {
        placements[axis] = {Kind::shard, dimension, sections};
      }
    }
    return placements;
  }

  // How a parameter lies between iterations, and how its gradient is reduced.
  Placements at_rest(int op, const TensorDimensions& dimensions) const {
    const Placements placements = used(op, dimensions);
    return sharing_ && sharing_->zero == Zero::weights ? as_parts(dimensions, placements) : placements;
  }
  Placements for_step(int op, const TensorDimensions& dimensions) const {
    const Placements placements = used(op, dimensions);
    return sharing_ && sharing_->zero != Zero::none ? as_parts(dimensions, placements) : placements;
  }

  // A parameter as its operator uses it.
  TensorId held(int op, std::size_t index) {
    return convert(program_.parameters[op][index], used(op, signature(op).parameters[index].dimensions));
  }

  void place_parameters() {
    for (int op = 0; op < count(); ++op) {
      auto& ids = program_.parameters.emplace_back();
      for (const ParameterSignature& parameter : signature(op).parameters) {
        const int index = static_cast<int>(ids.size());
        ids.push_back(parameter.tied_to >= 0
                          ? program_.parameters[parameter.tied_to].front()
                          : make(Role::parameter, op, index, parameter.dimensions, at_rest(op, parameter.dimensions)));
      }
    }
  }

  // How a value is kept once it is whole.
  Placements kept(int op, Placements made) const {
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      if (made[axis].is_partial()) {
        made[axis] = agreed(op, axis);
      }
    }
    return by_ranks_of_rows(made);
  }

  Placement agreed(int op, std::size_t axis) const {
    std::vector<Placement> needed;
    for (const auto& [reader, index] : readers_[op]) {
      const InputSignature& input = signature(reader).inputs[index];
      needed.push_back(along(axis, placement_read(input, shared_[reader][axis]), input.dimensions, reader));
    }
    return agreed_placement(needed);
  }

  void forward(int op) {
    Step step{.kind = StepKind::forward, .op = op, .reads = inputs(op)};
    std::vector<TensorId> last;
    for (std::size_t i = 0; i < signature(op).parameters.size(); ++i) {
      auto& list = signature(op).parameters[i].added_last ? last : step.reads;
      list.push_back(held(op, i));
    }
    auto& inside = inside_.emplace_back();
    for (std::size_t i = 0; i < signature(op).reductions.size(); ++i) {
      inside.push_back(reduce_inside(op, static_cast<int>(i), step.reads));
      step.reads.push_back(inside.back());
    }
    const TensorDimensions& dimensions = signature(op).output;
    const Placements placements = made(op, dimensions, true);
    step.writes = make(Role::value, op, 0, dimensions, placements);
    made_.push_back(step.writes);
    steps_->push_back(step);
    TensorId value = convert(step.writes, kept(op, placements));
    if (!last.empty()) {
      value = add_last(op, value, last);
    }
    program_.values.push_back(value);
  }

  TensorId reduce_inside(int op, int index, const std::vector<TensorId>& reads) {
    const InnerReduction& reduction = signature(op).reductions[index];
    Placements placements = used(op, reduction.tensor);
    TensorId id = make(Role::reduction, op, index, reduction.tensor, placements);
    steps_->push_back({.kind = StepKind::reduced, .op = op, .index = index, .reads = reads, .writes = id});
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      const int letter = shared_[op][axis];
      if (letter != kNone && signature(op).letters[letter].along == Along::reduce) {
        const TensorId whole = make(Role::reduction, op, index, reduction.tensor, placements);
        steps_->push_back({.kind = StepKind::all_reduce,
                           .dimension = axis,
                           .maximum = reduction.maximum,
                           .reads = {id},
                           .writes = whole});
        id = whole;
      }
    }
    return id;
  }

  // How a parameter that is added last lies beside the value.
  Placements beside(int op, const TensorDimensions& dimensions, Placements value, Kind otherwise) const {
    for (Placement& placement : value) {
      placement = placement_beside(signature(op), dimensions, placement, otherwise);
    }
    return value;
  }

  TensorId add_last(int op, TensorId value, std::vector<TensorId> reads) {
    for (TensorId& parameter : reads) {
      const Placements placements = beside(op, tensor(parameter).dimensions, tensor(value).placements, Kind::replicate);
      parameter = convert(parameter, placements);
    }
    reads.insert(reads.begin(), value);
    const TensorId sum = make(Role::value, op, 1, tensor(value).dimensions, tensor(value).placements);
    steps_->push_back({.kind = StepKind::add_last, .op = op, .reads = std::move(reads), .writes = sum});
    return sum;
  }

  void backward(int op) {
    auto& gradients = program_.gradients;
    gradients.resize(count());
    gradients[op].assign(signature(op).parameters.size(), -1);
    TensorId gradient = gather_gradient(op);
    if (gradient < 0) {
      return;
    }
    for (std::size_t i = 0; i < signature(op).parameters.size(); ++i) {
      if (signature(op).parameters[i].added_last && signature(op).parameters[i].trained) {
        gradients[op][i] = last_gradient(op, static_cast<int>(i), gradient);
      }
    }
    gradient = convert(gradient, of_gradient(op, tensor(made_[op]).placements));
    differentiate(op, gradient);
  }

  void differentiate(int op, TensorId gradient) {
    std::vector<TensorId> reads, for_input; // by the gradients of parameters, and by those of inputs
    const auto read = [&](TensorId id, bool for_weights_alone = false) {
      reads.push_back(id);
      if (!for_weights_alone) {
        for_input.push_back(id);
      }
    };
    read(gradient);
    for (std::size_t i = 0; signature(op).reads_inputs && i < signature(op).inputs.size(); ++i) {
      read(input(op, static_cast<int>(i)), signature(op).inputs[i].for_weights_alone);
    }
    if (signature(op).reads_output) {
      read(made_[op]);
    }
    for (const TensorId reduced : inside_[op]) {
      read(reduced);
    }
    for (std::size_t i = 0; i < signature(op).parameters.size(); ++i) {
      if (!signature(op).parameters[i].added_last) {
        read(held(op, i));
      }
    }
    for (std::size_t i = 0; i < signature(op).inputs.size(); ++i) {
      const InputSignature& input = signature(op).inputs[i];
      if (input.maker >= 0 && input.passes_gradient) {
        const TensorId id = make(Role::gradient, input.maker, 0, input.dimensions, passed(op, input));
        steps_->push_back({StepKind::backward_input, op, static_cast<int>(i), 0, false, for_input, id});
        arriving_[input.maker].push_back(id);
      }
    }
    for (std::size_t i = 0; i < signature(op).parameters.size(); ++i) {
      const ParameterSignature& parameter = signature(op).parameters[i];
      if (!parameter.added_last && parameter.trained) {
        const TensorId id = make(Role::parameter_gradient, op, static_cast<int>(i), parameter.dimensions,
                                 made(op, parameter.dimensions, false));
        steps_->push_back({StepKind::backward_weight, op, static_cast<int>(i), 0, false, reads, id});
        program_.gradients[op][i] = id;
      }
    }
  }

  TensorId last_gradient(int op, int index, TensorId gradient) {
    const TensorDimensions& dimensions = signature(op).parameters[index].dimensions;
    const TensorId id = make(Role::parameter_gradient, op, index, dimensions,
                             beside(op, dimensions, tensor(gradient).placements, Kind::partial));
    steps_->push_back({StepKind::backward_weight, op, index, 0, false, {gradient}, id});
    return id;
  }

  // The gradient of an operator's value, placed as the value is: those that lie alike are added up before anything is
  // exchanged. That of a value which no operator reads comes from outside, as data does.
  TensorId gather_gradient(int op) {
    const Placements wanted = of_gradient(op, tensor(program_.values[op]).placements);
    const TensorDimensions& dimensions = signature(op).output;
    if (readers_[op].empty()) {
      return make(Role::gradient, op, 1, dimensions, wanted);
    }
    std::vector<TensorId> sums;
    for (const TensorId id : arriving_[op]) {
      const auto alike = std::find_if(sums.begin(), sums.end(),
                                      [&](TensorId sum) { return tensor(sum).placements == tensor(id).placements; });
      if (alike == sums.end()) {
        sums.push_back(id);
      } else {
        *alike = add(*alike, id);
      }
    }
    TensorId total = -1;
    for (const TensorId sum : sums) {
      const TensorId there = convert(sum, wanted);
      total = total < 0 ? there : add(total, there);
    }
    return total;
  }

  TensorId add(TensorId one, TensorId other) {
    const ProgramTensor like = tensor(one);
    const TensorId sum = make(like.role, like.op, like.index, like.dimensions, like.placements);
    steps_->push_back({.kind = StepKind::add, .reads = {one, other}, .writes = sum});
    return sum;
  }

  // Each parameter's gradient, as the parameter lies. Those of one parameter that several operators use are added up
  // first.
  void reduce_gradients() {
    auto& reduced = program_.reduced = program_.gradients;
    for (int op = count() - 1; op >= 0; --op) {
      for (std::size_t i = 0; i < reduced[op].size(); ++i) {
        const int owner = signature(op).parameters[i].tied_to;
        if (owner >= 0) {
          check(tensor(reduced[owner].front()).placements == tensor(reduced[op][i]).placements,
                "operators that share a parameter share it in the same way");
          reduced[owner].front() = add(reduced[owner].front(), reduced[op][i]);
          reduced[op][i] = -1;
        } else if (reduced[op][i] >= 0) {
          reduced[op][i] = convert(reduced[op][i], for_step(op, signature(op).parameters[i].dimensions));
        }
      }
    }
  }

  // Each rank updates what it has of a gradient. New parameters come to lie as the old ones do.
  void update() {
    program_.updated = program_.reduced;
    for (int op = 0; op < count(); ++op) {
      for (std::size_t i = 0; i < program_.reduced[op].size(); ++i) {
        const TensorId gradient = program_.reduced[op][i];
        if (gradient < 0) {
          continue;
        }
        const TensorDimensions& dimensions = signature(op).parameters[i].dimensions;
        const TensorId old = convert(program_.parameters[op][i], for_step(op, dimensions));
        const TensorId now = make(Role::parameter, op, static_cast<int>(i), dimensions, tensor(old).placements);
        steps_->push_back(
            {.kind = StepKind::step, .op = op, .index = static_cast<int>(i), .reads = {old, gradient}, .writes = now});
        program_.updated[op][i] = convert(now, at_rest(op, dimensions));
      }
    }
  }

  const SharedLetters& shared_;
  std::optional<SharedParameters> sharing_; // nothing: no step is asked for
  Program program_;
  std::size_t axes_ = 0;
  std::vector<Step>* steps_ = nullptr;
  std::vector<std::vector<OutputReader>> readers_;
  std::vector<TensorId> made_;                // [operator]: its output as it makes it
  std::vector<std::vector<TensorId>> inside_; // [operator]: what it reduced inside
  std::map<Conversion, TensorId> converted_;
  std::map<std::pair<int, int>, TensorId> data_;
  std::map<int, std::vector<TensorId>> arriving_; // [operator]: gradients of its output
};

} // namespace

Program emit_program(std::vector<Signature> operators, const SharedLetters& shared, const Layout& layout,
                     std::optional<SharedParameters> parameters) {
  return Emitter(std::move(operators), shared, layout, parameters).emit();
}

} // namespace stagecraft
