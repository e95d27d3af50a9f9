// The table of strategies.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/estimate/total_memory.hpp"
#include "sim/strategy/dynamic_programming/max_load/max_load.hpp"
#include "sim/strategy/heuristic/mend_cuts.hpp"
#include "sim/strategy/plan_in_groups.hpp"
#include "sim/strategy/strategy.hpp"

namespace stagecraft {
namespace {

constexpr DeviceLimit kEachPair{4096, "it looks at the path between each two of them"};
constexpr DeviceLimit kEachReplay{4096, "it measures each plan that it tries"};
constexpr DeviceLimit kEachNumber{512, "its table has an entry for each number of stages, devices and replicas"};

} // namespace

// Declares the function of a strategy's own file and calls it, so that a strategy is one file and one row.
#define SPLIT(function)                                                                                                \
  [](const PlanRequest& request) {                                                                                     \
    PlanResult function(const PlanRequest&);                                                                           \
    return function(request);                                                                                          \
  }

// NOLINTNEXTLINE(readability-function-size): a table
std::span<const StrategyRow> strategies() {
  static constexpr std::array kRows = {
      StrategyRow{.name = "single",
                  .help = "the whole model on the fastest device that holds it",
                  .split = SPLIT(split_single),
                  .at_every_count = true},
      StrategyRow{.name = "data-parallel",
                  .help = "the whole model on every device, samples in proportion to speed",
                  .split = SPLIT(split_data_parallel),
                  .at_every_count = true},
      StrategyRow{.name = "framework",
                  .help = "data-parallel with one stream, one loader worker and cores that spin (Wang et al. 2024)",
                  .split = SPLIT(split_framework),
                  .at_every_count = true},
      StrategyRow{.name = "uniform",
                  .help = "the same number of operators in every stage",
                  .split = SPLIT(split_uniform),
                  .pipeline = true},
      StrategyRow{.name = "parameters",
                  .help = "about the same number of parameters in every stage (DeepSpeed)",
                  .split = SPLIT(split_parameters),
                  .pipeline = true},
      StrategyRow{.name = "block-partition",
                  .help = "blocks of about the same time (torchgpipe)",
                  .split = SPLIT(split_block_partition),
                  .pipeline = true},
      StrategyRow{.name = "capability",
                  .help = "static load in proportion to nominal power, then repaired to fit memory (Wang et al. 2020)",
                  .split = SPLIT(split_capability),
                  .pipeline = true},
      StrategyRow{.name = "capability-refined",
                  .help = "capability, then single layers are moved as long as the largest load falls",
                  .split = SPLIT(split_capability_refined),
                  .pipeline = true},
      StrategyRow{.name = "capability-calibrated",
                  .help = "capability with the power that the cost model gives the devices",
                  .split = SPLIT(split_capability_calibrated),
                  .pipeline = true},
      StrategyRow{.name = "by-hand",
                  .help = "a model of manual work: uniform, then one boundary moved per trial, five trials",
                  .split = SPLIT(split_by_hand),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{.name = "antichain",
                  .help = "antichain DAG, its states in order, divided over the devices in theirs (Ju et al. 2024)",
                  .split = SPLIT(split_antichain),
                  .pipeline = true},
      StrategyRow{
          .name = "layered",
          .help = "levels of the graph grouped into stages, kernels on several streams per device (Wang et al. 2024)",
          .split = SPLIT(split_layered),
          .pipeline = true,
          .searches = true},
      StrategyRow{.name = "mesh",
                  .help = "the degrees that training.parallel gives, layers in equal shares, by time or as given",
                  .split = SPLIT(split_mesh),
                  .pipeline = true,
                  .takes_degrees = true},
      StrategyRow{.name = "optimal",
                  .help = "the least bottleneck of all pipelines, also with several stages per device",
                  .split = SPLIT(split_optimal),
                  .pipeline = true},
      StrategyRow{.name = "piper",
                  .help = "data, tensor and pipeline parallelism with recompute, by least load (Tarnawski et al. 2021)",
                  .split = SPLIT(split_piper),
                  .over_groups = true,
                  .devices = kEachNumber},
      StrategyRow{
          .name = "amp",
          .help =
              "tensor, data and pipeline degrees, layers cut for least latency, ranks pipeline first (Li et al. 2022)",
          .split = SPLIT(split_amp),
          .over_groups = true,
          .devices = kEachPair},
      StrategyRow{.name = "eft",
                  .help = "each operator where it finishes earliest in a running pipeline (2022 patent's placement)",
                  .split = SPLIT(split_earliest_finish),
                  .over_groups = true,
                  .devices = kEachPair},
      StrategyRow{.name = "eft-contiguous",
                  .help = "eft, but data never goes back to an earlier device",
                  .split = SPLIT(split_earliest_finish_contiguous),
                  .pipeline = true,
                  .devices = kEachPair},
      StrategyRow{
          .name = "heft",
          .help =
              "each operator where one micro-batch finishes earliest, longest path to go first (Topcuoglu et al. 2002)",
          .split = SPLIT(split_heft),
          .over_groups = true,
          .devices = kEachPair},
      StrategyRow{.name = "ideal",
                  .help = "least max-load over all ideals, load being work plus transfers (Tarnawski et al. 2020)",
                  .split = SPLIT(split_ideal),
                  .over_groups = true,
                  .devices = kEachPair,
                  .in_one_order = "ideal-linear"},
      StrategyRow{.name = "ideal-linear",
                  .help = "ideal along one order of the operators: nearly as good, and fast",
                  .split = SPLIT(split_ideal_linear),
                  .over_groups = true,
                  .devices = kEachPair},
      StrategyRow{.name = "mcmc",
                  .help = "a random walk over stages and replicas, each plan replayed (Jia et al. 2019, FlexFlow)",
                  .split = SPLIT(split_mcmc),
                  .over_groups = true,
                  .searches = true,
                  .devices = kEachReplay},
      StrategyRow{
          .name = "random", .help = "random cuts and order of devices", .split = SPLIT(split_random), .pipeline = true},
      StrategyRow{.name = "best-of-random",
                  .help = "the fastest of many random splits, each replayed",
                  .split = SPLIT(split_best_of_random),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{
          .name = "pipedream",
          .help =
              "replicated stages over devices and nodes, least stage time in the steady state (Narayanan et al. 2019)",
          .split = SPLIT(split_pipedream),
          .pipeline = true},
      StrategyRow{.name = "dapple",
                  .help =
                      "replicated stages with the least latency, placed on servers by three policies (Fan et al. 2021)",
                  .split = SPLIT(split_dapple),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{.name = "best-known",
                  .help =
                      "a reference: the fastest in replay of all other strategies' plans, then moved while that helps",
                  .split = SPLIT(split_best_known),
                  .searches = true,
                  .devices = kEachReplay,
                  .reference = true},
      StrategyRow{.name = "dynamic",
                  .help = "weights per device from measured waiting times, a new split from the weights (2022 patent)",
                  .split = SPLIT(split_dynamic),
                  .over_groups = true,
                  .searches = true,
                  .devices = kEachPair},
  };
  return kRows;
}

#undef SPLIT

namespace {

bool refuses(const StrategyRow& strategy, std::size_t devices) {
  return devices > static_cast<std::size_t>(strategy.devices.most);
}

// Whether each operator reads the one before it, so that its ideals are few enough and nested.
bool has_one_order(const ModelGraph& model) {
  for (OperatorId op = 1; op < model.size(); ++op) {
    const auto& makers = model.predecessors[op];
    if (!std::binary_search(makers.begin(), makers.end(), op - 1)) {
      return false;
    }
  }
  return model.size() < kMostIdeals;
}

// Where the training gives degrees, over the groups that these make.
PlanResult split(const StrategyRow& strategy, const PlanRequest& request) {
  if (!request.problem.training.parallel) {
    if (strategy.takes_degrees) {
      return Infeasible{std::string(strategy.name) +
                        " takes its degrees from training.parallel, which is not given; allowed: "
                        "parallel: {tensor: 2, pipeline: 2} and so on"};
    }
    const auto shortage = total_shortage(request.problem, request.devices); // no search finds what cannot be
    return shortage ? Infeasible{to_text(*shortage)} : strategy.split(request);
  }
  if (!strategy.keeps_degrees()) {
    return Infeasible{std::string(strategy.name) +
                      " makes no pipelines of groups, as training.parallel asks for; allowed: a strategy that does, "
                      "such as mesh"};
  }
  if (const ParallelDegrees& degrees = *request.problem.training.parallel;
      degrees.is_uneven() && !strategy.takes_degrees) {
    const char* const why = degrees.layers ? " chooses the layers of each stage, which training.parallel.layers gives"
                            : !degrees.ranks.empty()
                                ? " makes groups of one size, and training.parallel.ranks gives several"
                                : " shares samples as it sees fit, or equally, and "
                                  "training.parallel.shares says how";
    return Infeasible{std::string(strategy.name) + why + "; allowed: mesh"};
  }
  return plan_in_groups(strategy, request);
}

} // namespace

const StrategyRow& planner_of(const StrategyRow& strategy, const ModelGraph& model, std::size_t devices) {
  if (strategy.in_one_order.empty() || refuses(strategy, devices) || !has_one_order(model)) {
    return strategy;
  }
  const auto rows = strategies();
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const StrategyRow& row) { return row.name == strategy.in_one_order; });
}

PlanResult make_plan(const StrategyRow& strategy, const PlanRequest& request) {
  if (refuses(strategy, request.devices.size())) {
    return Infeasible{std::string(strategy.name) + " plans for at most " + std::to_string(strategy.devices.most) +
                      " devices, not for " + std::to_string(request.devices.size()) + ": " +
                      std::string(strategy.devices.why)};
  }
  PlanResult result = split(strategy, request);
  if (std::holds_alternative<Infeasible>(result)) {
    return result;
  }
  Plan& plan = std::get<Plan>(result);
  plan.strategy = strategy.name;
  if (const std::string lacks = missing_kernel(request.problem, plan); !lacks.empty()) {
    return Infeasible{lacks};
  }
  if (const std::string replicated = replicated_indivisible(plan, request.problem.model); !replicated.empty()) {
    return Infeasible{replicated};
  }
  const auto shortage = [&](const Plan& one) {
    return plan_shortage(request.problem, one, request.chunks, request.in_flight, request.versions,
                         request.stage_placement);
  };
  if (const auto lacks = shortage(plan)) {
    return Infeasible{to_text(*lacks, request.problem.platform)};
  }
  if (auto mended = strategy.takes_degrees ? std::nullopt : mend_cuts(request.problem, plan)) {
    if (shortage(*mended)) {
      plan.memory_bound = true;
    } else {
      plan = std::move(*mended);
    }
  }
  return result;
}

} // namespace stagecraft
