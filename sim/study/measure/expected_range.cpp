// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/expected_range.hpp"

#include <algorithm>

#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/study/measure/peak_in_use.hpp"
#include "sim/workload/attention_kernels.hpp"

namespace stagecraft {
namespace {

// Whether measured runs tell how far off this one may be: they are priced by shapes of kernels.
bool is_like_measured(const Run& run) {
  return std::all_of(run.cost_basis.begin(), run.cost_basis.end(), [](const CostBasis& basis) {
    return basis.main() == CostSource::fit || basis.main() == CostSource::roofline;
  });
}

// The FLOPs of products that training a sample takes on any machine: gradients cost what the forward pass does.
Flops least_flops(const ModelGraph& model) {
  Flops sum;
  for (const Operator& op : model.operators) {
    if (multiplies(op.kind)) {
      const Flops forward = op.forward.flops / std::max(1.0, op.seen);
      sum += (op.frozen > 0 ? 2.0 : 3.0) * forward;
    }
  }
  return sum;
}

// The time of an iteration whose devices do nothing but products, at their nominal peak; 0 where one's is not known.
Seconds least_seconds(const Study& study, const TaskGraph& graph) {
  const FlopsPerSecond peak = peak_in_use(study, graph, study.training.fp8->products);
  return peak.value > 0 ? least_flops(*study.model) * static_cast<double>(study.training.global_batch) / peak
                        : Seconds{0};
}

// The platform's device type of that name; null where it has none.
const DeviceType* type_called(const Platform& platform, const std::string& name) {
  const auto found = std::find_if(platform.types.begin(), platform.types.end(),
                                  [&](const DeviceType& type) { return type.name == name; });
  return found != platform.types.end() ? &*found : nullptr;
}

// Device types whose products are priced at the nominal peak, which none reaches: their files say no share of it.
std::vector<std::string> types_at_nominal_peak(const Study& study, const Run& run) {
  std::vector<std::string> types;
  for (const CostBasis& basis : run.cost_basis) {
    const DeviceType* type = type_called(study.platform, basis.type);
    if (basis.main() != CostSource::roofline || type == nullptr) {
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

FamilyTraits traits_of(const Study& study, const Run& run) {
  const auto is_expert = [](const Operator& op) { return op.active < 1; };
  const auto& nodes_of = study.platform.devices;
  const bool several = std::any_of(nodes_of.begin(), nodes_of.end(),
                                   [&](const Device& device) { return device.node != nodes_of.front().node; });
  return {.mixture = std::any_of(study.model->operators.begin(), study.model->operators.end(), is_expert),
          .attention = has_attention(*study.model),
          .several_nodes = several,
          .framework = study.training.framework,
          .measured_device = has_measured_devices(study, run)};
}

// The range of its time by measured runs of its family, above what no machine can beat. Those runs were predicted from
// kernels that devices reach: where a file names the peak alone, it is as far off as that peak, too.
RunExpected expected_time(const Study& study, const TaskGraph& graph, const ErrorFamily& family, const Run& run) {
  const std::vector<std::string> nominal = types_at_nominal_peak(study, run);
  return {std::max(family.low(run.metrics.iteration), least_seconds(study, graph)),
          family.high(run.metrics.iteration) / (nominal.empty() ? 1 : kLeastReached),
          family.name + (study.training.framework.empty() ? ", predicted without a framework" : "") +
              (nominal.empty() ? ""
                               : ", twice as long at most, since no 'efficiency' says what share of its peak " +
                                     join(nominal) + " reaches"),
          family.models, family.median};
}

// Of the device whose memory is used by the largest share.
RunExpectedMemory expected_memory(const Study& study, const TaskGraph& graph, const ErrorFamily& family,
                                  const Run& run) {
  RunExpectedMemory expected{.family = family.name, .models = family.models, .median = family.median};
  const std::span<const DeviceId> devices = graph.devices_in_use();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Bytes have = graph.reserve.with(study.platform.type_of(devices[i]).memory, Bytes{0});
    const Bytes peak = run.metrics.peak_memory[i];
    if (expected.device.empty() || peak * expected.have.value > expected.peak * have.value) {
      expected.device = study.platform.devices[devices[i]].name;
      expected.peak = peak;
      expected.have = have;
    }
  }
  expected.low = family.low(expected.peak);
  expected.high = family.high(expected.peak);
  return expected;
}

} // namespace

bool has_measured_devices(const Study& study, const Run& run) {
  return std::all_of(run.cost_basis.begin(), run.cost_basis.end(), [&](const CostBasis& basis) {
    const DeviceType* type = type_called(study.platform, basis.type);
    const KernelFits* fits = type != nullptr ? type->fits.get() : nullptr;
    return fits != nullptr && (!fits->scale || fits->scale->processors == 1);
  });
}

void add_expected(const Study& study, const TaskGraph& graph, Run& run) {
  if (!is_like_measured(run)) {
    return;
  }
  FamilyTraits traits = traits_of(study, run);
  if (const auto family = narrowest_family(study.error_families, traits)) {
    run.expected = expected_time(study, graph, *family, run);
  }
  traits.time = false;
  if (const auto family = narrowest_family(study.error_families, traits)) {
    run.expected_memory = expected_memory(study, graph, *family, run);
  }
}

} // namespace stagecraft
