// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/memory.hpp"

namespace stagecraft {

namespace {
constexpr double kFullBytes = 4; // bytes; master weights are fp32
}

ParameterBytes parameter_bytes(const Training& training) {
  const double stored = row_of(training.precision).bytes;
  const double master = stored < kFullBytes ? kFullBytes - (training.master_remainders ? stored : 0) : 0;
  const double states = master + row_of(training.state_precision).bytes * training.optimizer->states;
  const double gradient = row_of(training.gradient_precision.value_or(training.precision)).bytes;
  return {stored, gradient, states / training.sharding.replicas};
}

Bytes StageMemory::total(double in_flight, int versions) const {
  return weights * versions + frozen + gradients + optimizer + per_micro_batch * in_flight + workspace + buffers +
         in_turn();
}

Activations& Activations::operator+=(const Activations& other) {
  held += other.held;
  again += other.again;
  return *this;
}

Activations operator-(const Activations& one, const Activations& other) {
  return {one.held - other.held, one.again - other.again};
}

Activations operator*(const Activations& one, double factor) { return {one.held * factor, one.again * factor}; }

StageMemory stage_memory(const Training& training, double parameters, const Activations& stash, Bytes input,
                         Bytes output, Recompute recompute) {
  const ParameterBytes per_parameter = parameter_bytes(training);
  const Sharding& sharding = training.sharding;
  const Offload& offload = training.offload;
  const bool rests = offload.parameters && sharding.parts_weights();   // with the host
  const bool leaves = offload.gradients && sharding.parts_gradients(); // after each micro-batch
  const bool casts = sharding.parts_weights() && !training.weight_copy && per_parameter.weight < kFullBytes;
  const double gradients = parameters * (1 - (leaves ? offload.optimizer : 0));
  return {.weights = Bytes{rests || casts ? 0
                                          : parameters * per_parameter.weight /
                                                (sharding.parts_weights() ? sharding.replicas : 1)},
          .gradients = Bytes{gradients * per_parameter.gradient / (sharding.parts_gradients() ? sharding.replicas : 1)},
          .optimizer = Bytes{parameters * (1 - offload.optimizer) * per_parameter.optimizer},
          .per_micro_batch = stash.held + (recompute == Recompute::none ? Bytes{0} : input),
          .read_again = recompute == Recompute::none ? Bytes{0} : input,
          .workspace = stash.again,
          .buffers = 2 * (input + output)};
}

Seconds prediction_time(const Training& training, double parameters, const DeviceType& type) {
  if (parameters == 0) {
    return Seconds{0};
  }
  const double weight = parameter_bytes(training).weight;
  return type.launch_overhead + Bytes{3 * weight * parameters} / type.memory_bandwidth;
}

Seconds optimizer_time(const Training& training, double parameters, const DeviceType& type) {
  const double own = parameters * (1 - training.offload.optimizer);
  if (own == 0) {
    return Seconds{0};
  }
  const ParameterBytes per_parameter = parameter_bytes(training);
  const double each = (2 * per_parameter.weight + per_parameter.gradient + kFullBytes * training.optimizer->moved) /
                      training.sharding.replicas;
  const Bytes moved{own * (each + 2 * per_parameter.optimizer)};
  return type.launch_overhead + moved / type.memory_bandwidth;
}

ClippingTimes clipping_times(const Training& training, double parameters, const DeviceType& type) {
  if (!training.clip_gradients || parameters == 0) {
    return {};
  }
  const Bytes gradients{parameters * parameter_bytes(training).gradient / training.sharding.replicas};
  const double own = 1 - training.offload.optimizer;
  return {.norm = type.launch_overhead + gradients / type.memory_bandwidth,
          .scale = own > 0 ? type.launch_overhead + 2 * own * gradients / type.memory_bandwidth : Seconds{0}};
}

HostStep host_step(const Training& training, double parameters) {
  const double stepped = parameters * training.offload.optimizer / training.sharding.replicas;
  const ParameterBytes each = parameter_bytes(training);
  const double states = each.optimizer * training.sharding.replicas;
  const double weight = each.weight * (each.weight < kFullBytes ? 1 : 2);
  const double scaled = training.clip_gradients ? 2 * each.gradient : 0;
  return {.gradients = Bytes{stepped * each.gradient},
          .weights = Bytes{training.offload.parameters ? 0 : stepped * each.weight},
          .moved = Bytes{stepped * (each.gradient + scaled + 2 * states + weight)},
          .work = stepped * training.optimizer->work};
}

Bytes host_bytes(const Training& training, double parameters) {
  const double own = parameters / training.sharding.replicas;
  const ParameterBytes each = parameter_bytes(training);
  const double states = each.optimizer * training.sharding.replicas;
  const bool weights = training.offload.parameters || each.weight == kFullBytes;
  return Bytes{own * training.offload.optimizer * (states + each.gradient + (weights ? each.weight : 0))};
}

} // namespace stagecraft
