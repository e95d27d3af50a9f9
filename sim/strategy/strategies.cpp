// The table of strategies.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/plan/check_plan.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/strategy/strategy.hpp"

namespace stagecraft {

// Calls the function of a strategy's own file, which it also declares: so a strategy is one file and one row.
#define SPLIT(function)                                                                                                \
  [](const PlanRequest& request) {                                                                                     \
    PlanResult function(const PlanRequest&);                                                                           \
    return function(request);                                                                                          \
  }

std::span<const StrategyRow> strategies() {
  static constexpr std::array kRows = {
      StrategyRow{.name = "single",
                  .help = "the whole model on the fastest device that holds it",
                  .split = SPLIT(split_single)},
      StrategyRow{.name = "data-parallel",
                  .help = "the whole model everywhere, samples in proportion to speed",
                  .split = SPLIT(split_data_parallel)},
      StrategyRow{.name = "framework",
                  .help = "data-parallel, one stream, a lone worker that loads, cores that spin (Wang et al. 2024)",
                  .split = SPLIT(split_framework)},
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
                  .help = "static load in proportion to nominal power, memory repaired (Wang et al. 2020)",
                  .split = SPLIT(split_capability),
                  .pipeline = true},
      StrategyRow{.name = "capability-refined",
                  .help = "capability, then single layers moved while the worst load falls",
                  .split = SPLIT(split_capability_refined),
                  .pipeline = true},
      StrategyRow{.name = "capability-calibrated",
                  .help = "capability with the power that the cost model gives the devices",
                  .split = SPLIT(split_capability_calibrated),
                  .pipeline = true},
      StrategyRow{.name = "by-hand",
                  .help = "uniform, then one boundary moved per trial, five trials: manual work, modelled",
                  .split = SPLIT(split_by_hand),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{.name = "antichain",
                  .help = "dynamic programming over antichain states and devices (Ju et al. 2024)",
                  .split = SPLIT(split_antichain),
                  .pipeline = true},
      StrategyRow{.name = "layered",
                  .help = "levels of the graph in stages, kernels on streams of each device (Wang et al. 2024)",
                  .split = SPLIT(split_layered),
                  .pipeline = true},
      StrategyRow{.name = "optimal",
                  .help = "least bottleneck of all pipelines, several stages per device too: the reference",
                  .split = SPLIT(split_optimal),
                  .pipeline = true},
      StrategyRow{.name = "piper",
                  .help = "data, tensor and pipeline parallelism with recompute, by least load (Tarnawski et al. 2021)",
                  .split = SPLIT(split_piper)},
      StrategyRow{.name = "amp",
                  .help =
                      "degrees of all three kinds and layers cut for latency, ranks pipeline first (Li et al. 2022)",
                  .split = SPLIT(split_amp)},
      StrategyRow{.name = "eft",
                  .help = "each operator where it finishes earliest in a running pipeline (2022 patent's placement)",
                  .split = SPLIT(split_earliest_finish)},
      StrategyRow{.name = "eft-contiguous",
                  .help = "eft with devices never going back along a path",
                  .split = SPLIT(split_earliest_finish_contiguous),
                  .pipeline = true},
      StrategyRow{
          .name = "heft",
          .help =
              "each operator where one micro-batch finishes earliest, longest path to go first (Topcuoglu et al. 2002)",
          .split = SPLIT(split_heft)},
      StrategyRow{.name = "ideal",
                  .help = "least max-load over all ideals, tensors counted with the work (Tarnawski et al. 2020)",
                  .split = SPLIT(split_ideal)},
      StrategyRow{.name = "ideal-linear",
                  .help = "ideal along one order of the operators: nearly as good, and fast",
                  .split = SPLIT(split_ideal_linear)},
      StrategyRow{.name = "mcmc",
                  .help = "a random walk over stages and replicas, each plan replayed (Jia et al. 2019, FlexFlow)",
                  .split = SPLIT(split_mcmc),
                  .searches = true},
      StrategyRow{.name = "random",
                  .help = "cuts and order of devices by chance",
                  .split = SPLIT(split_random),
                  .pipeline = true},
      StrategyRow{.name = "best-of-random",
                  .help = "the fastest in replay of many random splits",
                  .split = SPLIT(split_best_of_random),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{.name = "pipedream",
                  .help =
                      "stages with replicas over devices and nodes, least steady stage time (Narayanan et al. 2019)",
                  .split = SPLIT(split_pipedream),
                  .pipeline = true},
      StrategyRow{.name = "dapple",
                  .help = "replicated stages of least latency, placed on servers by three policies (Fan et al. 2021)",
                  .split = SPLIT(split_dapple),
                  .pipeline = true,
                  .searches = true},
      StrategyRow{.name = "dynamic",
                  .help = "weights per device from measured waiting times, a new split from them (2022 patent)",
                  .split = SPLIT(split_dynamic),
                  .searches = true},
  };
  return kRows;
}

#undef SPLIT

PlanResult make_plan(const StrategyRow& strategy, const PlanRequest& request) {
  PlanResult result = strategy.split(request);
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
  if (const auto shortage = plan_shortage(request.problem, plan, request.chunks, request.in_flight, request.versions,
                                          request.stage_placement)) {
    return Infeasible{to_text(*shortage, request.problem.platform)};
  }
  return result;
}

} // namespace stagecraft
