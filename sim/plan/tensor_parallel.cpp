// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/tensor_parallel.hpp"

#include <algorithm>
#include <numeric>

#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/slowest_times.hpp"

namespace stagecraft {
namespace {

// Reads the shares of operators off a stage's program, whose layout has one dimension.
class ShareReader {
public:
  /// `beside`: in a backward, data is exchanged beside the gradients that do not need it.
  ShareReader(const Problem& problem, const StageProgram& stage, bool beside)
      : problem_(problem), stage_(stage), program_(stage.program), degree_(program_.layout.dimensions.front().size),
        needed_by_weight_(beside ? Exchange::When::before_weight : Exchange::When::before),
        left_by_input_(beside ? Exchange::When::after_input : Exchange::When::after) {}

  TensorSplit read(std::size_t operators) {
    TensorSplit split;
    for (std::size_t at = 0; at < operators; ++at) {
      split.operators.push_back(share_of(stage_.op_at(at)));
    }
    read_pass(program_.forward, split, &RankShare::forward, split.operators.back());
    read_pass(program_.backward, split, &RankShare::backward, split.operators.front());
    for (const Step& step : program_.reduction) {
      if (is_collective(step.kind)) {
        const ProgramTensor& gradient = program_.tensors[step.reads.front()];
        at_operator(split, gradient.op).terms +=
            Bytes{local_elements(gradient, program_.layout) * parameter_bytes(problem_.training).gradient};
      }
    }
    split.borders = part_at_borders(operators);
    return split;
  }

private:
  bool is_shared(int op) const { return stage_.shared[op].front() != kNone; }

  // The part that a rank reads or writes of a tensor with these dimensions: its own, or all.
  double used(int op, const TensorDimensions& dimensions) const {
    return is_shared(op) && dimension_of(dimensions, stage_.shared[op].front()) >= 0 ? 1.0 / degree_ : 1.0;
  }

  double kept(int op) const { return part_of(program_.tensors[program_.values[op]]); }
  double part_of(const ProgramTensor& tensor) const {
    return tensor.placements.front().is_shard() ? 1.0 / degree_ : 1.0;
  }

  RankShare share_of(int op) const {
    const Signature& signature = program_.operators[op];
    double all = 0;
    double saved = 0;
    for (const InputSignature& input : signature.inputs) {
      const double elements = elements_of(input.dimensions);
      const double part = used(op, input.dimensions);
      all += elements;
      saved += elements * (input.maker >= 0 ? std::min(part, kept(input.maker)) : part);
    }
    const double made = elements_of(signature.output);
    const double written = made * used(op, signature.output);
    RankShare share;
    share.output = kept(op);
    share.shard = shard_of_operator(signature, stage_.shared[op].front(), degree_);
    share.stash = all > 0 ? saved / all : 1;
    share.weight_stash = (saved + written) / (all + made);
    share.parameters = part_of_parameters(op);
    return share;
  }

  // Of those that are trained, or of all where none are.
  double part_of_parameters(int op) const {
    double all = 0;
    double local = 0;
    const auto& signatures = program_.operators[op].parameters;
    const bool any = std::any_of(signatures.begin(), signatures.end(), [](const auto& one) { return one.trained; });
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      if (any && !signatures[i].trained) {
        continue;
      }
      const ProgramTensor& parameter = program_.tensors[program_.parameters[op][i]];
      const double elements = elements_of(parameter.dimensions);
      all += elements;
      local += elements * part_of(parameter);
    }
    return all > 0 ? local / all : 1;
  }

  RankShare& at_operator(TensorSplit& split, int op) const { return split.operators[stage_.position[op]]; }

  // What is gathered belongs to the next computation, which reads it; what is added up to the one that made it. `last`:
  // the operator that ends the pass.
  void read_pass(const std::vector<Step>& steps, TensorSplit& split, std::vector<Exchange> RankShare::*pass,
                 RankShare& last) {
    maker_.resize(program_.tensors.size(), -1);
    std::vector<Exchange> gathered;
    const std::vector<Readers> of_weights = readers_of(steps);
    for (const Step& step : steps) {
      maker_[step.writes] = step.op >= 0 ? step.op : maker_[step.reads.back()];
      if (step.op >= 0) {
        auto& exchanges = at_operator(split, step.op).*pass;
        exchanges.insert(exchanges.end(), gathered.begin(), gathered.end());
        gathered.clear();
      } else if (is_collective(step.kind)) {
        const ProgramTensor& tensor = program_.tensors[step.reads.front()];
        const int maker = maker_[step.reads.front()];
        if (tensor.placements.front().is_partial() && maker >= 0) {
          (at_operator(split, maker).*pass).push_back({collective_of(step.kind), bytes_of(tensor), left_by_input_});
        } else {
          const bool for_weight = of_weights[step.writes] == Readers::weights;
          gathered.push_back(
              {collective_of(step.kind), bytes_of(tensor), for_weight ? needed_by_weight_ : Exchange::When::before});
        }
      }
    }
    for (Exchange& one : gathered) { // for a tensor that goes out
      one.when = Exchange::When::after;
      (last.*pass).push_back(one);
    }
  }

  // What reads a tensor.
  enum class Readers { none, weights, others };

  // [tensor]: whether only gradients of weights are computed from it.
  std::vector<Readers> readers_of(const std::vector<Step>& steps) const {
    std::vector<Readers> readers(program_.tensors.size(), Readers::none);
    for (const Step& step : steps) {
      for (const TensorId tensor : step.reads) {
        const bool is_weight = step.kind == StepKind::backward_weight && readers[tensor] != Readers::others;
        readers[tensor] = is_weight ? Readers::weights : Readers::others;
      }
    }
    return readers;
  }

  // Bytes of the whole tensor for a micro-batch. What is reduced inside an operator has single precision.
  Bytes bytes_of(const ProgramTensor& tensor) const {
    const Precision precision =
        tensor.role == ProgramTensor::Role::reduction ? Precision::fp32 : problem_.training.precision;
    return Bytes{elements_of(tensor.dimensions) * problem_.samples * row_of(precision).bytes};
  }

  double part_at_borders(std::size_t operators) const {
    double part = 0;
    const int inside = stage_.incoming + static_cast<int>(operators);
    for (int op = 0; op < static_cast<int>(program_.operators.size()); ++op) {
      if (op < stage_.incoming || op >= inside) {
        part = std::max(part, kept(op));
      }
    }
    return part > 0 ? part : 1;
  }

  const Problem& problem_;
  const StageProgram& stage_;
  const Program& program_;
  int degree_;
  Exchange::When needed_by_weight_, left_by_input_;
  std::vector<int> maker_; // [tensor]: the operator whose computation wrote it, or what it was made of
};

bool is_measured(const Problem& problem, const std::vector<OperatorId>& stage, int degree) {
  return std::any_of(stage.begin(), stage.end(),
                     [&](OperatorId op) { return find_configuration(problem.model, op, degree, false) != nullptr; });
}

std::variant<StageProgram, Infeasible> program_of(const Problem& problem, const std::vector<OperatorId>& stage,
                                                  const TensorAxis& axis, const GroupSpeed& speed) {
  if (axis.rule != TensorRule::search) {
    return stage_program(problem.model, stage, axis);
  }
  SlowestTimes slowest(problem, speed.types, speed.share);
  const auto computation = [&](int op, const Shard& shard) {
    const OperatorTime time = slowest.of(op, shard);
    return time.forward + time.backward_input + time.backward_weight;
  };
  const StepTimes times{.computation = computation,
                        .group = speed.group,
                        .samples = problem.samples * speed.share,
                        .element = Bytes{row_of(problem.training.precision).bytes},
                        .gradient = Bytes{parameter_bytes(problem.training).gradient},
                        .micro_batches = static_cast<double>(problem.micro_batches)};
  return stage_program(problem.model, stage, axis, times);
}

// The bytes that a group exchanges for an operator because some of its neighbours are in other stages.
Bytes exchanged_at_cuts(const ModelGraph& model, const std::vector<OperatorId>& stage, OperatorId op,
                        const Configuration& measured) {
  const auto outside = [&](OperatorId other) { return !std::binary_search(stage.begin(), stage.end(), other); };
  Bytes sum;
  for (std::size_t edge = 0; edge < measured.incoming.size(); ++edge) {
    sum += outside(model.predecessors[op][edge]) ? measured.incoming[edge] : Bytes{0};
  }
  for (std::size_t edge = 0; edge < measured.outgoing.size(); ++edge) {
    sum += outside(model.successors[op][edge]) ? measured.outgoing[edge] : Bytes{0};
  }
  return sum;
}

} // namespace

GroupSpeed speed_of_groups(const Problem& problem, const std::vector<DeviceId>& devices, const TensorAxis& axis,
                           double share) {
  if (axis.rule != TensorRule::search) {
    return {};
  }
  GroupSpeed speed{.types = problem.types_of(devices), .group = {}, .share = share};
  const auto seconds = [](const Group& one) {
    return seconds_of(Collective{CollectiveKind::all_reduce, one, Bytes{1 << 20}});
  };
  for (auto first = devices.begin(); first != devices.end(); first += axis.degree) {
    const Group group = tensor_group(problem, {first, first + axis.degree});
    speed.group = speed.group.ranks == 1 || seconds(speed.group) < seconds(group) ? group : speed.group;
  }
  return speed;
}

std::variant<TensorSplit, Infeasible> split_tensors(const Problem& problem, const std::vector<OperatorId>& stage,
                                                    const TensorAxis& axis, const GroupSpeed& speed) {
  if (axis.degree == 1) {
    return TensorSplit{std::vector<RankShare>(stage.size()), 1};
  }
  TensorAxis as = axis;
  if (is_measured(problem, stage, axis.degree)) { // times are as measured, whatever was shared
    as.rule = TensorRule::megatron;
  }
  const auto program = program_of(problem, stage, as, speed);
  if (const Infeasible* reason = std::get_if<Infeasible>(&program)) {
    return *reason;
  }
  const bool beside = problem.training.exchange_beside && as.rule == TensorRule::megatron; // PyTorch's tensors wait
  TensorSplit split = ShareReader(problem, std::get<StageProgram>(program), beside).read(stage.size());
  for (std::size_t at = 0; at < stage.size(); ++at) {
    const Configuration* measured = find_configuration(problem.model, stage[at], axis.degree, false);
    if (measured != nullptr) {
      split.operators[at] = {.shard = {axis.degree},
                             .exchanged = exchanged_at_cuts(problem.model, stage, stage[at], *measured)};
    }
  }
  return split;
}

Group tensor_group(const Problem& problem, const std::vector<DeviceId>& devices) {
  if (problem.training.all_reduce == &kHopByHop) {
    return ring_of(devices, problem.router);
  }
  return group_with_ways(devices, problem.router, problem.training.all_reduce->name);
}

Seconds forward_wait(const RankShare& of_operator, const Group& group, double share) {
  const std::vector<Exchange>& exchanges = of_operator.forward;
  return std::accumulate(exchanges.begin(), exchanges.end(), given_wait(of_operator, group, share),
                         [&](Seconds sum, const Exchange& one) {
                           return sum + seconds_of(collective_on(one.kind, group, one.bytes * share));
                         });
}

Seconds given_wait(const RankShare& of_operator, const Group& group, double share) {
  return Seconds{of_operator.exchanged.value * share * group.slowest.seconds_per_byte};
}

} // namespace stagecraft
