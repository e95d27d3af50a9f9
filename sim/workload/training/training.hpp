// How a model is trained: batch, micro-batches, precision, optimiser, recompute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/kernel/kernel_kind.hpp"
#include "sim/workload/attention_kernels.hpp"
#include "sim/workload/expert_biases.hpp"
#include "sim/workload/image_layouts.hpp"
#include "sim/workload/loss_kernels.hpp"
#include "sim/workload/model_graph.hpp"
#include "sim/workload/training/offload.hpp"
#include "sim/workload/training/parallel.hpp"
#include "sim/workload/training/token_dispatcher.hpp"

namespace stagecraft {

/// Which operators of a stage run forward again before backward: none, all, or some.
enum class Recompute { none, full, selective };
enum class StepMode { barrier, local };

struct OptimizerRow {
  std::string_view name, help;
  double states; ///< optimiser states per parameter (fp32), beside weight and gradient
  double work;   ///< floating-point operations of a step per parameter; a root and a division count as one each
  int kernels;   ///< of a step that goes tensor by tensor, for each: docs/model.md, "Steps tensor by tensor"
  /// Numbers in fp32 of each parameter that a step reads and writes beside weights, the gradient and states.
  double moved = 0;
};

/// Optimisers. Memory per parameter, fp32: weight 4 + gradient 4 + 4*states bytes; in fp16/bf16: weight 2 + gradient 2
/// + fp32 master weight 4 + 4*states bytes (Adam: 16 bytes, as in mixed-precision practice).
inline constexpr std::array kOptimizers = {
    OptimizerRow{"sgd", "plain stochastic gradient descent", 0, 2, 3},
    OptimizerRow{"momentum", "SGD with momentum", 1, 4, 5},
    OptimizerRow{"adam", "Adam and AdamW", 2, 15, 10}, // 3 and 4 for the moments, 6 the update, 2 for weight decay
    // You et al. 2020, algorithm 2: Adam's update is written, it and the weight are read for their norms and again for
    // the step.
    OptimizerRow{"lamb", "Adam with the step of a tensor in proportion to its norm", 2, 20, 9, 5},
};

struct RecomputeRow {
  std::string_view name, help;
  Recompute recompute;
};
inline constexpr std::array kRecomputes = {
    RecomputeRow{"none", "keep every activation that backward needs", Recompute::none},
    RecomputeRow{"full", "keep each stage's input and run forward again before backward", Recompute::full},
    RecomputeRow{"blocks",
                 "keep each numbered block's input and run one block after another again, as backward reaches it",
                 Recompute::selective},
    RecomputeRow{"selective", "run the operators again that `operators` and `kinds` name, and keep what they read",
                 Recompute::selective},
};

/// When recomputation (R) runs, and for which micro-batches.
struct RecomputeRule {
  bool early = true;                    ///< R may start before the gradient arrives; otherwise it waits like B
  bool skip_after_own_forward = false;  ///< no R where F of the same micro-batch stands directly before its B
  bool except_last_micro_batch = false; ///< torchgpipe `except_last`
  bool operator==(const RecomputeRule&) const = default;
};

struct RecomputeTimeRow {
  std::string_view name, help;
  bool early;
};
inline constexpr std::array kRecomputeTimes = {
    RecomputeTimeRow{"early", "as soon as the device has nothing else to do before that backward", true},
    RecomputeTimeRow{"lazy", "when the gradient has arrived", false},
};

/// Which operators run forward again, and when. A plan may choose other operators for its stages, but no other rule.
struct RecomputeChoice {
  Recompute what = Recompute::none;
  std::vector<std::string> operators;    ///< names of operators, if selective
  std::vector<KernelKind> kinds;         ///< and kernel kinds of operators, if selective
  std::vector<std::string> modules;      ///< and names in kRecomputeModules, if selective
  std::vector<std::string> of_modules{}; ///< the names of the modules' operators (name_operators)
  /// If selective: all operators of numbered blocks, so many blocks at a time, each time just before their backward; 0:
  /// not by blocks, and all that a stage recomputes at once.
  int blocks = 0;
  /// If by blocks: only the first so many that a stage has operators of run again, as by Megatron-LM's method `block`;
  /// 0: all.
  int first = 0;
  RecomputeRule rule;
  bool when_given = false; ///< the file says when; else it follows from the model (restore_in_backward)
  Where where;             ///< place in the file, for errors

  /// Whether all blocks run again, one group after another: the full recompute of frameworks.
  bool by_all_blocks() const { return blocks > 0 && first == 0; }

  /// Equal if both mean the same, wherever they stand.
  bool operator==(const RecomputeChoice& other) const {
    return what == other.what && operators == other.operators && kinds == other.kinds && modules == other.modules &&
           blocks == other.blocks && first == other.first && rule == other.rule;
  }
};

/// Under which schedules a device that sends computes nothing until the data has arrived.
enum class BlockingSends {
  never,
  non_interleaved, ///< under those with one stage a device whose backward is one piece, as 1F1B
  unsplit,         ///< under those whose backward is one piece
  always,
};
struct BlockingSendsRow {
  std::string_view name, help;
  BlockingSends sends;
};
inline constexpr std::array kBlockingSends = {
    BlockingSendsRow{"false", "a device computes while it sends", BlockingSends::never},
    BlockingSendsRow{"true", "a device that sends computes nothing until the data has arrived", BlockingSends::always},
    BlockingSendsRow{"non-interleaved", "the same under schedules with one stage a device whose backward is one piece",
                     BlockingSends::non_interleaved},
    BlockingSendsRow{"unsplit", "the same under schedules whose backward is one piece", BlockingSends::unsplit},
};

struct StepModeRow {
  std::string_view name, help;
  StepMode step;
};
inline constexpr std::array kStepModes = {
    StepModeRow{"barrier", "every stage waits for all before its optimiser step, as clipping by the norm does",
                StepMode::barrier},
    StepModeRow{"local", "each stage steps when its own gradients are complete", StepMode::local},
};

struct AllReduceRow {
  std::string_view name, help;
};
/// How replicas add up their gradients: the algorithms of sim/collective/ that carry out an all-reduce.
inline constexpr std::array kAllReduces = {
    AllReduceRow{"auto", "as measured where it was, else the one of least closed form for each reduction"},
    AllReduceRow{"ring", "a ring through all nodes, each channel through another NIC"},
    AllReduceRow{"tree", "two binary trees over the nodes, chains inside them"},
    AllReduceRow{"hierarchical", "rings inside the nodes, rings between them for parts of the gradients"},
    AllReduceRow{"nvls", "added up by the switch of a node, where the platform says that it can"},
    AllReduceRow{"direct", "every rank's part to every other one, over a link for each pair"},
    AllReduceRow{"torus", "rings along all axes of a torus at once, both ways round"},
    AllReduceRow{"measured", "in the time measured for it below the switch of a node"},
};
/// What real runs carry out: a ring in the plan's order whose hops are transfers of their own. Not to be named.
inline constexpr AllReduceRow kHopByHop{"hop by hop", "a ring whose hops are transfers of their own"};

/// How the products of linear layers in numbered blocks are computed in 8 bits, as Transformer Engine does: each of
/// their inputs is cast, and backward keeps the copies that it multiplies again. All else stays as the precision says.
struct Fp8Row {
  std::string_view name, help;
  std::optional<Precision> products; ///< the format; nothing: that of the training
  int casts = 0;                     ///< kernels that cast a tensor
  double cast_bytes = 0;   ///< what these move for each of its elements; they write two copies, one transposed
  bool gathers = false;    ///< under sequence parallelism devices cast what they have, and gather it so
  double transposed = 0;   ///< bytes moved for each element that others have cast, to write its transposed copy
  bool keeps_both = false; ///< backward keeps the transposed copy also of what is kept in 16 bits anyway
  /// Of an input whose transposed copy backward makes: what the kernels of the first copy, half of them, move for each
  /// element, and what moves in backward for each; 0: forward makes both.
  double first_bytes = 0, later_bytes = 0;
};
/// What torchao's backward moves of each element of a linear layer's input, by its own table of 108 layers on an H100:
/// docs/model.md, "Products in 8 bits". Of these, 5 make the transposed copy, 4 scale the gradient of the input, and 7
/// no code explains.
inline constexpr double kLaterRowwiseBytes = 16;
inline constexpr std::array kFp8Recipes = {
    Fp8Row{"none", "all products are of the training's precision", std::nullopt},
    Fp8Row{"delayed", "scales from the largest values of earlier iterations: one kernel reads a tensor and casts it",
           Precision::fp8, 1, 2 + 2, true, 2, true},
    Fp8Row{"tensorwise",
           "scales from the largest value of the tensor: one kernel reads it to find that, one to cast it",
           Precision::fp8, 2, 2 + 2 + 2, true, 2},
    Fp8Row{
        "rowwise",
        "a scale for each row, of the transposed copy for each of its rows: for each copy one kernel reads a tensor to "
        "find them, one to cast it",
        Precision::fp8, 4, 2 * (2 + 2 + 1), false, 0, false, 2 + 2 + 1, kLaterRowwiseBytes},
    Fp8Row{"mxfp8", "a scale for every 32 numbers, which the matrix units apply: one kernel", Precision::mxfp8, 1,
           2 + 2 * (1 + 1.0 / 32), true},
    Fp8Row{"blockwise", "a scale for every 128 numbers, of weights for 128 x 128: one kernel", Precision::fp8_block, 1,
           2 + 2 * (1 + 4.0 / 128), true, 2},
    Fp8Row{
        "nvfp4",
        "4 bits, a scale for every 16 numbers and one of the tensor: one kernel reads it to find that, one to cast it",
        Precision::nvfp4, 2, 2 + 2 + 2 * (0.5 + 1.0 / 16), true},
};

/// What a device holds beside the tensors that are counted: docs/model.md, "Memory". All 0: nothing.
struct MemoryReserve {
  Bytes context;            ///< of the framework: driver and libraries, their code and workspaces
  Bytes communicator;       ///< buffers of each communicator that the device takes part in
  double fragmentation = 0; ///< what the allocator holds beyond the tensors in it, as a part of these

  /// What a device holds with so many bytes of tensors and of buffers of communicators.
  Bytes with(Bytes tensors, Bytes communicators) const {
    return tensors * (1 + fragmentation) + context + communicators;
  }
  /// The tensors for which a device has room, before communicators; below 0: not even for the context.
  Bytes room(Bytes memory) const { return (memory - context) / (1 + fragmentation); }
  bool any() const { return context.value > 0 || communicator.value > 0 || fragmentation > 0; }
  bool operator==(const MemoryReserve&) const = default;
};

/// How fast the host issues kernels. A pass takes no less than launching all of its kernels: docs/model.md, "The host
/// that launches". 0: it is never late.
struct HostLaunches {
  Seconds each;       ///< of a kernel, on the host
  double kernels = 1; ///< that are launched for each one that a model counts
  /// The product of a mixture is as many as a rank has experts, each with casts of its own. A loop outside of the
  /// framework launches these, one kernel for each that is counted.
  bool by_expert = false;
  bool by_tensor = false; ///< the optimiser's kernels, for each tensor of parameters; else the host never delays a step
  bool waits = false;     ///< reads the loss or an overflow before the step, of which nothing is launched ahead then
  /// What the framework launches for operators of some types, in place of `kernels` for each one that a model counts.
  std::map<std::string, HostKernels> types{};
  std::vector<std::string> captured{}; ///< names in kCapturedModules, whose kernels are captured graphs
  bool operator==(const HostLaunches&) const = default;
};

/// How fast kernels are within a long iteration, as parts of the speeds that a cost model has of each alone: more than
/// 0, at most 1. docs/model.md, "Kernels in a run".
struct KernelSpeed {
  double matrix = 1; ///< products, convolutions, fused attention: clocks under the power limit, operands out of caches
  double other = 1;  ///< all others, which memory bounds: copies and casts that no operator of the model counts
  /// Products of matrices whose rows begin at no multiple of 16 bytes, which the fast kernels load at once: at
  /// multiples of 4 or 8 bytes, and of 2 alone. Beside `matrix`.
  double rows_of_4_bytes = 1, rows_of_2_bytes = 1;
  /// Operators of some types in place of `matrix` and `other`: those that a framework composes of several kernels.
  std::map<std::string, double> types;
  bool operator==(const KernelSpeed&) const = default;
};

/// The training part of a study.
struct Training {
  int global_batch = 1;                 ///< samples per iteration
  std::vector<int> micro_batches = {1}; ///< numbers of micro-batches per iteration to try
  /// Samples of a replica at a time, in place of the number of micro-batches, which then follows from the degrees.
  std::optional<int> micro_batch_size;
  Where micro_batch_size_where; ///< place in the file, for errors
  /// Numbers to try besides with strategies that are always tried at their best (StrategyRow::at_every_count).
  std::vector<int> more_micro_batches;
  const OptimizerRow* optimizer = &kOptimizers[1];
  Precision precision = Precision::fp32;
  std::optional<double> expert_skew;                ///< of all mixtures, in place of the model's: as in Routing
  ExpertChoice expert_choice = ExpertChoice::drawn; ///< of all mixtures
  TokenDispatcher dispatcher;                       ///< of all mixtures
  std::optional<Precision> gradient_precision; ///< in which gradients are accumulated and reduced; nothing: the above
  Precision state_precision = Precision::fp32; ///< of what the optimiser keeps beside master weights
  /// Of a master weight only those 16 bits are kept that the weight in bf16 lacks (Transformer Engine's FusedAdam).
  bool master_remainders = false;
  /// Products that make gradients of weights add them to the sums of earlier micro-batches: docs/model.md, "Sums of
  /// gradients".
  bool fused_gradient_sums = false;
  /// Kernels of their own do, where a replica accumulates whole gradients. With neither, what adds them up is not
  /// counted.
  bool separate_gradient_sums = false;
  /// With these, autograd is handed an empty gradient in place of each, one for each shape, which stays (Transformer
  /// Engine's `get_dummy_wgrad`): docs/model.md, "Memory".
  bool gradient_placeholders = false;
  const Fp8Row* fp8 = &kFp8Recipes[0];
  bool fp8_weights = false;                       ///< weights of products in 8 bits are held so alone
  bool fp8_activations = false;                   ///< what gated layers keep for backward is held in 8 bits
  std::vector<RecomputeChoice> recomputes = {{}}; ///< choices to try
  RecomputeChoice recompute; ///< the choice of the current run; at first that in front of `recomputes`
  StepMode step = StepMode::barrier;
  /// Gradients are scaled to a global norm at most: all devices add up their squares before the step.
  bool clip_gradients = false;
  MemoryReserve memory;
  HostLaunches launches;
  KernelSpeed kernel_speed;
  /// Relative standard deviation of the times of products between devices of one type, of which the slowest holds up
  /// all: docs/model.md, "The slowest of many".
  double device_spread = 0;
  Seconds step_overhead; ///< of the first stage's optimiser step beside its kernels: loader, log, the host's waits
  int host_threads = 0;  ///< with which the process of each device steps what is left to its host; 0: its part of cores
  const AttentionRow* attention = &kAttentions[0];        ///< which kernels compute attention
  const LossRow* loss = &kLosses[0];                      ///< how the loss over words is computed
  const ExpertBiasRow* expert_biases = &kExpertBiases[0]; ///< how biases of experts' products are added
  const ImageLayoutRow* image_layout = &kImageLayouts[0];
  bool fused_norms = false; ///< batch norms of images with channels last do the sum and activation behind them
  BlockingSends blocking_sends = BlockingSends::never;
  /// That a device's host and NCCL take of its time for each tensor that it sends to another stage or gets from one.
  Seconds hand_over;
  /// Of a tensor for another stage that each device of a tensor group has whole, each sends a part, and the group that
  /// gets the parts gathers them (Narayanan et al. 2021, section 4.1).
  bool scatter_gather = false;
  bool ordered_sends = true; ///< transfers of one sender over the same links run one after another
  /// Replicas reduce a bucket of gradients of this size as soon as the last backward pass has filled it, as
  /// DistributedDataParallel does; 0: all gradients together after the pass.
  Bytes gradient_bucket;
  const AllReduceRow* all_reduce = &kAllReduces[0];
  int chunks = 2; ///< chunks per device, for interleaved schedules
  /// How often the pipeline fills and drains in an iteration, each time with as many of its micro-batches: once for
  /// each local batch by PyTorch, whose schedules are called for one.
  int pipeline_fills = 1;
  Sharding sharding;
  Offload offload;
  std::optional<ParallelDegrees> parallel; ///< degrees that every split must have; nothing: strategies choose
  /// In a backward, a tensor-parallel group whose rule is Megatron-LM's exchanges data beside what does not need it.
  bool exchange_beside = true;
  /// What such a group gathers for a product, or adds up of it, goes round in pieces, each beside a part of the
  /// product.
  bool pipelined_exchange = false;
  /// The last stage of a pipeline computes the gradients of its last product's weights when it has run all backwards.
  bool deferred_head = false;
  /// Whether what exchanges slow down follows from a rule on devices whose types state nothing.
  bool exchanges_slow = false;
  /// Where weights are shared (zero 3), a device holds its part of them in the training's precision beside that in
  /// fp32; false: it casts that one as it is gathered.
  bool weight_copy = true;
  /// Of a backward beside a forward, layer by layer, gradients of weights come behind what ranks that share experts
  /// wait for.
  bool delayed_weights = false;
  std::string framework; ///< the recipe that the study names; "": none
  int streams = 1;       ///< streams per device, on which kernels of a stage run side by side; 1: one after another
  std::string config;    ///< the name of a framework's own file that the study names
  std::vector<std::string> unheeded; ///< what that asks for and is not taken over
};

/// What a file that is silent means. `plain`: one micro-batch, gradients reduced after the pass. `searched`: every
/// number of micro-batches that divides the batch, up to 64, and buckets of 25 MB that are reduced during backward, as
/// PyTorch's DistributedDataParallel does by default.
enum class TrainingDefaults { plain, searched };
inline constexpr Bytes kUsualBucket{25e6};

/// Finds the operators of the choice's modules. Returns the modules of which the model has none.
std::vector<std::string> name_operators(RecomputeChoice& choice, const ModelGraph& model);

/// Operators of numbered blocks run again as backward reaches their block, as frameworks do, unless the file says when.
void restore_in_backward(RecomputeChoice& choice, const ModelGraph& model);

/// Whether this choice runs the operator forward again, in the stages that it may be in.
bool selects(const RecomputeChoice& choice, const Operator& op);

/// Those of a stage's operators, ascending, that the choice runs forward again there. `block_numbers`: as of the model.
std::vector<OperatorId> selected_in_stage(const RecomputeChoice& choice, const ModelGraph& model,
                                          const std::vector<int>& block_numbers,
                                          const std::vector<OperatorId>& operators);

/// Reads the `training` mapping of a study: docs/formats/study.md. Throws InputError; for a number of micro-batches
/// that does not divide the global batch, it names the nearest that do. `divisible_at_will`: the model is a profile of
/// a minibatch of unknown size, which may be cut anywhere as long as no global batch is given.
Training load_training(const yaml::Node& node, bool divisible_at_will = false,
                       TrainingDefaults defaults = TrainingDefaults::plain);

} // namespace stagecraft
