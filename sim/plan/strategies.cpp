// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/plan/check_plan.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan/strategy.hpp"

namespace stagecraft {

std::span<const StrategyRow> strategies() {
  static constexpr std::array kRows = {
      StrategyRow{"single", "the whole model on the fastest device that holds it", split_single, false},
      StrategyRow{"data-parallel", "the whole model everywhere, samples in proportion to speed", split_data_parallel,
                  false},
      StrategyRow{"framework",
                  "data-parallel, one stream, a lone worker that loads, cores that spin (Wang et al. 2024)",
                  split_framework, false},
      StrategyRow{"uniform", "the same number of operators in every stage", split_uniform, true},
      StrategyRow{"parameters", "about the same number of parameters in every stage (DeepSpeed)", split_parameters,
                  true},
      StrategyRow{"block-partition", "blocks of about the same time (torchgpipe)", split_block_partition, true},
      StrategyRow{"capability", "static load in proportion to nominal power, memory repaired (Wang et al. 2020)",
                  split_capability, true},
      StrategyRow{"capability-refined", "capability, then single layers moved while the worst load falls",
                  split_capability_refined, true},
      StrategyRow{"capability-calibrated", "capability with the power that the cost model gives the devices",
                  split_capability_calibrated, true},
      StrategyRow{"by-hand", "uniform, then one boundary moved per trial, five trials: manual work, modelled",
                  split_by_hand, true, true},
      StrategyRow{"antichain", "dynamic programming over antichain states and devices (Ju et al. 2024)",
                  split_antichain, true},
      StrategyRow{"layered", "levels of the graph in stages, kernels on streams of each device (Wang et al. 2024)",
                  split_layered, true},
      StrategyRow{"optimal", "least bottleneck of all pipelines, several stages per device too: the reference",
                  split_optimal, true},
      StrategyRow{"piper",
                  "data, tensor and pipeline parallelism with recompute, by least load (Tarnawski et al. 2021)",
                  split_piper, false},
      StrategyRow{"amp", "degrees of all three kinds and layers cut for latency, ranks pipeline first (Li et al. 2022)",
                  split_amp, false},
      StrategyRow{"eft", "each operator where it finishes earliest in a running pipeline (2022 patent's placement)",
                  split_earliest_finish, false},
      StrategyRow{"eft-contiguous", "eft with devices never going back along a path", split_earliest_finish_contiguous,
                  true},
      StrategyRow{"heft",
                  "each operator where one micro-batch finishes earliest, longest way to go first "
                  "(Topcuoglu et al. 2002)",
                  split_heft, false},
      StrategyRow{"ideal", "least max-load over all ideals, tensors counted with the work (Tarnawski et al. 2020)",
                  split_ideal, false},
      StrategyRow{"ideal-linear", "ideal along one order of the operators: nearly as good, and fast",
                  split_ideal_linear, false},
      StrategyRow{"mcmc", "a random walk over stages and replicas, each plan replayed (Jia et al. 2019, FlexFlow)",
                  split_mcmc, false, true},
      StrategyRow{"random", "cuts and order of devices by chance", split_random, true},
      StrategyRow{"best-of-random", "the fastest in replay of many random splits", split_best_of_random, true, true},
      StrategyRow{"pipedream",
                  "stages with replicas over devices and nodes, least steady stage time (Narayanan et al. 2019)",
                  split_pipedream, true},
      StrategyRow{"dapple", "replicated stages of least latency, placed on servers by three policies (Fan et al. 2021)",
                  split_dapple, true, true},
      StrategyRow{"dynamic", "weights per device from measured waiting times, a new split from them (2022 patent)",
                  split_dynamic, false, true},
  };
  return kRows;
}

std::string missing_kernel(const Problem& problem, const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    for (const DeviceId device : stage.devices) {
      if (std::string lacks = missing_kernel(problem, problem.type_index(device), stage.operators); !lacks.empty()) {
        return lacks;
      }
    }
  }
  return "";
}

std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, int chunks,
                                            const std::function<double(int, int)>& in_flight, int versions,
                                            Dealing dealing) {
  const auto all_in_flight = [&](int, int) { return static_cast<double>(problem.micro_batches); };
  const bool named = is_pipeline(plan, chunks, dealing) || plan.stages.size() == 1;
  return memory_shortage(problem, plan, cost_plan(problem, plan), named ? in_flight : all_in_flight, versions);
}

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
  if (const auto shortage =
          plan_shortage(request.problem, plan, request.chunks, request.in_flight, request.versions, request.dealing)) {
    return Infeasible{to_text(*shortage, request.problem.platform)};
  }
  return result;
}

} // namespace stagecraft
