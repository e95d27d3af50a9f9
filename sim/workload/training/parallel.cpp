// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/parallel.hpp"

#include <algorithm>
#include <string>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/named_table.hpp"

namespace stagecraft {
namespace {

constexpr int kMostRanks = 1 << 20, kMostChunks = 1024;

// "tensor 2 x pipeline 3" of those that are given.
std::string product_of(const ParallelDegrees& degrees) {
  std::string text = "tensor " + std::to_string(degrees.tensor);
  if (!degrees.ranks.empty()) {
    text = "ranks of";
    for (const RankDegrees& rank : degrees.ranks) {
      text += (&rank == degrees.ranks.data() ? " " : " + ") + std::to_string(rank.tensor);
    }
  }
  const auto add = [&](const char* name, int degree) {
    text += degree > 0 ? std::string(" x ") + name + " " + std::to_string(degree) : "";
  };
  add("context", degrees.context.ranks > 1 ? degrees.context.ranks : 0);
  add("data", degrees.data);
  add("pipeline", degrees.ranks.empty() ? degrees.pipeline : 0);
  return text;
}

Infeasible not_divided(const ParallelDegrees& degrees, long long product, int devices) {
  const std::string what = product_of(degrees) + " = " + std::to_string(product);
  if (product > devices) {
    return {"training.parallel asks for " + what + " ranks, and there are " + count_of(devices, "device") +
            "; allowed: at most that"};
  }
  return {"training.parallel: " + what + " does not divide " + count_of(devices, "device") +
          "; nearest that do: " + nearest_divisors(devices, static_cast<int>(product))};
}

// A key that has a meaning only from a stage of ZeRO on.
void refuse_below(yaml::Map& map, const char* key, Zero zero, Zero least, const char* what) {
  if (map.has(key) && zero < least) {
    throw InputError(map.where(key), "'" + std::string(key) + "' says " + what + ", which needs 'zero' " +
                                         std::to_string(static_cast<int>(least)) +
                                         (least < Zero::weights ? " or more" : "") + "; it is " +
                                         std::to_string(static_cast<int>(zero)));
  }
}

// ZeRO++: its keys need shared weights, but for those that are held in 8 bits anyway.
void load_zero_plus_plus(yaml::Map& map, ShardingRule& rule) {
  rule.quantized_weights = map.choice("quantized_weights", kQuantizedWeights, kQuantizedWeights.front().name).numbers;
  const bool held_so = rule.quantized_weights == QuantizedWeights::fp8; // also what is gathered after a step
  refuse_below(map, "quantized_weights", rule.zero, held_so ? Zero::states : Zero::weights,
               "into which numbers gathered weights are made");
  refuse_below(map, "hpz_partition_size", rule.zero, Zero::weights, "how many replicas share a second copy of weights");
  refuse_below(map, "quantized_gradients", rule.zero, Zero::weights, "how gradients are reduced to parts");
  rule.secondary = map.integer("hpz_partition_size", 2, kMostRanks, 0);
  rule.quantized_gradients = map.boolean("quantized_gradients", false);
  if (rule.secondary > 0 && rule.reshard && *rule.reshard != Reshard::after_forward) {
    throw InputError(map.where("hpz_partition_size"),
                     "'hpz_partition_size' says from where backward gathers weights, which stay after the forward; "
                     "allowed: with 'reshard' after-forward");
  }
  if (rule.secondary > 0 && rule.group == 1) {
    throw InputError(map.where("hpz_partition_size"),
                     "'hpz_partition_size' " + std::to_string(rule.secondary) +
                         " says how many of the replicas that share have a second copy, and with 'shard' 1 none "
                         "share; allowed: left out, or with 'shard' of " +
                         std::to_string(rule.secondary) + " or a multiple");
  }
  if (rule.secondary > 0 && rule.group > 0 && rule.group % rule.secondary != 0) {
    std::string nearest = nearest_divisors(rule.group, rule.secondary);
    nearest.erase(0, nearest.starts_with("1 or ") ? 5 : 0); // a group of one keeps no second copy
    throw InputError(map.where("hpz_partition_size"), "'hpz_partition_size' " + std::to_string(rule.secondary) +
                                                          " does not divide 'shard' " + std::to_string(rule.group) +
                                                          "; nearest that do: " + nearest);
  }
}

ShardingRule load_sharding(yaml::Map& map) {
  constexpr int kMostPrefetch = 1024;
  ShardingRule rule;
  rule.zero = static_cast<Zero>(map.integer("zero", 0, static_cast<int>(Zero::weights), 0));
  refuse_below(map, "shard", rule.zero, Zero::states, "how many replicas share states, gradients or weights");
  refuse_below(map, "reduce", rule.zero, Zero::gradients, "which gradients are reduced");
  refuse_below(map, "reshard", rule.zero, Zero::weights, "when weights are given up again");
  refuse_below(map, "gather", rule.zero, Zero::states, "when parameters are gathered");
  refuse_below(map, "prefetch", rule.zero, Zero::states, "how early weights are gathered");
  refuse_below(map, "late_experts", rule.zero, Zero::states, "how late weights of experts are gathered");
  refuse_below(map, "copied_out", rule.zero, Zero::weights, "where a unit's weights are gathered to");
  refuse_below(map, "prefetch_backward", rule.zero, Zero::weights, "how early backward gathers weights");
  rule.group = map.integer("shard", 1, kMostRanks, 0);
  if (map.has("reduce")) {
    rule.reduce = map.choice("reduce", kReduces, kReduces.front().name).reduce;
  }
  if (map.has("reshard")) {
    rule.reshard = map.choice("reshard", kReshards, kReshards.front().name).reshard;
  }
  rule.gather = map.choice("gather", kGathers, kGathers.front().name).gather;
  if (rule.zero == Zero::weights && map.has("gather") && rule.gather == Gather::after_step) {
    throw InputError(map.where("gather"),
                     "with 'zero' 3 weights are gathered before their use; 'reshard' says when they "
                     "are given up again");
  }
  if (rule.gather == Gather::broadcasts && rule.zero != Zero::states) {
    throw InputError(map.where("gather"), "'gather' broadcasts says how replicas get parameters that share the "
                                          "optimiser's states alone; allowed: with 'zero' 1");
  }
  if (rule.zero < Zero::weights && map.has("prefetch") && rule.gather != Gather::before_use) {
    throw InputError(map.where("prefetch"), "'prefetch' says how early weights are gathered, which are gathered after "
                                            "the step; allowed: with 'gather: before-use', or 'zero' 3");
  }
  rule.late_experts = map.boolean("late_experts", false);
  if (rule.late_experts && (rule.zero == Zero::weights || rule.gather != Gather::before_use)) {
    throw InputError(map.where("late_experts"), "'late_experts' says of weights that all replicas hold when they are "
                                                "gathered; allowed: with 'gather: before-use' and 'zero' 1 or 2");
  }
  rule.copied_out = map.boolean("copied_out", false);
  rule.prefetch = map.integer("prefetch", 0, kMostPrefetch, rule.prefetch);
  if (map.has("prefetch_backward")) {
    rule.prefetch_backward = map.integer("prefetch_backward", 0, kMostPrefetch, rule.prefetch);
  }
  load_zero_plus_plus(map, rule);
  return rule;
}

// Reads the degrees of each rank of the pipeline, which are `tensor` and `sequence` unless said otherwise.
void read_ranks(yaml::Map& map, ParallelDegrees& degrees) {
  if (!map.has("ranks")) {
    return;
  }
  long long devices = 0;
  for (const yaml::Node* item : map.list("ranks")) {
    yaml::Map of_rank(*item, "ranks");
    const int tensor = of_rank.integer("tensor", 1, kMostRanks, degrees.tensor);
    const bool sequence = of_rank.boolean("sequence", degrees.sequence);
    degrees.ranks.push_back({tensor, tensor > 1 && sequence});
    devices += tensor;
    of_rank.finish();
  }
  const auto ranks = static_cast<int>(degrees.ranks.size());
  if (ranks == 0 || devices > kMostRanks) {
    throw InputError(map.where("ranks"), "'ranks' has " + std::to_string(devices) + " devices; allowed: 1 to " +
                                             std::to_string(kMostRanks));
  }
  if (degrees.pipeline > 0 && degrees.pipeline != ranks) {
    throw InputError(map.where("ranks"), "'ranks' has " + count_of(ranks, "rank") + ", and 'pipeline' is " +
                                             std::to_string(degrees.pipeline) + "; allowed: the same");
  }
  degrees.pipeline = ranks;
}

// Reads the layers of each stage, with the ranks of the pipeline and the stages of each where they are not given.
void read_layers(yaml::Map& map, ReadDegrees& read) {
  if (!map.has("layers")) {
    return;
  }
  const Where where = map.where("layers");
  if (same_name(map.text("layers"), "by-time")) {
    read.degrees.layers = PipelineLayout{{}, where};
    return;
  }
  const PipelineLayout layout = read_pipeline_layout({map.text("layers"), where});
  const auto stages = static_cast<int>(layout.stages.size());
  const auto empty = std::find(layout.stages.begin(), layout.stages.end(), "");
  if (empty != layout.stages.end()) {
    throw InputError(where, "stage " + std::to_string(empty - layout.stages.begin()) +
                                " of 'layers' is empty; allowed: at least one layer between two bars");
  }
  const bool by_rank = read.degrees.pipeline > 0;
  const int given = by_rank ? read.degrees.pipeline : std::max(1, read.interleave);
  if (stages % given != 0) {
    throw InputError(where, "'layers' has " + count_of(stages, "stage") + ", and '" +
                                (!by_rank                     ? "interleave' "
                                 : read.degrees.ranks.empty() ? "pipeline' "
                                                              : "ranks' ") +
                                std::to_string(given) +
                                " does not divide them; nearest that do: " + nearest_divisors(stages, given));
  }
  if (by_rank && read.interleave > 0 && read.interleave != stages / given) {
    throw InputError(map.where("interleave"), "'layers' has " + count_of(stages, "stage") + " for " +
                                                  count_of(given, "rank") + ", and 'interleave' is " +
                                                  std::to_string(read.interleave) +
                                                  "; allowed: " + std::to_string(stages / given));
  }
  read.degrees.pipeline = by_rank ? given : stages / given;
  read.interleave = stages / read.degrees.pipeline;
  if (read.interleave > kMostChunks) {
    throw InputError(where, "'layers' gives each rank " + std::to_string(read.interleave) +
                                " stages; allowed: at most " + std::to_string(kMostChunks));
  }
  read.degrees.layers = layout;
}

// The ranks of a stage that share experts must be as many times in it. What they have inside them, a stage's program
// says.
std::optional<Infeasible> expert_defect(const Mesh& mesh) {
  const int ranks = mesh.data * mesh.context.ranks * mesh.tensor;
  const int needed = mesh.experts.ranks * mesh.experts.tensor;
  if (mesh.experts.ranks == 1 || ranks % needed == 0) {
    return std::nullopt;
  }
  return Infeasible{"training.parallel: expert " + std::to_string(mesh.experts.ranks) +
                    (mesh.experts.tensor > 1 ? " x expert_tensor " + std::to_string(mesh.experts.tensor) : "") +
                    " does not divide the " + count_of(ranks, "rank") +
                    " of a stage; nearest that do: " + nearest_divisors(ranks, needed)};
}

} // namespace

int Mesh::devices_before(int pipeline_rank) const {
  int devices = pipeline_rank * tensor;
  if (!ranks.empty()) {
    devices = 0;
    for (int rank = 0; rank < pipeline_rank; ++rank) {
      devices += ranks[rank].tensor;
    }
  }
  return devices * context.ranks;
}

std::variant<Mesh, Infeasible> mesh_of(const ParallelDegrees& degrees, int devices) {
  const auto shares_operators = [](const RankDegrees& rank) { return rank.tensor > 1; };
  Mesh mesh{.tensor = degrees.tensor,
            .context = degrees.context,
            .experts = degrees.experts,
            .order = degrees.order,
            .ranks = degrees.ranks};
  mesh.sequence = degrees.tensor > 1 && degrees.sequence;
  if (degrees.ranks.empty() ? degrees.tensor > 1
                            : std::any_of(degrees.ranks.begin(), degrees.ranks.end(), shares_operators)) {
    mesh.tensor_rule = degrees.tensor_rule;
  }
  const bool data_fills = degrees.data == 0;
  const bool pipeline_fills = !data_fills && degrees.pipeline == 0;
  mesh.data = std::max(1, degrees.data);
  mesh.pipeline = std::max(1, degrees.pipeline);
  const long long product = static_cast<long long>(mesh.devices_before(mesh.pipeline)) * mesh.data;
  if (product > devices || devices % product != 0) {
    return not_divided(degrees, product, devices);
  }
  const int left = devices / static_cast<int>(product);
  if (left > 1 && !data_fills && !pipeline_fills) {
    return Infeasible{"training.parallel: " + product_of(degrees) + " takes " + count_of(product, "device") + " of " +
                      std::to_string(devices) + "; nearest that takes all: data " + std::to_string(mesh.data * left)};
  }
  (data_fills ? mesh.data : mesh.pipeline) *= left;
  if (auto defect = expert_defect(mesh)) {
    return *std::move(defect);
  }
  if (const int group = degrees.sharding.group; group > 0 && mesh.data * mesh.context.ranks % group != 0) {
    const int replicas = mesh.data * mesh.context.ranks;
    return Infeasible{"training.parallel: 'shard' " + std::to_string(group) + " does not divide the " +
                      count_of(replicas, "replica") + (mesh.context.ranks > 1 ? ", of data and context ranks" : "") +
                      "; nearest that do: " + nearest_divisors(replicas, group)};
  }
  const int sharing = degrees.sharding.group > 0 ? degrees.sharding.group : mesh.data * mesh.context.ranks;
  if (const int secondary = degrees.sharding.secondary; secondary > 0 && sharing % secondary != 0) {
    return Infeasible{"training.parallel: 'hpz_partition_size' " + std::to_string(secondary) + " does not divide the " +
                      count_of(sharing, "replica") +
                      " that share weights; nearest that do: " + nearest_divisors(sharing, secondary)};
  }
  return mesh;
}

ReadDegrees load_parallel(const yaml::Node& node) {
  yaml::Map map(node, "parallel");
  ReadDegrees read;
  read.degrees.tensor = map.integer("tensor", 1, kMostRanks, read.degrees.tensor);
  const TensorRuleRow& rule = map.choice("tensor_rule", kTensorRules, "megatron");
  read.degrees.tensor_rule = rule.rule;
  read.degrees.sequence = map.boolean("sequence", rule.sequence);
  read.degrees.data = map.integer("data", 1, kMostRanks, read.degrees.data);
  read.degrees.pipeline = map.integer("pipeline", 1, kMostRanks, read.degrees.pipeline);
  read.interleave = map.integer("interleave", 1, kMostChunks, read.interleave);
  read_ranks(map, read.degrees);
  read_layers(map, read);
  read.degrees.shares = map.choice("shares", kReplicaShares, "equal").shares;
  read.degrees.order = map.choice("order", kRankOrders, "tensor-data-pipeline").order;
  read.degrees.context = read_context(map, "context");
  read.degrees.experts = read_experts(map, "expert", "expert_tensor");
  read.degrees.sharding = load_sharding(map);
  map.finish();
  return read;
}

} // namespace stagecraft
