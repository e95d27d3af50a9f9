// Reading the `training` mapping of a study.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/training.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "sim/base/divisors.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

constexpr int kMostSamples = std::numeric_limits<int>::max();

// Ju et al. 2024 try the divisors of the batch; beyond 64 micro-batches the bubble hardly changes.
constexpr int kMostAutomatic = 64;

std::vector<int> divisors(int global_batch) {
  std::vector<int> counts;
  for (int count = 1; count <= std::min(global_batch, kMostAutomatic); ++count) {
    if (global_batch % count == 0) {
      counts.push_back(count);
    }
  }
  return counts;
}

std::vector<int> powers_of_two(int global_batch) {
  std::vector<int> counts;
  for (int count = 1; count <= kMostAutomatic && global_batch % count == 0; count *= 2) {
    counts.push_back(count);
  }
  return counts;
}

// Nothing where the file does not say.
std::vector<int> read_micro_batches(yaml::Map& map, int global_batch, bool divisible_at_will) {
  std::vector<int> counts;
  if (const yaml::Node* node = map.find("micro_batches");
      node != nullptr && node->kind == yaml::Node::Kind::scalar && node->text == "auto") {
    if (divisible_at_will) {
      throw InputError(node->where, "'micro_batches' auto has no batch to divide; allowed: 'global_batch' beside it");
    }
    return divisors(global_batch);
  }
  for (const yaml::Node* item : map.list("micro_batches")) {
    const int count = yaml::integer(*item, "micro_batches", 1, kMostSamples);
    if (!divisible_at_will && global_batch % count != 0) {
      throw InputError(item->where, "'micro_batches' " + std::to_string(count) + " does not divide global_batch " +
                                        std::to_string(global_batch) +
                                        "; nearest that do: " + nearest_divisors(global_batch, count));
    }
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) {
      throw InputError(item->where, "'micro_batches' lists " + std::to_string(count) + " twice; allowed: once");
    }
    counts.push_back(count);
  }
  if (map.has("micro_batches") && counts.empty()) {
    throw InputError(map.where("micro_batches"), "'micro_batches' is an empty list; allowed: one number or more");
  }
  return counts;
}

// The numbers that the file lists, or what a comparison searches.
void take_micro_batches(std::vector<int> given, bool searched, Training& training) {
  if (searched) {
    training.more_micro_batches =
        given.empty() ? divisors(training.global_batch) : powers_of_two(training.global_batch);
    training.micro_batches = training.more_micro_batches;
  }
  if (!given.empty()) {
    training.micro_batches = std::move(given);
  }
}

// "none", or a size.
Bytes read_bucket(yaml::Map& map, Bytes otherwise) {
  const yaml::Node* node = map.find("gradient_bucket");
  const bool none = node != nullptr && node->kind == yaml::Node::Kind::scalar && node->text == "none";
  return none ? Bytes{0} : map.quantity<Bytes>("gradient_bucket", physical::kCapacity, otherwise);
}

// Reads one of the names, or a mapping.
RecomputeChoice read_recompute(const yaml::Node& node) {
  RecomputeChoice choice{.where = node.where};
  constexpr std::string_view kBlocks = "blocks";
  bool some = false; // operators are named
  if (node.kind != yaml::Node::Kind::map) {
    const RecomputeRow& row = find_by_name(kRecomputes, yaml::scalar(node, "recompute"), "recompute", node.where);
    choice.what = row.recompute;
    choice.blocks = row.name == kBlocks ? 1 : 0;
  } else {
    yaml::Map map(node, "recompute");
    for (const yaml::Node* item : map.list("operators")) {
      choice.operators.push_back(yaml::scalar(*item, "operators"));
    }
    for (const yaml::Node* item : map.list("kinds")) {
      choice.kinds.push_back(find_by_name(kKernelKinds, yaml::scalar(*item, "kinds"), "kind", item->where).kind);
    }
    for (const yaml::Node* item : map.list("modules")) {
      choice.modules.emplace_back(
          find_by_name(kRecomputeModules, yaml::scalar(*item, "modules"), "module", item->where).name);
    }
    some = map.has("operators") || map.has("kinds") || map.has("modules");
    constexpr int kMostBlocks = 100'000;
    const bool by_blocks = map.has("blocks") || map.has("first");
    choice.blocks = by_blocks ? map.integer("blocks", 1, kMostBlocks, 1) : 0;
    choice.first = map.has("first") ? map.integer("first", 1, kMostBlocks) : 0;
    const RecomputeRow& row = map.choice("what", kRecomputes, by_blocks ? kBlocks : some ? "selective" : "full");
    choice.what = row.recompute;
    choice.blocks = row.name == kBlocks ? std::max(1, choice.blocks) : choice.blocks;
    if (some && (choice.what != Recompute::selective || choice.blocks > 0)) {
      throw InputError(map.where("what"),
                       "'operators', 'kinds' and 'modules' say what is recomputed; allowed: what: selective");
    }
    if (choice.blocks > 0 && row.name != kBlocks) {
      const std::string key = map.has("blocks") ? "blocks" : "first";
      throw InputError(map.where(key), "'" + key + "' says what is recomputed; allowed: what: blocks");
    }
    choice.when_given = map.has("when");
    choice.rule.early = map.choice("when", kRecomputeTimes, choice.blocks > 0 ? "lazy" : "early").early;
    if (choice.blocks > 0 && choice.rule.early) {
      throw InputError(map.where("when"), "blocks run again as backward reaches them; allowed: when: lazy");
    }
    choice.rule.skip_after_own_forward = map.boolean("skip_after_forward", false);
    choice.rule.except_last_micro_batch = map.boolean("except_last", false);
    map.finish();
  }
  if (choice.what == Recompute::selective && !some && choice.blocks == 0) {
    choice.modules = {"core_attn"}; // Megatron-LM's selective recompute (Korthikanti et al. 2022)
  }
  if (choice.blocks > 0) {
    choice.rule.early = false;
  } else if (choice.what == Recompute::selective && choice.operators.empty() && choice.kinds.empty() &&
             choice.modules.empty()) {
    throw InputError(node.where, "'selective' names no operators; allowed: {operators: [NAME, …]}, {kinds: [KIND, …]}, "
                                 "{modules: [MODULE, …]} or several of them, or nothing beside it");
  }
  return choice;
}

// Samples of a replica in place of the number of micro-batches.
void read_micro_batch_size(yaml::Map& map, Training& training) {
  if (map.has("micro_batch_size")) {
    training.micro_batch_size = map.integer("micro_batch_size", 1, kMostSamples);
    training.micro_batch_size_where = map.where("micro_batch_size");
    if (map.has("micro_batches")) {
      if (training.micro_batches.size() > 1) {
        throw InputError(training.micro_batch_size_where,
                         "'micro_batch_size' says how many micro-batches there are, and 'micro_batches' lists several; "
                         "allowed: one of the two keys");
      }
    } else {
      training.micro_batches.clear();
    }
  }
}

// A state's format: whole numbers of bytes, which an optimiser reads and writes as such.
Precision read_state_precision(yaml::Map& map) {
  constexpr std::array kFormats = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp8};
  const std::string_view name = map.choice("state_precision", kNumberFormats, row_of(Precision::fp32).name).name;
  std::string allowed;
  for (const Precision format : kFormats) {
    if (row_of(format).name == name) {
      return format;
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(row_of(format).name);
  }
  throw InputError(map.where("state_precision"),
                   "optimizer states in '" + std::string(name) + "'; allowed: " + allowed);
}

void read_precision(yaml::Map& map, Training& training) {
  training.precision = map.choice("precision", kPrecisions, row_of(training.precision).name).precision;
  if (map.has("expert_skew")) {
    training.expert_skew = map.number("expert_skew", kExpertSkew);
  }
  training.expert_choice = map.choice("expert_choice", kExpertChoices, kExpertChoices.front().name).choice;
  if (training.expert_choice == ExpertChoice::round_robin && training.expert_skew.value_or(0) > 0) {
    throw InputError(map.where("expert_skew"), "in turn all experts are chosen equally often; allowed: 'expert_skew' 0 "
                                               "with 'expert_choice' round-robin");
  }
  training.dispatcher = read_token_dispatcher(map, training.precision);
  if (map.has("gradient_precision")) {
    training.gradient_precision = map.choice("gradient_precision", kPrecisions).precision;
    if (*training.gradient_precision != training.precision && *training.gradient_precision != Precision::fp32) {
      throw InputError(map.where("gradient_precision"),
                       "gradients are accumulated as they are computed or in single precision; allowed: " +
                           std::string(row_of(training.precision).name) + ", fp32");
    }
  }
  training.state_precision = read_state_precision(map);
  training.master_remainders = map.boolean("master_remainders", false);
  if (training.master_remainders && training.precision != Precision::bf16) {
    throw InputError(map.where("master_remainders"),
                     "a weight in single precision is one in bf16 and 16 bits more; allowed: with 'precision' bf16");
  }
  training.fp8 = &map.choice("fp8", kFp8Recipes, training.fp8->name);
  if (training.fp8->products && row_of(training.precision).bytes != 2) {
    throw InputError(map.where("fp8"), "casts tensors of 16 bits; allowed: 'precision' bf16 or fp16, or 'fp8' none");
  }
  training.fp8_weights = map.boolean("fp8_weights", false);
  training.fp8_activations = map.boolean("fp8_activations", false);
  if ((training.fp8_weights || training.fp8_activations) && !training.fp8->products) {
    throw InputError(map.where(training.fp8_weights ? "fp8_weights" : "fp8_activations"),
                     "no products are in 8 bits; allowed: with 'fp8' delayed, tensorwise, or another but none");
  }
}

void read_recomputes(yaml::Map& map, Training& training) {
  if (map.has("recompute")) {
    training.recomputes.clear();
    if (const yaml::Node& given = map.node("recompute"); given.kind == yaml::Node::Kind::map) {
      training.recomputes.push_back(read_recompute(given));
    } else {
      for (const yaml::Node* item : map.list("recompute")) {
        training.recomputes.push_back(read_recompute(*item));
      }
    }
    for (auto choice = training.recomputes.begin(); choice != training.recomputes.end(); ++choice) {
      if (std::find(training.recomputes.begin(), choice, *choice) != choice) {
        throw InputError(choice->where, "'recompute' lists the same choice twice; allowed: once");
      }
    }
    if (training.recomputes.empty()) {
      throw InputError(map.where("recompute"), "'recompute' is an empty list; allowed: one choice or more");
    }
    training.recompute = training.recomputes.front();
  }
}

// What devices hold beside tensors.
void read_reserve(yaml::Map& training, MemoryReserve& reserve) {
  const yaml::Node* node = training.find("memory");
  if (node == nullptr) {
    return;
  }
  yaml::Map map(*node, "memory");
  reserve.context = map.quantity<Bytes>("context", physical::kSize, Bytes{0});
  reserve.communicator = map.quantity<Bytes>("communicator", physical::kSize, Bytes{0});
  constexpr yaml::Range kPart{0, 1, true, "0 to 1"};
  reserve.fragmentation = map.number("fragmentation", kPart, 0);
  map.finish();
}

// How fast the host is. In fp16 it reads whether a gradient overflowed before it steps (torch.cuda.amp.GradScaler).
void read_launches(yaml::Map& training, Precision precision, HostLaunches& launches) {
  const yaml::Node* node = training.find("launches");
  if (node == nullptr) {
    return;
  }
  constexpr yaml::Range kKernels{0, 100, true, "0 to 100"}, kLaunched{0, 10000, true, "0 to 10000"};
  yaml::Map map(*node, "launches");
  launches.each = map.quantity<Seconds>("each", yaml::kDelay, Seconds{0});
  launches.kernels = map.number("kernels", kKernels, 1);
  launches.by_expert = map.boolean("by_expert", false);
  launches.by_tensor = map.boolean("by_tensor", false);
  launches.waits = map.boolean("waits", launches.by_tensor && precision == Precision::fp16);
  if (const yaml::Node* types = map.find("types")) {
    yaml::Map of_types(*types, "types");
    for (const yaml::Node::Entry& entry : types->entries) {
      of_types.find(entry.key);
      yaml::Map of_type(entry.value, "types." + entry.key);
      HostKernels& kernels = launches.types[entry.key];
      kernels.forward = of_type.number("forward", kLaunched);
      kernels.backward = of_type.number("backward", kLaunched);
      kernels.counting = of_type.number("counting", yaml::Range{0, kernels.forward, true, "0 to 'forward'"}, 0);
      if (of_type.has("before_wait")) {
        kernels.before_wait = of_type.number("before_wait", yaml::Range{0, kernels.forward, true, "0 to 'forward'"});
      }
      of_type.finish();
    }
    of_types.finish();
  }
  for (const yaml::Node* item : map.list("captured")) {
    launches.captured.emplace_back(
        find_by_name(kCapturedModules, yaml::scalar(*item, "captured"), "module", item->where).name);
  }
  map.finish();
}

void read_kernel_speed(yaml::Map& training, KernelSpeed& speed) {
  const yaml::Node* node = training.find("kernel_speed");
  if (node == nullptr) {
    return;
  }
  yaml::Map map(*node, "kernel_speed");
  speed.matrix = map.number("matrix", yaml::kFraction, 1);
  speed.other = map.number("other", yaml::kFraction, 1);
  speed.rows_of_4_bytes = map.number("rows_of_4_bytes", yaml::kFraction, 1);
  speed.rows_of_2_bytes = map.number("rows_of_2_bytes", yaml::kFraction, speed.rows_of_4_bytes);
  if (const yaml::Node* types = map.find("types")) {
    yaml::Map of_types(*types, "types");
    for (const yaml::Node::Entry& entry : types->entries) {
      speed.types[entry.key] = of_types.number(entry.key, yaml::kFraction);
    }
    of_types.finish();
  }
  map.finish();
}

// The degrees, with the number of stages of each rank, which `chunks` may say as well.
void read_parallel(yaml::Map& map, Training& training) {
  const yaml::Node* node = map.find("parallel");
  if (node == nullptr) {
    return;
  }
  const ReadDegrees read = load_parallel(*node);
  training.parallel = read.degrees;
  if (read.interleave > 0 && map.has("chunks") && read.interleave != training.chunks) {
    throw InputError(map.where("chunks"), "'chunks' and 'parallel." +
                                              std::string(read.degrees.layers ? "layers" : "interleave") +
                                              "' both say how many stages a rank has; allowed: one of them");
  }
  training.chunks = read.interleave > 0 ? read.interleave : training.chunks;
  constexpr std::array<std::string_view, 4> kGathered = {"delayed", "tensorwise", "blockwise", "mxfp8"};
  const bool casts = std::find(kGathered.begin(), kGathered.end(), training.fp8->name) != kGathered.end();
  if (read.degrees.sharding.quantized_weights == QuantizedWeights::fp8 && !casts) {
    throw InputError(yaml::Map(*node, "parallel").where("quantized_weights"),
                     "'quantized_weights' fp8 gathers what products in 8 bits multiply; allowed: with 'fp8' delayed, "
                     "tensorwise, blockwise or mxfp8");
  }
}

// What is left to hosts.
void read_offload(yaml::Map& training_map, Training& training) {
  const yaml::Node* node = training_map.find("offload");
  if (node == nullptr) {
    return;
  }
  training.offload = load_offload(*node);
  const yaml::Map map(*node, "offload");
  const Zero zero = training.parallel ? training.parallel->sharding.zero : Zero::none;
  if (training.offload.parameters && zero != Zero::weights) {
    throw InputError(map.where("parameters"), "parameters are copied to the device where they are gathered, which "
                                              "needs 'parallel.zero' 3; it is " +
                                                  std::to_string(static_cast<int>(zero)));
  }
  const auto is_full = [](const RecomputeChoice& choice) { return choice.what == Recompute::full; };
  if (training.offload.activations > 0 &&
      std::any_of(training.recomputes.begin(), training.recomputes.end(), is_full)) {
    throw InputError(map.where("activations"),
                     "a stage that runs forward again as a whole keeps its input alone, which stays; allowed: with "
                     "'recompute' none, blocks or selective");
  }
}

} // namespace

bool selects(const RecomputeChoice& choice, const Operator& op) {
  const auto is_kind = [&](KernelKind kind) { return kind == op.kind; };
  return choice.what == Recompute::full ||
         (choice.what == Recompute::selective &&
          ((choice.blocks > 0 && is_in_numbered_block(op.name)) ||
           std::any_of(choice.kinds.begin(), choice.kinds.end(), is_kind) ||
           std::find(choice.operators.begin(), choice.operators.end(), op.name) != choice.operators.end() ||
           std::find(choice.of_modules.begin(), choice.of_modules.end(), op.name) != choice.of_modules.end()));
}

std::vector<std::string> name_operators(RecomputeChoice& choice, const ModelGraph& model) {
  std::vector<std::string> missing;
  choice.of_modules.clear();
  for (const std::string& module : choice.modules) {
    const std::vector<OperatorId> operators =
        find_by_name(kRecomputeModules, module, "module", choice.where).operators(model);
    for (const OperatorId op : operators) {
      choice.of_modules.push_back(model.operators[op].name);
    }
    if (operators.empty()) {
      missing.push_back(module);
    }
  }
  const auto in_block = [](const Operator& op) { return is_in_numbered_block(op.name); };
  if (choice.blocks > 0 && std::none_of(model.operators.begin(), model.operators.end(), in_block)) {
    std::transform(model.operators.begin(), model.operators.end(), std::back_inserter(choice.of_modules),
                   [](const Operator& op) { return op.name; });
  }
  return missing;
}

void restore_in_backward(RecomputeChoice& choice, const ModelGraph& model) {
  const bool named = choice.what == Recompute::selective && choice.blocks == 0;
  if (named && !choice.when_given &&
      std::any_of(model.operators.begin(), model.operators.end(),
                  [&](const Operator& op) { return selects(choice, op) && is_in_numbered_block(op.name); })) {
    choice.rule.early = false;
  }
}

std::vector<OperatorId> selected_in_stage(const RecomputeChoice& choice, const ModelGraph& model,
                                          const std::vector<int>& block_numbers,
                                          const std::vector<OperatorId>& operators) {
  std::set<int> blocks; // the first ones of the stage
  for (const OperatorId op : operators) {
    if (block_numbers[op] >= 0) {
      blocks.insert(block_numbers[op]);
    }
  }
  while (choice.first > 0 && blocks.size() > static_cast<std::size_t>(choice.first)) {
    blocks.erase(std::prev(blocks.end()));
  }
  std::vector<OperatorId> selected;
  std::copy_if(operators.begin(), operators.end(), std::back_inserter(selected), [&](OperatorId op) {
    return selects(choice, model.operators[op]) && (choice.first == 0 || blocks.contains(block_numbers[op]));
  });
  return selected;
}

Training load_training(const yaml::Node& node, bool divisible_at_will, TrainingDefaults defaults) {
  const bool searched = defaults == TrainingDefaults::searched;
  yaml::Map map(node, "training");
  Training training;
  training.global_batch = map.integer("global_batch", 1, kMostSamples, training.global_batch);
  take_micro_batches(read_micro_batches(map, training.global_batch, divisible_at_will && !map.has("global_batch")),
                     searched, training);
  read_micro_batch_size(map, training);
  training.optimizer = &map.choice("optimizer", kOptimizers, training.optimizer->name);
  read_precision(map, training);
  read_recomputes(map, training);
  training.step = map.choice("step", kStepModes, "barrier").step;
  training.clip_gradients = map.boolean("clip_gradients", training.clip_gradients);
  training.fused_gradient_sums = map.boolean("fused_gradient_sums", training.fused_gradient_sums);
  training.separate_gradient_sums = map.boolean("separate_gradient_sums", training.separate_gradient_sums);
  if (training.fused_gradient_sums && training.separate_gradient_sums) {
    throw InputError(map.where("separate_gradient_sums"),
                     "products add gradients up, or kernels of their own; allowed: with 'fused_gradient_sums' false");
  }
  training.gradient_placeholders = map.boolean("gradient_placeholders", training.gradient_placeholders);
  if (training.clip_gradients && training.step != StepMode::barrier) {
    throw InputError(map.where("step"), "the norm by which gradients are clipped is known when all stages have theirs; "
                                        "allowed: 'step' barrier, or 'clip_gradients' false");
  }
  read_reserve(map, training.memory);
  read_launches(map, training.precision, training.launches);
  read_kernel_speed(map, training.kernel_speed);
  constexpr yaml::Range kSpread{0, 0.1, true, "0 to 0.1"};
  training.device_spread = map.number("device_spread", kSpread, 0);
  training.step_overhead = map.quantity<Seconds>("step_overhead", yaml::kDelay, Seconds{0});
  constexpr int kMostThreads = 100'000;
  training.host_threads = map.integer("host_threads", 0, kMostThreads, 0);
  training.attention = &map.choice("attention", kAttentions, training.attention->name);
  training.loss = &map.choice("loss", kLosses, training.loss->name);
  training.expert_biases = &map.choice("expert_biases", kExpertBiases, training.expert_biases->name);
  training.image_layout = &map.choice("image_layout", kImageLayouts, training.image_layout->name);
  training.fused_norms = map.boolean("fused_norms", false);
  training.framework = map.text("framework", "");
  training.blocking_sends = map.choice("blocking_sends", kBlockingSends, "false").sends;
  training.hand_over = map.quantity<Seconds>("hand_over", yaml::kDelay, Seconds{0});
  training.scatter_gather = map.boolean("scatter_gather", training.scatter_gather);
  training.ordered_sends = map.boolean("ordered_sends", training.ordered_sends);
  training.gradient_bucket = read_bucket(map, searched ? kUsualBucket : Bytes{0});
  training.exchange_beside = map.boolean("exchange_beside", training.exchange_beside);
  training.pipelined_exchange = map.boolean("pipelined_exchange", training.pipelined_exchange);
  training.deferred_head = map.boolean("deferred_head", training.deferred_head);
  training.exchanges_slow = map.boolean("exchanges_slow", training.exchanges_slow);
  training.weight_copy = map.boolean("weight_copy", training.weight_copy);
  training.delayed_weights = map.boolean("delayed_weights", training.delayed_weights);
  training.all_reduce = &map.choice("all_reduce", kAllReduces, training.all_reduce->name);
  constexpr int kMostChunks = 1024;
  training.chunks = map.integer("chunks", 1, kMostChunks, training.chunks);
  training.pipeline_fills = map.integer("pipeline_fills", 1, kMostSamples, training.pipeline_fills);
  read_parallel(map, training);
  if (training.deferred_head && training.parallel && training.parallel->sharding.zero >= Zero::gradients) {
    throw InputError(map.where("deferred_head"),
                     "gradients that replicas share are reduced with each backward; allowed: "
                     "'parallel.zero' 0 or 1, or 'deferred_head' false");
  }
  read_offload(map, training);
  constexpr int kMostStreams = 128;
  training.streams = map.integer("streams", 1, kMostStreams, training.streams);
  map.finish();
  return training;
}

} // namespace stagecraft
