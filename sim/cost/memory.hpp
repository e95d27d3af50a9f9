// Memory of a stage on a device, part by part (docs/model.md, "Memory").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/platform/platform.hpp"
#include "sim/workload/training.hpp"

namespace stagecraft {

/// Bytes per parameter. fp32: weight 4, gradient 4, optimiser 4 per state. fp16/bf16: weight 2, gradient 2, optimiser
/// 4 (master weight) + 4 per state.
struct ParameterBytes {
  double weight = 0, gradient = 0, optimizer = 0;
};
ParameterBytes parameter_bytes(const Training& training);

/// What a stage keeps on one device. `per_micro_batch` is held once for each micro-batch in flight.
struct StageMemory {
  Bytes weights; ///< one version
  Bytes gradients;
  Bytes optimizer;
  Bytes per_micro_batch; ///< stashed activations; the stage's input only, when recomputing
  /// Of these, what is there for recompute to read; a micro-batch that is not recomputed does not hold it.
  Bytes read_again;
  Bytes workspace; ///< activations that recompute brings back for one micro-batch
  /// What the weight gradient of a micro-batch still needs when the input's has been made, where backward is split;
  /// the gradients of outputs may make it more than the activations were. Nothing: all of them.
  std::optional<Bytes> for_weights;
  Bytes buffers; ///< of sends and receives: two of each tensor that crosses the stage's borders

  /// mem = weights * versions + gradients + optimizer + in_flight * per_micro_batch + workspace + buffers.
  Bytes total(double in_flight, int versions) const;
  /// Activations of a micro-batch that is not recomputed.
  Bytes whole() const { return per_micro_batch - read_again + workspace; }
  /// All but the stash.
  Bytes fixed(int versions) const { return total(0, versions); }
};

/// Activations of one micro-batch.
struct Activations {
  Bytes held;  ///< from forward until backward
  Bytes again; ///< brought back by recompute, for one micro-batch at a time

  /// Of so many micro-batches in flight.
  Bytes total(double in_flight) const { return held * in_flight + again; }
  Activations& operator+=(const Activations& other);
};
Activations operator-(const Activations& one, const Activations& other);
Activations operator*(const Activations& one, double factor);

/// Memory of a stage that holds `parameters` and, per micro-batch, activations, with `input` bytes coming in and
/// `output` bytes going out. A stage that recomputes anything holds its input too.
StageMemory stage_memory(const Training& training, double parameters, const Activations& stash, Bytes input,
                         Bytes output, Recompute recompute);

/// Time of a prediction of the weights that will be current some steps later: reads weights and momentum and writes a
/// copy of the weights (XPipe, Guan et al. 2019).
Seconds prediction_time(const Training& training, double parameters, const DeviceType& type);

/// Time of the optimiser step over `parameters` on a device: reads weight, gradient and states, writes weight and
/// states, bound by memory bandwidth.
Seconds optimizer_time(const Training& training, double parameters, const DeviceType& type);

} // namespace stagecraft
