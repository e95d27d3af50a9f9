// A plan from Megatron-LM's arguments: the sizes of its groups and the layout of its pipeline, "Ett|(ttt|)*6,ttttL".
// docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/named_table.hpp"
#include "sim/base/schema.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan_format/megatron_arguments.hpp"
#include "sim/plan_format/plan_names.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/pipeline_layout.hpp"
#include "sim/workload/training.hpp"

namespace stagecraft {
namespace {

constexpr int kMostDegree = 1 << 20;
constexpr std::size_t kMostPlaces = 1 << 22; // ranks of all stages together

// Layers that a framework spreads over stages: those of the model, and what it counts as one layer each.
struct Spread {
  int layers = 0;
  bool embedding = false, loss = false;

  int all() const { return layers + (embedding ? 1 : 0) + (loss ? 1 : 0); }
};

// The layers of each rank without a layout: each has the same number, but the first and the last one where theirs are
// given.
std::vector<int> layers_of_ranks(const MegatronArguments& arguments, const Spread& spread, int ranks) {
  const int first = arguments.integer("decoder-first-pipeline-num-layers", 0, spread.layers, -1);
  const int last = arguments.integer("decoder-last-pipeline-num-layers", 0, spread.layers, -1);
  const int rest = spread.all() - std::max(0, first) - std::max(0, last);
  const int among = ranks - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  if ((first >= 0 || last >= 0) && (spread.embedding || spread.loss)) {
    throw InputError(
        arguments.where(first >= 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers"),
        "given beside --account-for-embedding-in-pipeline-split or --account-for-loss-in-pipeline-split, "
        "which Megatron-LM refuses; allowed: one of them, or --pipeline-model-parallel-layout");
  }
  if (rest < 0 || among < 0 || (among > 0 ? rest % among != 0 : rest != 0)) {
    throw InputError(arguments.where("num-layers"),
                     std::to_string(spread.all()) + " layers do not spread evenly over " + std::to_string(ranks) +
                         " stages; allowed: a multiple, or " + "--pipeline-model-parallel-layout");
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
    throw InputError(arguments.where("num-layers-per-virtual-pipeline-stage"),
                     "virtual stages of " + std::to_string(per_stage) + " layers do not divide " +
                         std::to_string(spread.all()) + " layers on " + std::to_string(ranks) + " ranks");
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
        throw InputError(arguments.where("num-layers"),
                         std::to_string(count) + " layers of a rank do not spread evenly over its " +
                             std::to_string(chunks) + " virtual stages; allowed: a multiple, or " +
                             "--pipeline-model-parallel-layout");
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

PipelineLayout read_layout(const MegatronArguments& arguments, int ranks) {
  const int layers = arguments.integer("num-layers", 1, kMostDegree, 0);
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

// Refuses degrees of parallelism that a plan cannot express.
void refuse_other_degrees(const MegatronArguments& arguments) {
  for (const char* name : {"context-parallel-size", "expert-model-parallel-size", "expert-tensor-parallel-size"}) {
    if (arguments.integer(name, 1, kMostDegree, 1) != 1) {
      throw InputError(arguments.where(name),
                       "'--" + std::string(name) + "' is more than a plan can express; allowed: 1");
    }
  }
}

/// Sizes of the groups. Ranks count tensor parallelism first, then replicas, then the pipeline: "tp-dp-pp".
struct Degrees {
  int tensor = 1, replicas = 1, ranks = 1;
};

Degrees read_degrees(const MegatronArguments& arguments, const Platform& platform) {
  Degrees mesh;
  mesh.tensor = arguments.integer("tensor-model-parallel-size", 1, kMostDegree, 1);
  mesh.ranks = arguments.integer("pipeline-model-parallel-size", 1, kMostDegree, 1);
  const long long model = static_cast<long long>(mesh.tensor) * mesh.ranks;
  const int world = arguments.world();
  if (world > 0 && world % model != 0) {
    throw InputError(arguments.where("tensor-model-parallel-size"),
                     std::to_string(world) + " ranks are no multiple of tensor x pipeline sizes, " +
                         std::to_string(model) + "; allowed: a multiple");
  }
  const long long all = world > 0 ? world : static_cast<long long>(platform.devices.size());
  mesh.replicas = static_cast<int>(std::max(1LL, all / model));
  mesh.replicas = arguments.integer("data-parallel-size", 1, kMostDegree, mesh.replicas);
  if (mesh.replicas * model > kMostRank) {
    throw InputError(arguments.where("tensor-model-parallel-size"),
                     "more than " + std::to_string(kMostRank) + " ranks");
  }
  return mesh;
}

// What runs again of every stage: of each virtual one, as Megatron-LM's transformer_block.py counts its layers.
RecomputeChoice read_recompute(const MegatronArguments& arguments, std::string& note) {
  const std::string granularity = arguments.text("recompute-granularity");
  const std::string method = arguments.text("recompute-method");
  const std::string layers = std::to_string(arguments.integer("recompute-num-layers", 1, kMostDegree, 1));
  if (!granularity.empty() && granularity != "full" && granularity != "selective") {
    throw InputError(arguments.where("recompute-granularity"),
                     "unknown granularity '" + excerpt(granularity) + "'; known: full, selective");
  }
  if (!method.empty() && method != "uniform" && method != "block") {
    throw InputError(arguments.where("recompute-method"),
                     "unknown method '" + excerpt(method) + "'; known: uniform, block");
  }
  if (granularity != "full") {
    if (granularity != "selective" && !arguments.has("recompute-activations")) {
      return {};
    }
    note += "; training.recompute: {kinds: [attention]} says that each layer's attention runs again by itself";
    return {.what = Recompute::selective, .kinds = {KernelKind::attention}};
  }
  if (method != "block") {
    note += "; full recompute counted per stage";
    if (!method.empty() || arguments.has("recompute-num-layers")) {
      note += "; training.recompute: {blocks: " + layers + "} brings back as many layers at a time";
    }
    return {.what = Recompute::full};
  }
  if (!arguments.has("recompute-num-layers")) {
    throw InputError(arguments.where("recompute-method"), "does not say how many layers of each stage run again; "
                                                          "needed: --recompute-num-layers N");
  }
  note += "; training.recompute: {first: " + layers + "} says that layers run again one by one";
  return {.what = Recompute::selective, .blocks = 1, .first = std::stoi(layers)};
}

// What the training says in place of the plan.
std::string of_training(const MegatronArguments& arguments) {
  std::string note;
  if (arguments.has("clip-grad") && parse_number(arguments.text("clip-grad"), arguments.where("clip-grad")) > 0) {
    note += "; training.clip_gradients: true says what --clip-grad does";
  }
  if (arguments.has("fp8-format")) {
    const std::string recipe = arguments.has("fp8-recipe") ? arguments.text("fp8-recipe") : "delayed";
    const bool known =
        std::any_of(kFp8Recipes.begin() + 1, kFp8Recipes.end(), [&](const Fp8Row& row) { return row.name == recipe; });
    note += known ? "; training.fp8: " + recipe + " says what --fp8-format does"
                  : "; not taken over: --fp8-recipe " + excerpt(recipe);
  }
  return note;
}

std::string read_note(const MegatronArguments& arguments, const Degrees& mesh) {
  const int batch = arguments.integer("global-batch-size", 1, 1 << 30, 0);
  const int micro_batch = arguments.integer("micro-batch-size", 1, 1 << 30, 0);
  const long long step = static_cast<long long>(std::max(1, micro_batch)) * mesh.replicas;
  std::string note;
  if (batch > 0 && batch % step == 0) {
    note = "; made for " + std::to_string(batch / step) + " micro-batches";
  } else if (batch > 0 || micro_batch > 0) {
    note = "; the sizes of batch and micro-batch are not taken over";
  }
  const std::vector<std::string> unheeded = arguments.unheeded();
  const bool shards = std::find(unheeded.begin(), unheeded.end(), "use-distributed-optimizer") != unheeded.end();
  return note + (unheeded.empty() ? "" : "; not taken over: --" + join(unheeded, ", --")) +
         (shards ? "; training.parallel.zero: 1 says what --use-distributed-optimizer does" : "");
}

} // namespace

namespace {

// Whether the text is JSON, or our own YAML: the names in it may look like flags.
bool has_names(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  const std::size_t second = first == std::string_view::npos ? first : text.find_first_not_of(kBlanks, first + 1);
  const bool is_json = second != std::string_view::npos && text[first] == '{' && text[second] == '"';
  return is_json || text.find("\nschema: " + std::string(kSchema) + "\n") != std::string_view::npos;
}

} // namespace

bool is_megatron_plan(const PlanSource& source) {
  if (has_names(source.text)) {
    return false;
  }
  for (const char* name : {"--num-layers", "--pipeline-model-parallel-", "--tensor-model-parallel-size"}) {
    std::size_t at = source.text.find(name);
    for (; at != std::string::npos; at = source.text.find(name, at + 1)) {
      const std::size_t line = source.text.rfind('\n', at) + 1; // npos + 1 is 0
      if (source.text.find('#', line) > at) {
        return true;
      }
    }
  }
  return false;
}

Plan read_megatron_plan(const PlanSource& source) {
  const MegatronArguments arguments(source);
  refuse_other_degrees(arguments);
  const Degrees mesh = read_degrees(arguments, source.platform);
  const PipelineLayout layout = read_layout(arguments, mesh.ranks);
  if (const std::string defect = layers_defect(layout, source.model); !defect.empty()) {
    throw InputError(layout.where, defect);
  }
  const std::vector<std::vector<OperatorId>> stages = stages_of(layout, source.model);
  Plan plan;
  std::string note = read_note(arguments, mesh);
  const RecomputeChoice recompute = read_recompute(arguments, note);
  note += of_training(arguments);
  const std::vector<int> numbers = block_numbers(source.model);
  plan.note = note.empty() ? "" : note.substr(2);
  const int group = mesh.tensor * mesh.replicas;
  if (stages.size() * static_cast<std::size_t>(group) > kMostPlaces) {
    throw InputError(arguments.where("num-layers"), std::to_string(stages.size()) + " stages of " +
                                                        std::to_string(group) + " ranks; allowed: at most " +
                                                        std::to_string(kMostPlaces) + " together");
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.tensor_parallel = mesh.tensor;
    stage.sequence_parallel = mesh.tensor > 1 && arguments.has("sequence-parallel"); // Megatron-LM ignores it for one
    for (int rank = 0; rank < group; ++rank) {
      stage.devices.push_back(static_cast<int>(s % mesh.ranks) * group + rank);
    }
    stage.operators = stages[s];
    stage.recompute = recompute.what;
    if (recompute.what == Recompute::selective) {
      stage.recomputed = selected_in_stage(recompute, source.model, numbers, stage.operators);
      stage.recompute = stage.recomputed.empty() ? Recompute::none : Recompute::selective;
    }
  }
  return plan;
}

namespace {

// The stage that holds all of a layer's operators (`otherwise` if there are none). If there is no such stage, `why`
// gets the reason.
int stage_of_layer(const std::vector<int>& stage_of, const std::vector<OperatorId>& operators, int otherwise,
                   const std::string& name, std::string& why) {
  const int stage = operators.empty() ? otherwise : stage_of[operators.front()];
  for (const OperatorId op : operators) {
    if (stage_of[op] != stage && why.empty()) {
      why = name + " is split between stage " + std::to_string(stage) + " and stage " + std::to_string(stage_of[op]) +
            ", and Megatron-LM places whole layers";
    }
  }
  return stage;
}

// The numbered blocks that stand behind a loss: they predict further tokens.
int further_layers(const ModelGraph& model) {
  const auto loss = std::find_if(model.operators.begin(), model.operators.end(), is_loss);
  const auto first = static_cast<OperatorId>(loss - model.operators.begin());
  const LayerRow row = layer_row_of(model);
  return static_cast<int>(std::count_if(row.layers.begin(), row.layers.end(),
                                        [&](const Block& layer) { return layer.operators.front() > first; }));
}

// A layout such as "Ett|ttL", whose last `further` layers are m; if there is none, `why` gets the reason.
std::string write_layout(const PlanToWrite& what, int further, std::string& why) {
  const std::vector<LaidLayer> laid = laid_layers(what.model, further);
  if (laid.size() == 2) { // E and L
    why = "'" + what.model.name + "' has no numbered blocks, which Megatron-LM would call layers";
    return "";
  }
  std::vector<int> stage_of(what.model.size());
  for (std::size_t s = 0; s < what.plan.stages.size(); ++s) {
    for (const OperatorId op : what.plan.stages[s].operators) {
      stage_of[op] = static_cast<int>(s);
    }
  }
  const int last = static_cast<int>(what.plan.stages.size()) - 1;
  std::vector<std::pair<int, char>> tokens;
  for (const LaidLayer& layer : laid) {
    const int otherwise = layer.letter == 'L' ? last : 0;
    tokens.emplace_back(stage_of_layer(stage_of, layer.operators, otherwise, layer.name, why), layer.letter);
  }
  if (why.empty() &&
      (!std::is_sorted(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.first < b.first; }) ||
       tokens.front().first != 0 || tokens.back().first != last)) {
    why = "the layers do not follow the order of the stages";
  }
  std::string layout;
  int stage = 0;
  for (const auto& [at, kind] : tokens) {
    for (; stage < at; ++stage) {
      layout += '|';
    }
    layout += kind;
  }
  return layout;
}

// The same, with layers that predict further tokens where only then the plan has a layout.
std::string write_layout(const PlanToWrite& what, std::string& why) {
  std::string layout = write_layout(what, 0, why);
  if (const int further = why.empty() ? 0 : further_layers(what.model); further > 0) {
    std::string why_not;
    std::string with_further = write_layout(what, further, why_not);
    if (why_not.empty()) {
      why.clear();
      return with_further;
    }
  }
  return layout;
}

// The reason why the stages do not have the ranks that Megatron-LM would give them, or "".
std::string not_in_rank_order(const Plan& plan, std::size_t ranks) {
  const std::size_t group = plan.stages.front().devices.size();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.devices.size() != group || stage.axes() != plan.stages.front().axes()) {
      return "stage " + std::to_string(s) + " has another mesh of devices than stage 0, and Megatron-LM has one size";
    }
    for (std::size_t i = 0; i < group; ++i) {
      if (stage.devices[i] != static_cast<DeviceId>(s % ranks * group + i)) {
        return "stage " + std::to_string(s) +
               " is not on the devices that come next on the platform, and Megatron-LM "
               "gives out ranks in order";
      }
    }
  }
  return "";
}

} // namespace

WrittenPlan write_megatron_plan(const PlanToWrite& what) {
  const Plan& plan = what.plan;
  const Stage& first = plan.stages.front();
  const std::size_t devices = devices_of(plan).size();
  const std::size_t ranks = std::max<std::size_t>(1, devices / first.devices.size());
  std::string why = not_plain(plan, "Megatron-LM", true);
  why = why.empty() ? not_in_rank_order(plan, ranks) : why;
  const std::string layout = why.empty() ? write_layout(what, why) : "";
  const int replicas = static_cast<int>(first.devices.size()) / first.tensor_parallel;
  if (why.empty() && what.training.global_batch % (what.micro_batches * replicas) != 0) {
    why = "a batch of " + std::to_string(what.training.global_batch) + " in " + std::to_string(what.micro_batches) +
          " micro-batches leaves no whole sample for each of " + std::to_string(replicas) + " replicas";
  }
  if (!why.empty()) {
    return Infeasible{std::move(why)};
  }
  const auto line = [](const std::string& flag, const std::string& value) { return "--" + flag + " " + value + "\n"; };
  const auto layers = std::count(layout.begin(), layout.end(), 't');
  std::string text =
      "WORLD_SIZE=" + std::to_string(devices) + "\n" + line("num-layers", std::to_string(layers)) +
      line("tensor-model-parallel-size", std::to_string(first.tensor_parallel)) +
      line("pipeline-model-parallel-size", std::to_string(ranks)) +
      line("pipeline-model-parallel-layout", "\"" + layout + "\"") +
      line("micro-batch-size", std::to_string(what.training.global_batch / (what.micro_batches * replicas))) +
      line("global-batch-size", std::to_string(what.training.global_batch));
  if (const auto further = std::count(layout.begin(), layout.end(), 'm'); further > 0) {
    text += line("mtp-num-layers", std::to_string(further));
  }
  if (first.sequence_parallel) {
    text += "--sequence-parallel\n";
  }
  if (first.recompute == Recompute::full) {
    text += "--recompute-granularity full\n--recompute-method uniform\n";
  }
  return text;
}

} // namespace stagecraft
