// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/measure_run.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/study/measure/cost_basis.hpp"
#include "sim/study/measure/expected_range.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/measure/peak_in_use.hpp"
#include "sim/study/measure/perturb_runs.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

void name_devices(const Platform& platform, const TaskGraph& graph, Run& run) {
  std::vector<char> used(platform.devices.size(), 0);
  for (const DeviceId device : graph.devices_in_use()) {
    run.devices.push_back(platform.devices[device].name);
    used[device] = 1;
  }
  for (DeviceId device = 0; device < static_cast<DeviceId>(platform.devices.size()); ++device) {
    if (used[device] == 0) {
      run.unused_devices.push_back(platform.devices[device].name);
    }
  }
}

// What is simulated once, by places in the list of devices; and how many replicas of a stage, of all or of some ranks.
void list_classes(const TaskGraph& graph, const Plan& plan, Run& run) {
  if (graph.folded.devices.empty()) {
    return;
  }
  std::map<DeviceId, DeviceId> replica_of; // by the replica's first device
  for (const Stage& stage : plan.stages) {
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
      replica_of.try_emplace(stage.devices[i], stage.devices[i - i % degree]);
    }
  }
  std::vector<std::vector<std::int32_t>> classes(graph.devices.size());
  std::vector<std::set<DeviceId>> replicas(graph.devices.size());
  for (std::size_t device = 0; device < graph.folded.devices.size(); ++device) {
    classes[graph.simulated(device)].push_back(static_cast<std::int32_t>(device));
    replicas[graph.simulated(device)].insert(replica_of.at(graph.folded.devices[device]));
  }
  for (const std::set<DeviceId>& alike : replicas) {
    run.folded_replicas = std::max(run.folded_replicas, static_cast<int>(alike.size()));
  }
  run.classes = std::move(classes);
}

// Prices of what is in use. Where nothing costs anything there are none.
void name_prices(const Platform& platform, const TaskGraph& graph, Run& run) {
  if (run.metrics.cost.value <= 0) {
    return;
  }
  for (const DeviceId device : graph.devices_in_use()) {
    const DeviceType& type = platform.type_of(device);
    add_prices(run.prices, std::array{NamedPrice{type.name, type.price}});
  }
  for (const DeviceId device : graph.devices_in_use()) {
    const Price& price = platform.nodes[platform.devices[device].node].host.price;
    if (price.rate.value > 0) {
      add_prices(run.prices, std::array{NamedPrice{"host", price}});
    }
  }
}

void add_loader(const TaskGraph& graph, Run& run) {
  if (graph.workers == 0) {
    return;
  }
  const auto host = std::find_if(kHostWaits.begin(), kHostWaits.end(),
                                 [&](const HostWaitRow& row) { return row.wait == graph.host; });
  run.loader = RunLoader{graph.workers, graph.queue, std::string(host->name)};
  run.data_stall = *std::max_element(run.metrics.stall.begin(), run.metrics.stall.end());
}

void add_rates(const Study& study, Run& run) {
  constexpr double kMillion = 1e6;
  const double batch = study.training.global_batch;
  run.samples_per_second = run.metrics.iteration.value > 0 ? batch / run.metrics.iteration.value : 0;
  run.tokens_per_second = run.samples_per_second * tokens_of(*study.model);
  run.energy_per_sample = run.metrics.energy.total() / batch;
  run.cost_per_million_samples = run.metrics.cost * (kMillion / batch);
}

// FLOPs of the products that run forward again for a sample, counted as those of the model are.
Flops recomputed_flops(const ModelGraph& model, const Plan& plan) {
  Flops sum;
  for (const Stage& stage : plan.stages) {
    for (const OperatorId op : stage.operators) {
      if (stage.recomputes(op)) {
        sum += product_flops(model.operators[op]);
      }
    }
  }
  return sum;
}

// Nothing where the peak of a device in use is not known.
void add_flops_utilization(const Study& study, const TaskGraph& graph, const Plan& plan, Run& run) {
  const Flops could = peak_in_use(study, graph) * run.metrics.iteration;
  if (could.value > 0) {
    const double batch = study.training.global_batch;
    const Flops of_model = model_flops(*study.model);
    run.mfu = of_model * batch / could;
    run.hfu = (of_model + recomputed_flops(*study.model, plan)) * batch / could;
  }
}

// What the run is compared with: one device, the bound, its busiest link.
void add_comparisons(StudyCosts& costs, const TaskGraph& graph, bool from_empty, Run& run) {
  const Platform& platform = costs.study().platform;
  const Seconds iteration = run.metrics.iteration;
  run.speedup = iteration.value > 0 ? costs.single_device_seconds() / iteration : 0;
  int streams = 1;
  for (const RunStage& stage : run.stages) {
    streams = std::max(streams, stage.streams);
  }
  run.lower_bound = streams > 1 ? costs.bound_of_streams(streams) : costs.bound(from_empty);
  const BusiestLink busiest = busiest_link(graph, platform, iteration);
  if (busiest.link >= 0) {
    run.busiest_link = platform.links[busiest.link].name;
    run.busiest_link_share = busiest.share;
  }
}

} // namespace

void measure_run(StudyCosts& costs, Prepared& prepared, const Timeline* alone) {
  const Study& study = costs.study();
  const TaskGraph& graph = *prepared.graph;
  Run& run = prepared.run;
  run.metrics = measure(graph, prepared.timeline, study.platform);
  if (!prepared.brief) {
    run.per_device = study.per_device;
    name_devices(study.platform, graph, run);
    list_classes(graph, prepared.plan, run);
    name_prices(study.platform, graph, run);
  }
  const std::vector<std::string> overflows = memory_overflows(study.platform, graph, run.metrics);
  run.why_not = overflows.empty() ? "" : overflows.front();
  run.feasible = overflows.empty();
  run.would_fit = memory_that_fits(study.platform, graph, run.metrics);
  if (run.feasible) {
    add_loader(graph, run);
    add_rates(study, run);
    add_flops_utilization(study, graph, prepared.plan, run);
    if (!prepared.brief) {
      add_comparisons(costs, graph, prepared.timeline.iterations == 1, run);
    }
    run.cost_basis = cost_basis_of(costs, prepared);
    add_expected(study, graph, run);
    if (study.perturb) {
      run.perturbed =
          spread_of(perturbed_iterations(*study.perturb, study.platform, graph, prepared.timeline.iterations,
                                         prepared.timeline.window, *study.engine, study.seed));
    }
  }
  if (alone != nullptr) {
    run.metrics.makespan = measure(*prepared.alone, *alone, study.platform).makespan;
  }
}

} // namespace stagecraft
