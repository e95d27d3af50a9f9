// Times from shapes: each pass takes its launches, and the longer of arithmetic and memory traffic (Williams et al.
// 2009).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/cost/depthwise.hpp"
#include "sim/cost/instructions.hpp"
#include "sim/cost/passes.hpp"

namespace stagecraft {

Seconds cast_time(const Pass& pass, const DeviceType& type, double samples) {
  return pass.casts == 0 ? Seconds{0}
                         : pass.casts * type.launch_overhead + Bytes{samples * pass.cast_bytes} / type.memory_bandwidth;
}

namespace {

// Of so many lengths, about as likely each, those that the sequences of so many samples have, in the mean.
double lengths_among(double lengths, double samples) {
  return lengths > 0 ? lengths * (1 - std::pow(1 - 1 / lengths, samples)) : 0;
}

} // namespace

Bytes unpacked_bytes(const Pass& pass, double samples, Precision precision) {
  return Bytes{samples * pass.unpacked_elements * lengths_among(pass.lengths, samples) * row_of(precision).bytes};
}

Seconds computing_time(const Pass& pass, FlopsPerSecond rate, const DeviceType& type, double samples) {
  return std::max(samples * pass.slower * pass.flops / rate, instruction_time(samples * pass.instructions, type));
}

std::optional<Seconds> roofline_time(const Pass& pass, KernelKind kind, const DeviceType& type, double samples,
                                     Precision precision, std::optional<Precision> products) {
  if (pass.kernels == 0) {
    return Seconds{0};
  }
  const std::optional<FlopsPerSecond> rate = type.rate(kind, products.value_or(precision));
  if (!rate) {
    return std::nullopt;
  }
  const Bytes traffic{(samples * pass.moved_elements + pass.moved_parameters) * row_of(precision).bytes};
  return pass.kernels * type.launch_overhead +
         std::max(computing_time(pass, *rate, type, samples), traffic / type.memory_bandwidth) +
         cast_time(pass, type, samples) + unpacked_bytes(pass, samples, precision) / type.memory_bandwidth;
}

namespace {

// Whether each device of a group casts the whole of a tensor. What a group gathers is the input of a product whose
// columns it divides, and the gradient of the output of one whose sum it divides; of the other each has its part.
bool is_gathered(const Pass& pass, const Shard& shard) { return (pass.cast_of == CastOf::gradient) == shard.sums; }

double cast_bytes_of_shard(const Pass& pass, const Shard& shard) {
  if (pass.cast_of == CastOf::moved || shard.by_expert) {
    return pass.cast_bytes * shard.activations;
  }
  const double own = 1.0 / shard.degree;
  if (!shard.casts_own) {
    return pass.cast_bytes * (is_gathered(pass, shard) ? 1 : own);
  }
  return own * pass.cast_bytes + (is_gathered(pass, shard) ? (1 - own) * pass.transposed_bytes : 0);
}

} // namespace

Pass pass_of_shard(const Pass& pass, const Shard& shard) {
  return {.flops = pass.flops / shard.degree,
          .moved_elements = pass.moved_elements * shard.activations * shard.rounds,
          .moved_parameters = pass.moved_parameters / (shard.degree * static_cast<double>(shard.replicas)),
          .kernels = pass.kernels * shard.rounds,
          .casts = pass.casts,
          .cast_bytes = cast_bytes_of_shard(pass, shard),
          .unpacked_elements = pass.unpacked_elements * shard.activations,
          .lengths = pass.lengths,
          .slower = pass.slower,
          .instructions = pass.instructions * shard.activations};
}

std::optional<Seconds> time_from_shapes(const Operator& what, const Pass& pass, KernelPass which,
                                        const DeviceType& type, double samples, Precision precision,
                                        const Shard& shard) {
  const auto depthwise = depthwise_time(what, pass, which, type, samples, precision, shard);
  return depthwise ? depthwise
                   : roofline_time(pass_of_shard(pass, shard), what.kind, type, samples, precision, what.products);
}

namespace {

bool same_pass(const Pass& a, const Pass& b) {
  return a.flops == b.flops && a.moved_elements == b.moved_elements && a.moved_parameters == b.moved_parameters &&
         a.kernels == b.kernels && a.casts == b.casts && a.cast_bytes == b.cast_bytes &&
         a.transposed_bytes == b.transposed_bytes && a.cast_of == b.cast_of &&
         a.unpacked_elements == b.unpacked_elements && a.lengths == b.lengths && a.slower == b.slower &&
         a.instructions == b.instructions && a.calls == b.calls;
}

} // namespace

bool same_passes(const Operator& a, const Operator& b) {
  return a.kind == b.kind && a.products == b.products && same_pass(a.forward, b.forward) &&
         same_pass(a.backward_input, b.backward_input) && same_pass(a.backward_weight, b.backward_weight);
}

namespace {

class RooflineModel : public CostModel {
public:
  explicit RooflineModel(const ModelGraph& model) : model_(model) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return time_of_shard(op, type, samples, precision, {});
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    return time_of_passes(what, [&](const Pass& pass, KernelPass which) {
      return time_from_shapes(what, pass, which, type, samples, precision, shard);
    });
  }

  // Launches and parameters are the same for any size; a degree divides neither launches nor, at times, activations.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    if (what.active == 1) {
      return least_of_whole(*this, op, type, precision, part);
    }
    ModelGraph shared; // of a mixture, whose weights others may have
    shared.operators = {what};
    for (Pass* pass :
         {&shared.operators[0].forward, &shared.operators[0].backward_input, &shared.operators[0].backward_weight}) {
      pass->moved_parameters = 0;
    }
    return least_of_whole(RooflineModel(shared), 0, type, precision, part);
  }

  bool alike(OperatorId a, OperatorId b) const override {
    return same_passes(model_.operators[static_cast<std::size_t>(a)], model_.operators[static_cast<std::size_t>(b)]);
  }

  OperatorError error(OperatorId op, const DeviceType& /*type*/, double /*samples*/,
                      Precision /*precision*/) const override {
    const CostError error{row_of(model_.operators[static_cast<std::size_t>(op)].kind).name, kRooflineSpread,
                          CostSource::roofline};
    return {error, error, error};
  }

private:
  const ModelGraph& model_;
};

} // namespace

CostModelResult make_roofline(const CostModelRequest& request) {
  for (const Operator& op : request.model.operators) {
    if (op.forward.kernels > 0 && (op.forward.flops.value > 0 || op.forward.moved_elements > 0)) {
      return std::make_unique<RooflineModel>(request.model);
    }
  }
  return Infeasible{"the model '" + request.model.name +
                    "' has no FLOPs or memory traffic for a roofline; use the cost model profiled"};
}

} // namespace stagecraft
