// A plan from Megatron-LM's arguments: the sizes of its groups and the layout of its pipeline, "Ett|(ttt|)*6,ttttL".
// docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/format/schema.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan/stage_of_operators.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/plan_names.hpp"
#include "sim/plan_format/uniform_plan.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/config/megatron/megatron_layers.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/training/pipeline_layout.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {
namespace {

constexpr int kMostDegree = 1 << 20;
constexpr std::size_t kMostPlaces = 1 << 22; // ranks of all stages together

/// Sizes of the groups. Ranks count tensor parallelism first, then context ranks and replicas, then the pipeline:
/// "tp-cp-dp-pp". Experts divide all but the pipeline anew.
struct Degrees {
  int tensor = 1, replicas = 1, ranks = 1;
  Context context{};
  Experts experts{};
};

// By a ring, as Megatron-LM has it unless told.
Context read_context(const MegatronArguments& arguments) {
  return {.ranks = arguments.integer("context-parallel-size", 1, kMostDegree, 1)};
}

Experts read_experts(const MegatronArguments& arguments, int tensor) {
  const int ranks = arguments.integer("expert-model-parallel-size", 1, kMostDegree, 1);
  const int of_each = arguments.integer("expert-tensor-parallel-size", 1, kMostDegree, ranks > 1 ? tensor : 1);
  return ranks > 1 ? Experts{ranks, of_each} : Experts{};
}

Degrees read_degrees(const MegatronArguments& arguments, const Platform& platform) {
  Degrees mesh;
  mesh.tensor = arguments.integer("tensor-model-parallel-size", 1, kMostDegree, 1);
  mesh.ranks = arguments.integer("pipeline-model-parallel-size", 1, kMostDegree, 1);
  mesh.context = read_context(arguments);
  mesh.experts = read_experts(arguments, mesh.tensor);
  const long long model = static_cast<long long>(mesh.tensor) * mesh.ranks * mesh.context.ranks;
  const int world = arguments.world();
  if (world > 0 && world % model != 0) {
    throw InputError(arguments.where("tensor-model-parallel-size"),
                     std::to_string(world) + " ranks are no multiple of tensor x context x pipeline sizes, " +
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
RecomputeChoice read_recompute(const MegatronArguments& arguments, const ModelGraph& model, std::string& note) {
  const MegatronRecompute asked = read_megatron_recompute(arguments);
  const std::string layers = std::to_string(asked.layers);
  if (!asked.full) {
    if (!asked.selective) {
      return {};
    }
    RecomputeChoice choice{.what = Recompute::selective, .modules = asked.modules};
    note += "; training.recompute: {modules: [" + join(asked.modules) + "]} says that these run again layer by layer";
    name_operators(choice, model);
    return choice;
  }
  if (!asked.first_ones) {
    note += "; full recompute counted per stage";
    if (arguments.has("recompute-method") || arguments.has("recompute-num-layers")) {
      note += "; training.recompute: {blocks: " + layers + "} brings back as many layers at a time";
    }
    return {.what = Recompute::full};
  }
  note += "; training.recompute: {first: " + layers + "} says that layers run again one by one";
  return {.what = Recompute::selective, .blocks = 1, .first = asked.layers};
}

// What the training says in place of the plan.
std::string of_training(const MegatronArguments& arguments) {
  std::string note;
  if (arguments.has("clip-grad") && parse_number(arguments.text("clip-grad"), arguments.where("clip-grad")) > 0) {
    note += "; training.clip_gradients: true says what --clip-grad does";
  }
  if (arguments.has("fp4-format")) {
    const std::string recipe = arguments.has("fp4-recipe") ? arguments.text("fp4-recipe") : "nvfp4";
    note += recipe == "nvfp4" ? "; training.fp8: nvfp4 says what --fp4-format does"
                              : "; not taken over: --fp4-recipe " + excerpt(recipe);
  } else if (arguments.has("fp8-format")) {
    const std::string recipe = arguments.has("fp8-recipe") ? arguments.text("fp8-recipe") : "delayed";
    const bool known = std::any_of(kFp8Recipes.begin() + 1, kFp8Recipes.end(), [&](const Fp8Row& row) {
      return row.name == recipe && row.gathers && row.products != Precision::nvfp4;
    }); // all but torchao's
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
  const bool shards = std::find(unheeded.begin(), unheeded.end(), "--use-distributed-optimizer") != unheeded.end();
  return note + (unheeded.empty() ? "" : "; not taken over: " + join(unheeded)) +
         (shards ? "; training.parallel.zero: 1 says what --use-distributed-optimizer does" : "");
}

} // namespace

namespace {

// The device that a framework gives to the i-th of `group` ranks of a stage on a rank of the pipeline; a replica has
// `of_replica` of them.
DeviceId usual_place(RankOrder order, std::size_t ranks, std::size_t rank, std::size_t group, std::size_t of_replica,
                     std::size_t i) {
  const std::size_t replica = i / of_replica, inside = i % of_replica;
  return static_cast<DeviceId>(
      order == RankOrder::tensor_data_pipeline ? rank * group + i : (replica * ranks + rank) * of_replica + inside);
}

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
  const MegatronArguments arguments(source.text, source.file);
  const Degrees mesh = read_degrees(arguments, source.platform);
  const PipelineLayout layout =
      read_megatron_layout(arguments, arguments.integer("num-layers", 1, kMostDegree, 0), mesh.ranks);
  if (const std::string defect = layers_defect(layout, source.model); !defect.empty()) {
    throw InputError(layout.where, defect);
  }
  const std::vector<std::vector<OperatorId>> stages = stages_of(layout, source.model);
  Plan plan;
  std::string note = read_note(arguments, mesh);
  const RecomputeChoice recompute = read_recompute(arguments, source.model, note);
  note += of_training(arguments);
  const std::vector<int> numbers = block_numbers(source.model);
  plan.note = note.empty() ? "" : note.substr(2);
  const int of_replica = mesh.tensor * mesh.context.ranks;
  const int group = of_replica * mesh.replicas;
  const RankOrder order =
      arguments.has("use-tp-pp-dp-mapping") ? RankOrder::tensor_pipeline_data : RankOrder::tensor_data_pipeline;
  if (stages.size() * static_cast<std::size_t>(group) > kMostPlaces) {
    throw InputError(arguments.where("num-layers"), std::to_string(stages.size()) + " stages of " +
                                                        std::to_string(group) + " ranks; allowed: at most " +
                                                        std::to_string(kMostPlaces) + " together");
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.tensor_parallel = mesh.tensor;
    stage.sequence_parallel = mesh.tensor > 1 && arguments.has("sequence-parallel"); // Megatron-LM ignores it for one
    stage.context = mesh.context;
    stage.experts = mesh.experts;
    for (int rank = 0; rank < group; ++rank) {
      stage.devices.push_back(usual_place(order, mesh.ranks, s % mesh.ranks, group, of_replica, rank));
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
                   const std::string& name, std::string_view form, std::string& why) {
  const int stage = operators.empty() ? otherwise : stage_of[operators.front()];
  for (const OperatorId op : operators) {
    if (stage_of[op] != stage && why.empty()) {
      why = name + " is split between stage " + std::to_string(stage) + " and stage " + std::to_string(stage_of[op]) +
            ", and " + std::string(form) + " places whole layers";
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
std::string write_layout(const PlanToWrite& what, int further, std::string_view form, std::string& why) {
  const std::vector<LaidLayer> laid = laid_layers(what.model, further);
  if (laid.size() == 2) { // E and L
    why = "'" + what.model.name + "' has no numbered blocks, which " + std::string(form) + " would call layers";
    return "";
  }
  const std::vector<int> stage_of = stage_of_operators(what.model.size(), what.plan);
  const int last = static_cast<int>(what.plan.stages.size()) - 1;
  std::vector<std::pair<int, char>> tokens;
  for (const LaidLayer& layer : laid) {
    const int otherwise = layer.letter == 'L' ? last : 0;
    tokens.emplace_back(stage_of_layer(stage_of, layer.operators, otherwise, layer.name, form, why), layer.letter);
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
std::string write_layout(const PlanToWrite& what, std::string_view form, std::string& why) {
  std::string layout = write_layout(what, 0, form, why);
  if (const int further = why.empty() ? 0 : further_layers(what.model); further > 0) {
    std::string why_not;
    std::string with_further = write_layout(what, further, form, why_not);
    if (why_not.empty()) {
      why.clear();
      return with_further;
    }
  }
  return layout;
}

// Whether the framework has the schedule, and its stages go over the ranks there and back.
bool goes_back(const PlanToWrite& what, std::string_view form) {
  return form == "torchtitan" && (what.schedule == "zb-v" || what.schedule == "dualpipe-v");
}

// The reason why the stages do not have the ranks that frameworks would give them in this order, or "".
std::string not_in_rank_order(const PlanToWrite& what, std::size_t ranks, std::string_view form, RankOrder order) {
  const Plan& plan = what.plan;
  const Stage& first = plan.stages.front();
  const std::size_t group = first.devices.size();
  const std::size_t of_replica = static_cast<std::size_t>(first.tensor_parallel) * first.context.ranks;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.devices.size() != group || stage.axes() != first.axes()) {
      return "stage " + std::to_string(s) + " has another mesh of devices than stage 0, and " + std::string(form) +
             " has one size";
    }
    const std::size_t round = s % ranks;
    const std::size_t rank = goes_back(what, form) && s / ranks % 2 == 1 ? ranks - 1 - round : round;
    for (std::size_t i = 0; i < group; ++i) {
      if (stage.devices[i] != usual_place(order, ranks, rank, group, of_replica, i)) {
        return "stage " + std::to_string(s) + " is not on the devices that come next on the platform, and " +
               std::string(form) + " gives out ranks in order";
      }
    }
  }
  return "";
}

} // namespace

std::variant<UniformPlan, Infeasible> uniform_plan(const PlanToWrite& what, std::string_view form,
                                                   std::span<const RankOrderRow> orders) {
  const Plan& plan = what.plan;
  const Stage& first = plan.stages.front();
  const std::size_t devices = devices_of(plan).size();
  const std::size_t ranks = std::max<std::size_t>(1, devices / first.devices.size());
  std::string why = not_plain(plan, form, true);
  UniformPlan uniform;
  if (why.empty()) {
    const auto defect_in = [&](const RankOrderRow& row) { return not_in_rank_order(what, ranks, form, row.order); };
    const auto fits =
        std::find_if(orders.begin(), orders.end(), [&](const RankOrderRow& row) { return defect_in(row).empty(); });
    uniform.order = (fits != orders.end() ? *fits : orders.front()).order;
    why = fits != orders.end() ? "" : defect_in(orders.front());
  }
  uniform.layout = why.empty() ? write_layout(what, form, why) : "";
  uniform.devices = static_cast<int>(devices);
  uniform.ranks = static_cast<int>(ranks);
  uniform.replicas = static_cast<int>(first.devices.size()) / (first.tensor_parallel * first.context.ranks);
  const int parts = what.micro_batches * uniform.replicas;
  uniform.micro_batch_size = what.training.global_batch / parts;
  if (why.empty() && what.training.global_batch % parts != 0) {
    why = "a batch of " + std::to_string(what.training.global_batch) + " in " + std::to_string(what.micro_batches) +
          " micro-batches leaves no whole sample for each of " + std::to_string(uniform.replicas) + " replicas";
  }
  if (!why.empty()) {
    return Infeasible{std::move(why)};
  }
  return uniform;
}

WrittenPlan write_megatron_plan(const PlanToWrite& what) {
  const Stage& first = what.plan.stages.front();
  Plan seen = as_frameworks_see(what);
  for (std::size_t s = 0; s < seen.stages.size(); ++s) {
    seen.stages[s].tensor_rule = what.plan.stages[s].tensor_rule; // Megatron-LM has its own alone
  }
  const auto found = uniform_plan({seen, what.model, what.platform, what.training, what.micro_batches, what.schedule},
                                  "Megatron-LM", kRankOrders);
  if (const Infeasible* why = std::get_if<Infeasible>(&found)) {
    return *why;
  }
  const auto& uniform = std::get<UniformPlan>(found);
  const std::string& layout = uniform.layout;
  const auto line = [](const std::string& flag, const std::string& value) { return "--" + flag + " " + value + "\n"; };
  const auto layers = std::count(layout.begin(), layout.end(), 't');
  std::string text = "WORLD_SIZE=" + std::to_string(uniform.devices) + "\n" +
                     line("num-layers", std::to_string(layers)) +
                     line("tensor-model-parallel-size", std::to_string(first.tensor_parallel)) +
                     line("pipeline-model-parallel-size", std::to_string(uniform.ranks)) +
                     line("pipeline-model-parallel-layout", "\"" + layout + "\"") +
                     line("micro-batch-size", std::to_string(uniform.micro_batch_size)) +
                     line("global-batch-size", std::to_string(what.training.global_batch));
  if (const auto further = std::count(layout.begin(), layout.end(), 'm'); further > 0) {
    text += line("mtp-num-layers", std::to_string(further));
  }
  if (first.sequence_parallel) {
    text += "--sequence-parallel\n";
  }
  if (first.context.ranks > 1) {
    constexpr std::array<std::string_view, 4> kTypes = {"p2p", "all_gather", "a2a", "a2a+p2p"}; // by ContextRule
    text += line("context-parallel-size", std::to_string(first.context.ranks)) +
            line("cp-comm-type", std::string(kTypes[static_cast<std::size_t>(first.context.rule)]));
  }
  if (first.context.rule == ContextRule::both) {
    text += line("hierarchical-context-parallel-sizes",
                 std::to_string(first.context.heads) + " " + std::to_string(first.context.loops()));
  }
  if (first.experts.ranks > 1) {
    text += line("expert-model-parallel-size", std::to_string(first.experts.ranks)) +
            line("expert-tensor-parallel-size", std::to_string(first.experts.tensor));
  }
  return text + write_megatron_training(config_of(what, uniform));
}

} // namespace stagecraft
