// The model as a directed graph of operators; the tensors are the operators' outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/base/kernel/kernel.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {

using OperatorId = int; ///< index into ModelGraph::operators, a topological order

/// A kernel that an operator runs, in a number of samples to be filled in: shape[grows] is that of one.
struct KernelCall {
  KernelOp op = KernelOp::gemm;
  KernelShape shape{};
  int grows = 0; ///< the dimension that samples multiply
  bool operator==(const KernelCall&) const = default;
};

/// Work of one pass over one operator. Time on a device without a profile is a roofline of both (docs/model.md).
struct Pass {
  Flops flops;                     ///< per sample
  double moved_elements = 0;       ///< activation elements read and written, per sample
  double moved_parameters = 0;     ///< parameters read or gradients written, per micro-batch
  int kernels = 0;                 ///< launches per micro-batch
  std::vector<KernelCall> calls{}; ///< what they compute, where it is known
};

/// One operator. Amounts are per sample of the batch unless said otherwise; elements become bytes by the precision.
struct Operator {
  std::string name;
  std::string type; ///< as the source calls it: "Conv2d", "MatMul"
  KernelKind kind = KernelKind::other;
  Pass forward, backward_input, backward_weight;
  double parameters = 0;      ///< trainable, a count
  double output_elements = 0; ///< of its output tensor
  double stash_elements = 0;  ///< kept from forward for backward
  /// Of activations and gradients, what the weight gradient needs when the input's has been made: the input and the
  /// gradient of the output. Negative: not known.
  double weight_elements = -1;
  double resident_bytes = 0; ///< held all the time, not per sample; only where ModelGraph::memory_given
  bool divisible = true;     ///< may be replicated over samples
};

/// Times of one operator measured on one device for a whole micro-batch; infinite where the device cannot run it.
struct MeasuredTime {
  Seconds forward, backward;
  double spread = 0; ///< relative standard deviation of their sum; 0 where it is not known
};

/// What was measured for every operator, on one device type and for one micro-batch size.
struct Profile {
  std::string device; ///< device type it was taken on; "" when the file does not say
  double samples = 0; ///< of the micro-batch; 0 when the file does not say
  Precision precision = Precision::fp32;
  std::vector<MeasuredTime> times; ///< per operator
  int tensor_parallel = 1;         ///< devices that ran each operator together
};

/// One way to run an operator as its file measured it: on a tensor-parallel group of some size, with forward run again
/// or not (Tarnawski et al. 2021). Amounts are of one device of the group and one micro-batch.
struct Configuration {
  int tensor_parallel = 1;
  bool recompute = false;
  Seconds seconds;                       ///< all passes, with communication inside the group
  Bytes parameters;                      ///< whose gradients replicas reduce
  Bytes per_micro_batch, resident;       ///< memory held per micro-batch in flight, and all the time
  std::vector<Bytes> incoming, outgoing; ///< [predecessor], [successor]: exchanged in the group where a cut parts them
};

/// A tensor with all operators that make or use it. A stage that holds some of them but not all receives or sends it
/// once.
struct SharedTensor {
  double elements = 0;          ///< per sample
  std::vector<OperatorId> ends; ///< ascending, two or more
};

/// Devices of one type that a model's file brings along, each on a private link to one switch.
struct BroughtDevices {
  std::string type; ///< as the model's profiles name it
  int count = 1;
  Bytes memory;             ///< infinite: without limit
  BytesPerSecond bandwidth; ///< of the link; infinite: transfers are free
};

/// A model, operators in topological order, edges as sorted adjacency lists without doubles.
struct ModelGraph {
  std::string name, description;
  std::vector<Operator> operators;
  std::vector<std::vector<OperatorId>> predecessors, successors; ///< per operator
  double input_elements = 0;                                     ///< per sample, fed to the sources
  std::vector<Profile> profiles; ///< none where costs come from shapes; the first is the one that others scale from
  /// Where the file says more of tensors than "each operator's output and, backwards, its gradient": all of them, those
  /// of backward too. For planners that count tensors; edges and outputs still say what a replay sends.
  std::vector<SharedTensor> tensors;
  std::vector<BroughtDevices> devices; ///< to run on when no platform is named; mostly none
  /// The file gives memory as a whole: a stage holds its operators' resident bytes and, in flight, their stash.
  /// Weights, gradients, optimiser states and buffers are not added.
  bool memory_given = false;
  /// Per operator, all ways to run it that the file gives; none where it gives no such. With them edge_bytes, of each
  /// operator's edges to its successors, and micro_batches, how many make a batch.
  std::vector<std::vector<Configuration>> configurations;
  std::vector<std::vector<Bytes>> edge_bytes;
  int micro_batches = 0;

  int size() const { return static_cast<int>(operators.size()); }
};

/// The configuration of an operator at a tensor degree, that with the other choice of recompute where there is no such;
/// nullptr where the file gives none at this degree.
const Configuration* find_configuration(const ModelGraph& model, OperatorId op, int tensor_parallel, bool recompute);

/// Sorts operators topologically, ties by the order given, and builds both adjacency lists from edges between
/// positions of `operators`. Throws InputError blaming `where` for a cycle (naming its operators) or a dangling edge.
ModelGraph make_graph(std::string name, std::vector<Operator> operators, std::vector<std::pair<int, int>> edges,
                      std::vector<Profile> profiles, const Where& where);

/// Sums over all operators, per sample.
struct ModelTotals {
  double parameters = 0; ///< a count, not per sample
  double stash_elements = 0, output_elements = 0;
  Flops forward, backward;
};
ModelTotals totals_of(const ModelGraph& model);

} // namespace stagecraft
