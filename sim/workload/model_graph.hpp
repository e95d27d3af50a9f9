// The model as a directed graph of operators; the tensors are the operators' outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/kernel/kernel.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

using OperatorId = int; ///< index into ModelGraph::operators, a topological order

/// A kernel that an operator runs, for one sample; for n samples, shape[grows] is multiplied by n.
struct KernelCall {
  KernelOp op = KernelOp::gemm;
  KernelShape shape{};
  int grows = 0;              ///< the dimension that counts samples
  std::string_view variant{}; ///< an implementation that a training asks for; "": whichever there is
  bool operator==(const KernelCall&) const = default;
};

/// What the kernels of Pass::casts read: in proportion to all that the pass moves, the inputs of a product, or the
/// gradient of its output.
enum class CastOf { moved, input, gradient };

/// Work of one pass over one operator. Without a profile, its time on a device is a roofline of arithmetic and memory
/// (docs/model.md).
struct Pass {
  Flops flops;                     ///< per sample
  double moved_elements = 0;       ///< activation elements read and written, per sample
  double moved_parameters = 0;     ///< parameters read or gradients written, per micro-batch
  int kernels = 0;                 ///< launches per micro-batch
  std::vector<KernelCall> calls{}; ///< kernels launched, where they are known
  int casts = 0;                   ///< further launches, of kernels that cast its inputs to the format of its products
  double cast_bytes = 0;           ///< what these move, per sample
  double transposed_bytes = 0;     ///< what they would if others had cast, per sample: it is only transposed
  CastOf cast_of = CastOf::moved;  ///< what these read
  /// Elements that are moved to take apart packed sequences, per sample and length that sequences of the batch have;
  /// and how many lengths there may be, about as likely each.
  double unpacked_elements = 0, lengths = 0;
  double slower = 1; ///< how many times as long each FLOP takes as its kind's rate says
  /// Per sample, of all threads of a GPU, with channels of images last; 0: fewer than memory traffic takes time for.
  double instructions = 0;
  double instructions_channels_first = 0; ///< the same with channels first

  int launches() const { return kernels + casts; }
};

/// Which keys each query of an attention over its own tokens sees.
struct AttentionMask {
  std::int64_t tokens = 0;    ///< of a sample
  bool causal = false;        ///< no later ones
  int window = 0;             ///< of a causal one: the last ones only; 0: all
  std::vector<int> documents; ///< lengths of those packed into a sample, which do not see each other; empty: one
  bool operator==(const AttentionMask&) const = default;
};

/// How a token comes to its experts.
enum class ExpertChoice {
  drawn,      ///< in proportion to how popular they are
  round_robin ///< the next ones in turn, from where the token before left off
};

/// How the tokens of a mixture fall on its experts: the i-th is chosen in proportion to i^-skew, and takes at most
/// `most` times an equal share. A token chooses `top` of them, no expert twice; where experts stand in groups, of so
/// many neighbours each, it first chooses `top_groups` of these, and then among their experts (DeepSeek-AI
/// 2024, 2.1.2). In turn all are chosen equally often, and groups do not matter.
struct Routing {
  int experts = 1;
  double skew = 0;
  double most = 0; ///< 0: no limit
  int top = 1;
  int groups = 1, top_groups = 1;
  ExpertChoice choice = ExpertChoice::drawn;
  bool padded = false; ///< each takes as many rows as it may, empty ones too, so that nobody need count them
  bool operator==(const Routing&) const = default;
};

/// A tensor that an operator keeps for backward and another one makes.
struct KeptInput {
  int maker = 0;   ///< an operator, which makes it again where it runs again
  double part = 0; ///< of the keeper's stash
};

/// Kernels that a host launches for an operator.
struct HostKernels {
  double forward = 0, backward = 0;
  double counting = 0; ///< of those forward: what counts the tokens of each expert
  /// Of those forward: what the host launches before it waits for the device; nothing: it does not wait.
  std::optional<double> before_wait{};
  bool operator==(const HostKernels&) const = default;
};

/// One operator. Amounts are per sample unless said otherwise; the precision turns elements into bytes.
struct Operator {
  std::string name;
  std::string type; ///< the source's name: "Conv2d", "MatMul"
  KernelKind kind = KernelKind::other;
  Pass forward, backward_input, backward_weight;
  double parameters = 0;              ///< count of trainable parameters
  double output_elements = 0;         ///< size of the output tensor
  double stash_elements = 0;          ///< size of what forward keeps for backward
  std::vector<KeptInput> kept_inputs; ///< the parts of it that other operators make, as far as the source tells
  /// The part of activations and gradients that the weight gradient still needs after the input's gradient: the input
  /// and the output's gradient. Negative: not known.
  double weight_elements = -1;
  /// Held all the time, in bytes, whatever the number of samples: with ModelGraph::memory_given; otherwise of frozen
  /// parameters, once a study has said their precision.
  double resident_bytes = 0;
  /// Of an attention: its forward FLOPs as a part of those of its two products over every pair of a query and a key.
  /// What its mask leaves; 1 and more where separate kernels work on all pairs.
  double seen = 1;
  double frozen =
      0; ///< count of parameters that are not trained: they take memory, and have neither gradient nor states
  double active = 1;                   ///< the part of its parameters that one token meets: less than 1 for experts
  bool divisible = true;               ///< replicas may share its samples
  std::optional<Precision> products{}; ///< the format in which it multiplies; nothing: the training's
  std::optional<AttentionMask> mask{}; ///< of an attention over its own tokens
  std::optional<Routing> routing{};    ///< of a router, and of what sends tokens to experts
  bool captured = false;               ///< its kernels are part of a captured graph, which the host starts as one
  bool counting_captured = false;      ///< of its kernels, those are that count the tokens of each expert
  /// The host waits for it: it has to know how many rows each expert gets before it launches what follows.
  bool counted_by_host = false;
  /// What the framework launches for it, where that does not follow from the kernels of its passes.
  std::optional<HostKernels> host_kernels{};
  /// How its tensors may be divided, for one sample; nothing where the model's file gives no shapes. See
  /// signatures_of().
  std::optional<Signature> signature{};
};

/// Whether it multiplies the rows of each expert with weights of that expert's own.
bool is_grouped_product(const Operator& what);

/// Times of one operator, measured on one device for a whole micro-batch; infinite where the device cannot run it.
struct MeasuredTime {
  Seconds forward, backward;
  double spread = 0; ///< relative standard deviation of forward + backward; 0: not known
};

/// Times of all operators, measured on one device type for one micro-batch size.
struct Profile {
  std::string device; ///< device type measured; "" when the file does not say
  double samples = 0; ///< in a micro-batch; 0 when the file does not say
  Precision precision = Precision::fp32;
  std::vector<MeasuredTime> times; ///< per operator
  int tensor_parallel = 1;         ///< number of devices that ran each operator together
};

/// One way to run an operator, as measured: on a tensor-parallel group of some size, with or without recompute
/// (Tarnawski et al. 2021). Amounts are per device of the group and micro-batch.
struct Configuration {
  int tensor_parallel = 1;
  bool recompute = false;
  Seconds seconds;                 ///< all passes, with communication inside the group
  Bytes parameters;                ///< parameters whose gradients replicas reduce
  Bytes per_micro_batch, resident; ///< memory held for each micro-batch in flight, and all the time
  std::vector<Bytes> incoming,
      outgoing; ///< per predecessor and per successor: bytes exchanged in the group if a stage boundary lies between
};

/// A tensor with all operators that make or use it. A stage that holds some of them, but not all, receives or sends it
/// once.
struct SharedTensor {
  double elements = 0;          ///< per sample
  std::vector<OperatorId> ends; ///< the operators, ascending, at least two
};

/// Devices of one type that come with a model's file, each on a private link to one switch.
struct BroughtDevices {
  std::string type; ///< as the model's profiles name the type
  int count = 1;
  Bytes memory;             ///< infinite: no limit
  BytesPerSecond bandwidth; ///< bandwidth of the link; infinite: transfers take no time
};

/// A model: operators in topological order, edges as sorted adjacency lists without duplicates.
struct ModelGraph {
  std::string name, description;
  std::vector<Operator> operators;
  std::vector<std::vector<OperatorId>> predecessors, successors; ///< per operator
  double input_elements = 0;     ///< per sample, read by the operators without predecessors
  std::vector<Profile> profiles; ///< empty where costs come from shapes; other devices and sizes scale from the first
  /// All tensors, of backward too, where the file gives them; empty where each operator just has one output and its
  /// gradient. For planners that count tensors; a replay still sends what edges and outputs say.
  std::vector<SharedTensor> tensors;
  std::vector<BroughtDevices> devices; ///< used when no platform is named; mostly empty
  /// The file gives memory as a whole: a stage holds the resident bytes of its operators and the stash of micro-batches
  /// in flight. Weights, gradients, optimiser states and buffers are not added.
  bool memory_given = false;
  /// Per operator, all ways to run it; empty where the file gives none. Comes with edge_bytes, for each operator's
  /// edges to its successors, and micro_batches, the number of micro-batches in a batch.
  std::vector<std::vector<Configuration>> configurations;
  std::vector<std::vector<Bytes>> edge_bytes;
  int micro_batches = 0;

  int size() const { return static_cast<int>(operators.size()); }
};

/// The operators from one up to another, which is left out, ascending.
std::vector<OperatorId> operators_between(OperatorId begin, OperatorId end);
/// Every operator of the model, ascending.
std::vector<OperatorId> all_operators(const ModelGraph& model);

/// The configuration of an operator at a tensor degree. Without one for this choice of recompute, that for the other
/// choice; nullptr where the file gives none at this degree.
const Configuration* find_configuration(const ModelGraph& model, OperatorId op, int tensor_parallel, bool recompute);

/// Sorts operators topologically, keeping the given order where edges allow, and builds both adjacency lists from edges
/// between positions of `operators`. Throws InputError for a cycle (naming its operators), a second operator of a name
/// or a dangling edge; it blames the place that `place_of` gives for an operator, or, without one, `where`.
ModelGraph make_graph(std::string name, std::vector<Operator> operators, std::vector<std::pair<int, int>> edges,
                      std::vector<Profile> profiles, const Where& where,
                      const std::function<Where(int position)>& place_of = {});

/// Sums over all operators, per sample.
struct ModelTotals {
  double parameters = 0; ///< count, not per sample
  double frozen = 0;     ///< parameters that are not trained, beside these
  double active = 0;     ///< of both, what one token meets
  double stash_elements = 0, output_elements = 0;
  Flops forward, backward;
};
ModelTotals totals_of(const ModelGraph& model);

} // namespace stagecraft
