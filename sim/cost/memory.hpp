// Memory of a stage on a device, part by part (docs/model.md, "Memory").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "sim/platform/platform.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// Bytes per parameter. fp32: weight 4, gradient 4, optimiser 4 per state. fp16/bf16: weight 2, gradient 2 (4 where
/// they are accumulated in single precision), optimiser 4 (master weight; 2 of `master_remainders`) + 4 per state, or
/// what `state_precision` takes. Of the optimiser's, a replica has its part where replicas share them; of a weight and
/// a gradient these are all bytes.
struct ParameterBytes {
  double weight = 0, gradient = 0, optimizer = 0;
};
ParameterBytes parameter_bytes(const Training& training);

/// What a stage keeps on one device. `per_micro_batch` is held once for each micro-batch in flight.
struct StageMemory {
  Bytes weights; ///< one version of the weights
  Bytes frozen;  ///< weights that are not trained, of which there is one version
  Bytes gradients;
  Bytes optimizer;
  Bytes per_micro_batch; ///< stashed activations; with recompute, only the stage's input
  /// The part of per_micro_batch that is kept only for recompute to read; a micro-batch without recompute does not hold
  /// it.
  Bytes read_again;
  Bytes workspace;  ///< activations that recompute restores at a time
  Bytes recomputed; ///< all that it restores for a micro-batch, where that is more: block by block
  /// Where backward is split: what the weight gradient of a micro-batch still needs after the input's gradient. May
  /// exceed the activations, since it includes gradients of outputs. Nothing: all of the activations.
  std::optional<Bytes> for_weights;
  /// What gradients of weights need that are computed after all backwards, of a micro-batch; none are: 0.
  Bytes for_deferred;
  /// For sends and receives: two for each tensor that crosses the stage's boundaries. And the units at hand of what
  /// replicas share.
  Bytes buffers;
  /// Beside these, while a forward or a backward runs, and while recompute does: what a pass gathers and lets go.
  Bytes passing, passing_again;
  /// A buffer for what a pass gathers, from the first one on, and empty gradients; all stages of a device have the same
  /// ones.
  Bytes common_buffer;
  /// What the device's host holds for it: all the time, and once for each micro-batch in flight.
  Bytes host, host_per_micro_batch;

  /// Everything on the device: weights * versions + frozen + gradients + optimizer + in_flight * per_micro_batch +
  /// workspace + buffers + in_turn().
  Bytes total(double in_flight, int versions) const;
  /// What the stages of a device hold one at a time: as much as the one that has most.
  Bytes in_turn() const { return common_buffer + std::max(passing, passing_again); }
  /// Activations of a micro-batch without recompute.
  Bytes whole() const { return per_micro_batch - read_again + std::max(workspace, recomputed); }
  /// Everything but the stash.
  Bytes fixed(int versions) const { return total(0, versions); }
};

/// Activations of one micro-batch.
struct Activations {
  Bytes held;  ///< from forward until backward
  Bytes again; ///< restored by recompute, for one micro-batch at a time

  /// Sum for `in_flight` micro-batches.
  Bytes total(double in_flight) const { return held * in_flight + again; }
  Activations& operator+=(const Activations& other);
};
Activations operator-(const Activations& one, const Activations& other);
Activations operator*(const Activations& one, double factor);

/// Memory of a stage that holds `parameters` and, per micro-batch, the activations `stash`, with `input` bytes coming
/// in and `output` bytes going out. A stage that recomputes anything also holds its input. Of what replicas share
/// (Sharding) it has its part, without the units that are gathered or reduced just now.
StageMemory stage_memory(const Training& training, double parameters, const Activations& stash, Bytes input,
                         Bytes output, Recompute recompute);

/// Time to predict the weights of a few steps ahead (XPipe, Guan et al. 2019): reads weights and momentum, writes a
/// copy of the weights.
Seconds prediction_time(const Training& training, double parameters, const DeviceType& type);

/// Time of the optimiser step over `parameters`, or over a replica's part of them, without what is left to the host:
/// reads weight, gradient and states, writes weight and states; bound by memory bandwidth.
Seconds optimizer_time(const Training& training, double parameters, const DeviceType& type);

/// Times of clipping the gradients of `parameters`, or of a replica's part of them, by the global norm; bound by memory
/// bandwidth, with one launch each; 0 where the training does not clip. As Megatron-LM (clip_grads.py) and PyTorch
/// (clip_grad_norm_) do it, every gradient is scaled, by 1 where the norm is small enough.
struct ClippingTimes {
  Seconds norm;  ///< reads each gradient, before the sum over all devices
  Seconds scale; ///< reads and writes each gradient, after it
};
ClippingTimes clipping_times(const Training& training, double parameters, const DeviceType& type);

/// What the host does at a step for the parameters that it steps, of `parameters`, or of a replica's part of them. Its
/// cores read each gradient, read and write each state, and write each weight, which they also read where no master
/// weight is among the states; gradients that are clipped they read and write once more (DeepSpeedCPUAdam and what
/// calls it).
struct HostStep {
  Bytes gradients; ///< copied there, before
  Bytes weights;   ///< copied back, after; none where they rest with the host
  Bytes moved;     ///< to and from the host's memory
  double work = 0; ///< floating-point operations
};
HostStep host_step(const Training& training, double parameters);

/// What the host holds for them all the time: states, gradients and, where it has no master weights or weights rest
/// there, weights.
Bytes host_bytes(const Training& training, double parameters);

} // namespace stagecraft
