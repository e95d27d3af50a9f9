// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/measure_run.hpp"

#include <algorithm>
#include <array>

#include "sim/study/measure/cost_basis.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/measure/perturb_runs.hpp"
#include "sim/workload/attention_kernels.hpp"
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

// What is simulated once, by places in the list of devices.
void list_classes(const TaskGraph& graph, Run& run) {
  if (graph.folded.devices.empty()) {
    return;
  }
  std::vector<std::vector<std::int32_t>> classes(graph.devices.size());
  for (std::size_t device = 0; device < graph.folded.devices.size(); ++device) {
    classes[graph.simulated(device)].push_back(static_cast<std::int32_t>(device));
  }
  for (const std::vector<std::int32_t>& alike : classes) {
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

// What the devices in use compute together by the peak of each one's type; 0 where one's is not known.
template <class Peak> FlopsPerSecond together(const Study& study, const TaskGraph& graph, Peak peak_of) {
  FlopsPerSecond sum;
  for (const DeviceId device : graph.devices_in_use()) {
    const FlopsPerSecond one = peak_of(study.platform.type_of(device));
    if (one.value == 0) {
      return one;
    }
    sum += one;
  }
  return sum;
}

FlopsPerSecond peak_of(const DeviceType& type, std::optional<Precision> precision) {
  return precision ? type.peak[static_cast<std::size_t>(*precision)].value_or(FlopsPerSecond{0}) : FlopsPerSecond{0};
}

// Nothing where the peak of a device in use is not known.
void add_flops_utilization(const Study& study, const TaskGraph& graph, const Plan& plan, Run& run) {
  const FlopsPerSecond peak =
      together(study, graph, [&](const DeviceType& type) { return peak_of(type, study.training.precision); });
  const Flops could = peak * run.metrics.iteration;
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

// Whether measured runs tell how far off this one may be: they are priced by shapes of kernels.
bool is_like_measured(const Run& run) {
  return std::all_of(run.cost_basis.begin(), run.cost_basis.end(), [](const CostBasis& basis) {
    return basis.main() == CostSource::fits || basis.main() == CostSource::roofline;
  });
}

// The FLOPs of products that training a sample takes on any machine: gradients cost what the forward pass does.
Flops least_flops(const ModelGraph& model) {
  Flops sum;
  for (const Operator& op : model.operators) {
    if (row_of(op.kind).matrix) {
      const Flops forward = op.forward.flops / std::max(1.0, op.seen);
      sum += (op.frozen > 0 ? 2.0 : 3.0) * forward;
    }
  }
  return sum;
}

// The time of an iteration whose devices do nothing but products, at their nominal peak; 0 where one's is not known.
Seconds least_seconds(const Study& study, const TaskGraph& graph) {
  const FlopsPerSecond peak = together(study, graph, [&](const DeviceType& type) {
    const FlopsPerSecond own = peak_of(type, study.training.precision);
    return own.value > 0 ? std::max(own, peak_of(type, study.training.fp8->products)) : own;
  });
  return peak.value > 0 ? least_flops(*study.model) * static_cast<double>(study.training.global_batch) / peak
                        : Seconds{0};
}

// Device types whose products are priced at the nominal peak, which none reaches: their files say no share of it.
std::vector<std::string> types_at_nominal_peak(const Study& study, const Run& run) {
  std::vector<std::string> types;
  for (const CostBasis& basis : run.cost_basis) {
    const auto type = std::find_if(study.platform.types.begin(), study.platform.types.end(),
                                   [&](const DeviceType& one) { return one.name == basis.type; });
    if (basis.main() != CostSource::roofline || type == study.platform.types.end()) {
      continue;
    }
    const FlopsPerSecond peak = peak_of(*type, study.training.precision);
    const auto reached = type->rate(KernelKind::matmul, study.training.precision);
    if (peak.value > 0 && reached && *reached >= peak) {
      types.push_back(basis.type);
    }
  }
  return types;
}

// Shipped device types, measured or not, reach 0.48 to 0.9 of their peaks in products.
constexpr double kLeastReached = 0.5;

// The range of its time by measured runs of its family, above what no machine can beat. Those runs were predicted from
// kernels that devices reach: where a file names the peak alone, it is as far off as that peak, too.
void add_expected(const Study& study, const TaskGraph& graph, Run& run) {
  if (!is_like_measured(run)) {
    return;
  }
  const auto is_expert = [](const Operator& op) { return op.active < 1; };
  const auto& nodes_of = study.platform.devices;
  const bool several = std::any_of(nodes_of.begin(), nodes_of.end(),
                                   [&](const Device& device) { return device.node != nodes_of.front().node; });
  const auto family =
      narrowest_family(study.error_families,
                       {.mixture = std::any_of(study.model->operators.begin(), study.model->operators.end(), is_expert),
                        .attention = has_attention(*study.model),
                        .several_nodes = several,
                        .framework = study.training.framework});
  if (family) {
    const Seconds centre = run.metrics.iteration * family->centre;
    const std::vector<std::string> nominal = types_at_nominal_peak(study, run);
    run.expected = RunExpected{
        std::max(centre / family->factor, least_seconds(study, graph)),
        centre * family->factor / (nominal.empty() ? 1 : kLeastReached),
        family->name + (study.training.framework.empty() ? ", predicted without a framework" : "") +
            (nominal.empty() ? ""
                             : ", twice as long at most, since no 'efficiency' says what share of its peak " +
                                   join(nominal) + " reaches"),
        family->models, family->median};
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
    list_classes(graph, run);
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
      run.cost_basis = cost_basis_of(costs, prepared);
      add_expected(study, graph, run);
    }
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
