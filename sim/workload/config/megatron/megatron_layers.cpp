// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/megatron_layers.hpp"

#include <algorithm>

#include "sim/base/divisors.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr int kMostDegree = 1 << 20;

// Layers that a framework spreads over stages: those of the model, and what it counts as one layer each.
struct Spread {
  int layers = 0;
  bool embedding = false, loss = false;

  int all() const { return layers + (embedding ? 1 : 0) + (loss ? 1 : 0); }
};

// Where embedding and loss count as layers, says so at the argument by which they do, with the nearest numbers of
// stages over which all spread.
[[noreturn]] void refuse_uneven(const MegatronArguments& arguments, const Spread& spread, int ranks) {
  const char* embedding = "account-for-embedding-in-pipeline-split";
  const char* loss = "account-for-loss-in-pipeline-split";
  const std::string by = (spread.embedding ? arguments.written(embedding) : "") +
                         (spread.embedding && spread.loss ? " and " : "") +
                         (spread.loss ? arguments.written(loss) : "");
  const char* plain = arguments.has("num-layers") ? "num-layers" : "pipeline-model-parallel-size";
  throw InputError(
      arguments.where(spread.embedding ? embedding
                      : spread.loss    ? loss
                                       : plain),
      std::to_string(spread.all()) + " layers" +
          (by.empty() ? "" : ", as " + by + (spread.embedding && spread.loss ? " count" : " counts") + " them,") +
          " do not spread evenly over " + std::to_string(ranks) + " stages; nearest that do: " +
          nearest_divisors(spread.all(), ranks) + " stages, or --pipeline-model-parallel-layout");
}

constexpr const char* kFirst = "decoder-first-pipeline-num-layers";
constexpr const char* kLast = "decoder-last-pipeline-num-layers";

// What the first and the last stage leave does not spread over those between: says so at the last one that is given,
// with its nearest numbers that do.
[[noreturn]] void refuse_between(const MegatronArguments& arguments, const Spread& spread, int first, int last,
                                 int ranks) {
  const int rest = spread.all() - std::max(0, first) - std::max(0, last);
  const int among = ranks - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  const char* flag = last >= 0 ? kLast : kFirst;
  const int given = last >= 0 ? last : first;
  std::string ends;
  for (const auto& [name, count] : {std::pair{kFirst, first}, {kLast, last}}) {
    ends += count < 0 ? "" : (ends.empty() ? "" : " and ") + arguments.written(name) + " " + std::to_string(count);
  }
  const std::string layers = std::to_string(spread.all()) + " layers";
  std::string what = rest < 0    ? ends + " are more than the " + layers
                     : among < 1 ? ends + (rest > 0 ? " leave " + std::to_string(rest) : " take all") + " of the " +
                                       layers + ", and no stage is between them"
                                 : std::to_string(rest) + " of " + layers + " that " + ends +
                                       " leave do not spread evenly over the " + std::to_string(among) + " stages left";
  std::string nearest;
  const int step = std::max(1, among), beyond = among < 1 ? rest : ((rest % step) + step) % step;
  for (const int value : {given + beyond - (among < 1 ? 0 : step), given + beyond}) {
    const int left = rest - (value - given);
    if (value >= 0 && left >= 0 && nearest.find(std::to_string(value)) == std::string::npos) {
      nearest += (nearest.empty() ? "" : " or ") + std::to_string(value);
    }
  }
  throw InputError(arguments.where(flag),
                   what + "; " +
                       (nearest.empty() ? "allowed: fewer layers there"
                                        : "nearest that do: " + arguments.written(flag) + " " + nearest) +
                       ", or --pipeline-model-parallel-layout");
}

// The layers of each rank without a layout: each has the same number, but the first and the last one where theirs are
// given.
std::vector<int> layers_of_ranks(const MegatronArguments& arguments, const Spread& spread, int ranks) {
  const int first = arguments.integer(kFirst, 0, spread.layers, -1);
  const int last = arguments.integer(kLast, 0, spread.layers, -1);
  const int rest = spread.all() - std::max(0, first) - std::max(0, last);
  const int among = ranks - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  if ((first >= 0 || last >= 0) && (spread.embedding || spread.loss)) {
    throw InputError(arguments.where(first >= 0 ? kFirst : kLast),
                     "given beside --account-for-embedding-in-pipeline-split or --account-for-loss-in-pipeline-split, "
                     "which Megatron-LM refuses; allowed: one of them, or --pipeline-model-parallel-layout");
  }
  const bool fails = rest < 0 || among < 0 || (among > 0 ? rest % among != 0 : rest != 0);
  if (fails && (first >= 0 || last >= 0)) {
    refuse_between(arguments, spread, first, last, ranks);
  }
  if (fails) {
    refuse_uneven(arguments, spread, ranks);
  }
  std::vector<int> counts(ranks, among > 0 ? rest / among : 0);
  counts.front() = first >= 0 ? first : counts.front();
  counts.back() = last >= 0 ? last : counts.back();
  return counts;
}

int chunks_of(const MegatronArguments& arguments, const Spread& spread, int ranks) {
  const int per_stage = arguments.integer("num-layers-per-virtual-pipeline-stage", 1, kMostDegree, 0);
  const int chunks = arguments.integer("num-virtual-stages-per-pipeline-rank", 1, kMostDegree, 1);
  if (per_stage == 0) {
    return chunks;
  }
  const long long at_once = static_cast<long long>(ranks) * per_stage; // layers of one virtual stage of every rank
  if (spread.all() % at_once != 0) {
    const int of_rank = spread.all() / ranks;
    throw InputError(arguments.where("num-layers-per-virtual-pipeline-stage"),
                     "virtual stages of " + std::to_string(per_stage) + " layers do not divide " +
                         std::to_string(spread.all()) + " layers on " + std::to_string(ranks) + " ranks; " +
                         (spread.all() % ranks == 0 ? "nearest that do: " + nearest_divisors(of_rank, per_stage)
                                                    : "allowed: --pipeline-model-parallel-layout"));
  }
  return static_cast<int>(spread.all() / at_once);
}

// Without a layout: the layers of each rank (layers_of_ranks()) in equal parts over its virtual stages; layers that
// predict further tokens before the loss.
PipelineLayout split_evenly(const MegatronArguments& arguments, const Spread& spread, int ranks, int chunks) {
  const std::vector<int> counts = layers_of_ranks(arguments, spread, ranks);
  const std::string row = (spread.embedding ? "E" : "") + std::string(spread.layers, 't') + (spread.loss ? "L" : "");
  PipelineLayout layout{{}, arguments.where("num-layers")};
  std::size_t next = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (const int count : counts) {
      if (count % chunks != 0) {
        const bool by_size = arguments.has("num-layers-per-virtual-pipeline-stage");
        throw InputError(
            arguments.where(by_size ? "num-layers-per-virtual-pipeline-stage" : "num-virtual-stages-per-pipeline-rank"),
            std::to_string(count) + " layers of a rank do not spread evenly over its " + std::to_string(chunks) +
                " virtual stages; nearest that do: " + (count > 0 ? nearest_divisors(count, chunks) : "1") +
                ", or --pipeline-model-parallel-layout");
      }
      layout.stages.push_back(row.substr(next, count / chunks));
      next += count / chunks;
    }
  }
  const int further = arguments.integer("mtp-num-layers", 0, kMostDegree, 0);
  std::string& end = layout.stages.back();
  end.insert(end.size() - (spread.loss ? 1 : 0), std::string(further, 'm'));
  layout.stages.front().insert(0, spread.embedding ? "" : "E");
  end += spread.loss ? "" : "L";
  return layout;
}

// The layout that is given; its number of layers is that of --num-layers where both are.
PipelineLayout given_layout(const MegatronArguments& arguments, int layers, int ranks) {
  const LayoutText text{arguments.text("pipeline-model-parallel-layout"),
                        arguments.where("pipeline-model-parallel-layout"), true};
  PipelineLayout layout = read_pipeline_layout(text);
  if (layers > 0 && layout.count('t') != layers) {
    throw InputError(text.where, "the layout has " + std::to_string(layout.count('t')) +
                                     " transformer layers, --num-layers is " + std::to_string(layers) +
                                     "; allowed: the same");
  }
  if (layout.stages.size() % ranks != 0) {
    throw InputError(text.where, "the layout has " + std::to_string(layout.stages.size()) +
                                     " stages; allowed: a multiple of --pipeline-model-parallel-size, " +
                                     std::to_string(ranks));
  }
  return layout;
}

} // namespace

PipelineLayout read_megatron_layout(const MegatronArguments& arguments, int layers, int ranks) {
  if (arguments.has("pipeline-model-parallel-layout")) {
    return given_layout(arguments, layers, ranks);
  }
  if (layers == 0) {
    throw InputError(arguments.where("num-layers"), "no number of layers; needed: --num-layers N or "
                                                    "--pipeline-model-parallel-layout LAYOUT");
  }
  const Spread spread{layers, arguments.has("account-for-embedding-in-pipeline-split"),
                      arguments.has("account-for-loss-in-pipeline-split")};
  const int chunks = chunks_of(arguments, spread, ranks);
  if (static_cast<long long>(ranks) * chunks > kMostDegree) {
    throw InputError(arguments.where("pipeline-model-parallel-size"), "more than 1048576 stages");
  }
  return split_evenly(arguments, spread, ranks, chunks);
}

bool places_unevenly(const MegatronArguments& arguments) {
  return arguments.has("pipeline-model-parallel-layout") || arguments.has("decoder-first-pipeline-num-layers") ||
         arguments.has("decoder-last-pipeline-num-layers") ||
         arguments.has("account-for-embedding-in-pipeline-split") ||
         arguments.has("account-for-loss-in-pipeline-split");
}

MegatronRecompute read_megatron_recompute(const MegatronArguments& arguments) {
  std::string granularity = arguments.text("recompute-granularity");
  const std::string method = arguments.text("recompute-method");
  const bool before = arguments.has("checkpoint-activations") ||
                      arguments.written("recompute-method").starts_with("--activations-"); // of which it was all
  granularity = granularity.empty() && before ? "full" : granularity;
  if (!granularity.empty() && granularity != "full" && granularity != "selective") {
    throw InputError(arguments.where("recompute-granularity"),
                     unknown_name("granularity", granularity, {"full", "selective"}));
  }
  if (!method.empty() && method != "uniform" && method != "block") {
    throw InputError(arguments.where("recompute-method"), unknown_name("method", method, {"uniform", "block"}));
  }
  MegatronRecompute asked;
  const bool by_block = granularity == "full" && method == "block"; // of which 0 layers are none
  asked.layers = arguments.integer("recompute-num-layers", by_block ? 0 : 1, kMostDegree, 1);
  asked.full = granularity == "full" && asked.layers > 0;
  asked.selective = granularity == "selective" || (granularity != "full" && arguments.has("recompute-activations"));
  asked.first_ones = asked.full && by_block;
  asked.modules =
      arguments.has("recompute-modules") ? arguments.words("recompute-modules") : std::vector<std::string>{"core_attn"};
  if (asked.first_ones && !arguments.has("recompute-num-layers")) {
    throw InputError(arguments.where("recompute-method"), "does not say how many layers of each stage run again; "
                                                          "needed: --recompute-num-layers N");
  }
  return asked;
}

} // namespace stagecraft
