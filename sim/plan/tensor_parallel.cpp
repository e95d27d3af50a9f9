// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/tensor_parallel.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/cost/alike_times.hpp"

namespace stagecraft {
namespace {

// Reads the shares of operators off a stage's program, whose layout has one dimension.
class ShareReader {
public:
  ShareReader(const Problem& problem, const StageProgram& stage)
      : problem_(problem), stage_(stage), program_(stage.program), degree_(program_.layout.dimensions.front().size) {}

  TensorSplit read(std::size_t operators) {
    TensorSplit split;
    for (std::size_t at = 0; at < operators; ++at) {
      split.operators.push_back(share_of(stage_.op_at(at)));
    }
    read_pass(program_.forward, split, &RankShare::forward);
    read_pass(program_.backward, split, &RankShare::backward);
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

  // What is gathered belongs to the next computation, which reads it; what is added up to the one that made it.
  void read_pass(const std::vector<Step>& steps, TensorSplit& split, std::vector<Exchange> RankShare::*pass) {
    maker_.resize(program_.tensors.size(), -1);
    std::vector<Exchange> gathered;
    for (const Step& step : steps) {
      maker_[step.writes] = step.op >= 0 ? step.op : maker_[step.reads.back()];
      if (step.op >= 0) {
        auto& exchanges = at_operator(split, step.op).*pass;
        exchanges.insert(exchanges.end(), gathered.begin(), gathered.end());
        gathered.clear();
      } else if (is_collective(step.kind)) {
        const ProgramTensor& tensor = program_.tensors[step.reads.front()];
        const Exchange exchange{collective_of(step.kind), bytes_of(tensor)};
        const int maker = maker_[step.reads.front()];
        if (tensor.placements.front().is_partial() && maker >= 0) {
          (at_operator(split, maker).*pass).push_back(exchange);
        } else {
          gathered.push_back(exchange);
        }
      }
    }
    if (!gathered.empty()) { // for a tensor that goes out
      auto& exchanges = split.operators.back().*pass;
      exchanges.insert(exchanges.end(), gathered.begin(), gathered.end());
    }
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
  std::vector<int> maker_; // [tensor]: the operator whose computation wrote it, or what it was made of
};

// The slowest of the passes of each operator on the types of the group's devices.
class SlowestTimes {
public:
  SlowestTimes(const Problem& problem, const GroupSpeed& speed) {
    for (const int type : speed.types) {
      types_.emplace_back(problem.cost, problem.platform.types[type], problem.samples * speed.share,
                          problem.training.precision);
    }
  }

  Seconds of(OperatorId op, const Shard& shard) {
    OperatorTime most{Seconds{0}, Seconds{0}, Seconds{0}};
    for (AlikeTimes& type : types_) {
      const std::optional<OperatorTime>& time = type.of_shard(op, shard);
      if (!time) {
        return Seconds{kInfinity};
      }
      most.forward = std::max(most.forward, time->forward);
      most.backward_input = std::max(most.backward_input, time->backward_input);
      most.backward_weight = std::max(most.backward_weight, time->backward_weight);
    }
    return most.forward + most.backward_input + most.backward_weight;
  }

private:
  std::vector<AlikeTimes> types_;
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
  SlowestTimes slowest(problem, speed);
  const StepTimes times{.computation = [&](int op, const Shard& shard) { return slowest.of(op, shard); },
                        .group = {axis.degree, speed.slowest},
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

void add_groups(GroupSpeed& speed, const Problem& problem, const std::vector<DeviceId>& devices, int degree) {
  for (auto first = devices.begin(); first != devices.end(); first += degree) {
    speed.slowest = slowest_of(speed.slowest, ring_of({first, first + degree}, problem.router).slowest);
  }
  for (const DeviceId device : devices) {
    speed.types.push_back(problem.type_index(device));
  }
  std::sort(speed.types.begin(), speed.types.end());
  speed.types.erase(std::unique(speed.types.begin(), speed.types.end()), speed.types.end());
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
  TensorSplit split = ShareReader(problem, std::get<StageProgram>(program)).read(stage.size());
  for (std::size_t at = 0; at < stage.size(); ++at) {
    const Configuration* measured = find_configuration(problem.model, stage[at], axis.degree, false);
    if (measured != nullptr) {
      split.operators[at] = {.shard = {axis.degree},
                             .exchanged = exchanged_at_cuts(problem.model, stage, stage[at], *measured)};
    }
  }
  return split;
}

GroupWaits group_waits(const RankShare& of_operator, const Group& group, double share) {
  if (group.ranks <= 1) {
    return {};
  }
  const auto seconds = [&](const std::vector<Exchange>& exchanges) {
    return std::accumulate(exchanges.begin(), exchanges.end(), Seconds{0}, [&](Seconds sum, const Exchange& one) {
      return sum + seconds_of(collective_on(one.kind, group, one.bytes * share));
    });
  };
  const auto latency = [&](const std::vector<Exchange>& exchanges) {
    return std::accumulate(exchanges.begin(), exchanges.end(), Seconds{0}, [&](Seconds sum, const Exchange& one) {
      return sum + group.slowest.latency * traffic_of({one.kind, group, one.bytes}).steps;
    });
  };
  const Seconds given{of_operator.exchanged.value * share * group.slowest.seconds_per_byte}; // as the file says
  return {seconds(of_operator.forward) + given, seconds(of_operator.backward) + given, latency(of_operator.forward),
          latency(of_operator.backward)};
}

} // namespace stagecraft
