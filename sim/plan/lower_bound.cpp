// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/lower_bound.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/cost/alike_times.hpp"
#include "sim/cost/streams.hpp"
#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {
namespace {

double finite_or_zero(double value) { return std::isinf(value) ? 0 : value; }

// Optimiser step without its launch, which a device pays once for all its operators.
double step_seconds(const Problem& problem, OperatorId op, const DeviceType& type) {
  const double parameters = problem.model.operators[op].parameters;
  return std::max(0.0, (optimizer_time(problem.training, parameters, type) - type.launch_overhead).value);
}

// The bytes that a device holds for an operator under any schedule.
double state_bytes(const Problem& problem, OperatorId op) {
  if (!problem.model.configurations.empty()) { // each device of a group holds its shard
    double least = kInfinity;
    for (const Configuration& one : problem.model.configurations[op]) {
      least = std::min(least, one.tensor_parallel * one.resident.value);
    }
    return finite_or_zero(least);
  }
  const Operator& what = problem.model.operators[op];
  const StageAmounts amounts{.parameters = what.parameters, .resident = Bytes{what.resident_bytes}};
  return memory_of_stage(problem, amounts, Recompute::none).fixed(1).value;
}

} // namespace

LeastTimes least_times(const Problem& problem, const std::vector<DeviceId>& devices) {
  const std::size_t types = problem.platform.types.size();
  const std::vector<double> none(problem.model.size(), kInfinity);
  LeastTimes times{std::vector<int>(types, 0), {types, none}, {types, none}, {types, none}};
  for (const DeviceId device : devices) {
    ++times.devices[problem.type_index(device)];
  }
  const std::vector<OperatorId> first = first_alike(problem.cost, problem.model.size());
  const AnyPart part{problem.samples, static_cast<int>(devices.size())};
  for (std::size_t type = 0; type < types; ++type) {
    for (OperatorId op = 0; op < problem.model.size() && times.devices[type] > 0; ++op) {
      if (first[op] != op) {
        times.forward[type][op] = times.forward[type][first[op]];
        times.backward_input[type][op] = times.backward_input[type][first[op]];
        times.all[type][op] = times.all[type][first[op]];
      } else if (const auto least =
                     problem.cost.least_time(op, problem.platform.types[type], problem.training.precision, part)) {
        times.forward[type][op] = least->each.forward.value * problem.samples;
        times.backward_input[type][op] = least->each.backward_input.value * problem.samples;
        times.all[type][op] = least->all.value * problem.samples;
      }
    }
  }
  return times;
}

namespace {

// A point of the dual problem, its value, and what its primal answer puts on each device type.
struct Dual {
  std::vector<double> weights, prices; // [type], for each device: y, and p in seconds per byte of memory
  double value = 0;
  std::vector<double> load, held; // [type], of all its devices
};

class WorkDual {
public:
  WorkDual(const Problem& problem, const LeastTimes& times) : problem_(problem), times_(times) {
    for (OperatorId op = 0; op < problem.model.size(); ++op) {
      bytes_.push_back(state_bytes(problem, op));
      all_bytes_ += bytes_.back();
    }
    for (std::size_t type = 0; type < times.devices.size(); ++type) {
      std::vector<double>& steps = steps_.emplace_back();
      for (OperatorId op = 0; op < problem.model.size(); ++op) {
        steps.push_back(step_seconds(problem, op, problem.platform.types[type]));
      }
      memory_.push_back(times.devices[type] * problem.platform.types[type].memory.value);
    }
  }

  // Weights in proportion to speed on the whole model.
  Dual start() const {
    Dual dual{.weights = std::vector<double>(types(), 0.0), .prices = std::vector<double>(types(), 0.0)};
    for (std::size_t type = 0; type < types(); ++type) {
      double whole = 0;
      for (const double seconds : times_.all[type]) {
        whole += finite_or_zero(seconds);
      }
      dual.weights[type] = times_.devices[type] > 0 && whole > 0 ? 1 / whole : 0;
    }
    normalize(dual);
    evaluate(dual);
    return dual;
  }

  // One step along the gradient: more weight for types that have more than their share of the work, a higher price for
  // types whose memory is exceeded.
  Dual step(Dual dual, double size) const {
    const double price_unit = dual.value / std::max(all_bytes_, 1.0);
    for (std::size_t type = 0; type < types(); ++type) {
      if (times_.devices[type] == 0) {
        continue;
      }
      constexpr double kMost = 4;
      dual.weights[type] *=
          std::exp(size * std::min(kMost, dual.load[type] / times_.devices[type] / std::max(dual.value, 1e-300)));
      if (!std::isinf(memory_[type]) && all_bytes_ > 0) {
        const double over = (dual.held[type] - memory_[type]) / all_bytes_;
        dual.prices[type] = std::max(0.0, dual.prices[type] + size * price_unit * over);
      }
    }
    normalize(dual);
    evaluate(dual);
    return dual;
  }

private:
  std::size_t types() const { return times_.devices.size(); }

  void normalize(Dual& dual) const {
    double sum = 0;
    for (std::size_t type = 0; type < types(); ++type) {
      sum += times_.devices[type] * dual.weights[type];
    }
    for (double& weight : dual.weights) {
      weight = sum > 0 ? weight / sum : 0;
    }
  }

  // sum_v min_d (y_d tau(v,d) + p_d m_v) + sum_v min_d y_d o(v,d) - sum_d p_d M_d.
  void evaluate(Dual& dual) const {
    dual.value = 0;
    dual.load.assign(types(), 0.0);
    dual.held.assign(types(), 0.0);
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      double least = kInfinity;
      double least_step = kInfinity;
      std::size_t best = 0;
      for (std::size_t type = 0; type < types(); ++type) {
        if (times_.devices[type] == 0 || std::isinf(times_.all[type][op])) {
          continue;
        }
        const double cost =
            dual.weights[type] * problem_.micro_batches * times_.all[type][op] + dual.prices[type] * bytes_[op];
        best = cost < least ? type : best;
        least = std::min(least, cost);
        least_step = std::min(least_step, dual.weights[type] * steps_[type][op]);
      }
      if (!std::isinf(least)) {
        dual.value += least + least_step;
        dual.load[best] += problem_.micro_batches * times_.all[best][op];
        dual.held[best] += bytes_[op];
      }
    }
    for (std::size_t type = 0; type < types(); ++type) {
      dual.value -= dual.prices[type] > 0 ? dual.prices[type] * memory_[type] : 0;
    }
  }

  const Problem& problem_;
  const LeastTimes& times_;
  std::vector<double> bytes_, memory_;     // [operator]; [type], of all its devices
  std::vector<std::vector<double>> steps_; // [type][operator]
  double all_bytes_ = 0;
};

} // namespace

Seconds work_bound(const Problem& problem, const LeastTimes& times) {
  constexpr int kSteps = 200;
  const WorkDual work(problem, times);
  Dual dual = work.start();
  double best = dual.value;
  const auto used = std::count_if(times.devices.begin(), times.devices.end(), [](int count) { return count > 0; });
  for (int n = 1; n <= kSteps && used > 1; ++n) { // with one type, all weights are equal
    dual = work.step(std::move(dual), 0.3 / std::sqrt(n));
    best = std::max(best, dual.value);
  }
  return Seconds{best};
}

namespace {

// The least time of one micro-batch at an operator: on the best device if the operator may not be replicated; otherwise
// shared by all devices in proportion to speed, 1 / sum_d 1/t(d).
double pass_seconds(const Problem& problem, const LeastTimes& times, const std::vector<std::vector<double>>& pass,
                    OperatorId op) {
  double least = kInfinity;
  double rate = 0;
  for (std::size_t type = 0; type < times.devices.size(); ++type) {
    if (times.devices[type] > 0) {
      least = std::min(least, pass[type][op]);
      rate += times.devices[type] / pass[type][op];
    }
  }
  const double shared = rate > 0 ? 1 / rate : 0;
  return problem.model.operators[op].divisible ? shared : finite_or_zero(least);
}

// The longest paths between the model's start and each operator, without the operator itself: of forward passes to it,
// and of gradients back from it.
struct LongestPaths {
  std::vector<double> forward, backward;         // [operator], of the operator itself
  std::vector<double> forward_to, backward_from; // [operator]

  double through(OperatorId op) const { return forward_to[op] + forward[op] + backward[op] + backward_from[op]; }
};

LongestPaths longest_paths(const Problem& problem, const LeastTimes& times) {
  const int n = problem.model.size();
  LongestPaths paths{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  for (OperatorId op = 0; op < n; ++op) {
    paths.forward[op] = pass_seconds(problem, times, times.forward, op);
    paths.backward[op] = pass_seconds(problem, times, times.backward_input, op);
    for (const OperatorId maker : problem.model.predecessors[op]) {
      paths.forward_to[op] = std::max(paths.forward_to[op], paths.forward_to[maker] + paths.forward[maker]);
      paths.backward_from[op] = std::max(paths.backward_from[op], paths.backward_from[maker] + paths.backward[maker]);
    }
  }
  return paths;
}

} // namespace

Seconds path_bound(const Problem& problem, const LeastTimes& times) {
  const LongestPaths paths = longest_paths(problem, times);
  double longest = 0;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    longest = std::max(longest, paths.through(op));
  }
  return Seconds{longest};
}

Seconds indivisible_bound(const Problem& problem, const LeastTimes& times, bool from_empty) {
  const LongestPaths paths = longest_paths(problem, times);
  double bound = 0;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    if (problem.model.operators[op].divisible) {
      continue;
    }
    double least = kInfinity;
    for (std::size_t type = 0; type < times.devices.size(); ++type) {
      if (times.devices[type] == 0) {
        continue;
      }
      const double both = problem.forward[type][op] + problem.backward_input[type][op];
      const double work = problem.micro_batches * (both + problem.backward_weight[type][op]) +
                          step_seconds(problem, op, problem.platform.types[type]);
      const double and_back = problem.micro_batches * both + paths.backward_from[op];
      least = std::min(least, from_empty ? paths.forward_to[op] + std::max(work, and_back) : work);
    }
    bound = std::max(bound, finite_or_zero(least));
  }
  return Seconds{bound};
}

namespace {

bool is_connected(const ModelGraph& model) {
  std::vector<char> seen(model.size(), 0);
  std::vector<OperatorId> open = {0};
  seen[0] = 1;
  int reached = 0;
  while (!open.empty()) {
    const OperatorId op = open.back();
    open.pop_back();
    ++reached;
    for (const auto* neighbours : {&model.predecessors[op], &model.successors[op]}) {
      for (const OperatorId next : *neighbours) {
        if (seen[next] == 0) {
          seen[next] = 1;
          open.push_back(next);
        }
      }
    }
  }
  return reached == model.size();
}

// The least latency and the least time per byte between any two of the devices, in either order.
PathCost best_path(const Problem& problem, const std::vector<DeviceId>& devices) {
  PathCost best{Seconds{kInfinity}, kInfinity};
  for (const DeviceId a : devices) {
    for (const DeviceId b : devices) {
      if (a != b) {
        const PathCost path = problem.path(a, b);
        best.latency = std::min(best.latency, path.latency);
        best.seconds_per_byte = std::min(best.seconds_per_byte, path.seconds_per_byte);
      }
    }
  }
  return best;
}

// Devices with room for the weights, gradients and optimiser of the whole model.
std::vector<DeviceId> that_hold_all(const Problem& problem, const std::vector<DeviceId>& devices) {
  double bytes = 0;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    bytes += state_bytes(problem, op);
  }
  std::vector<DeviceId> able;
  for (const DeviceId device : devices) {
    if (bytes <= problem.platform.type_of(device).memory.value) {
      able.push_back(device);
    }
  }
  return able;
}

// The whole model on the best of the devices.
double alone_seconds(const Problem& problem, const std::vector<DeviceId>& devices) {
  double least = kInfinity;
  for (const DeviceId device : devices) {
    const int type = problem.type_index(device);
    double sum = 0;
    for (OperatorId op = 0; op < problem.model.size(); ++op) {
      sum += problem.micro_batches *
                 (problem.forward[type][op] + problem.backward_input[type][op] + problem.backward_weight[type][op]) +
             step_seconds(problem, op, problem.platform.types[type]);
    }
    least = std::min(least, sum);
  }
  return least;
}

// Bytes per second that a device can send over all of its links together, the most of any.
double widest_ports(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::vector<double> ports(problem.platform.vertices.size(), 0.0);
  for (const Link& link : problem.platform.links) {
    ports[link.from] += link.bandwidth.value;
  }
  double widest = 0;
  for (const DeviceId device : devices) { // the vertex of a device has its number
    widest = std::max(widest, ports[device]);
  }
  return widest;
}

// Seconds a byte that no measured reduction falls below, however small the buffers into which gradients are divided,
// and whatever devices take part; infinite where none was measured. Ports that are faster than those that were measured
// shorten a part of it at most.
double least_measured(const Platform& platform) {
  double least = kInfinity;
  std::vector<char> seen(platform.types.size(), 0); // a type has one table
  for (const Link& link : platform.links) {
    const BytesPerSecond measured_at = platform.vertices[link.to].measured_at;
    if (measured_at.value == 0 || seen[platform.devices[link.from].type]++ != 0) {
      continue;
    }
    const KernelFits& fits = *platform.type_of(link.from).fits;
    const double faster = std::max(1.0, link.bandwidth / measured_at) * (fits.scale ? fits.scale->collectives : 1);
    for (const CollectiveFit& fit : fits.collectives) {
      if (fit.op == "all-reduce" || fit.op == "reduce-scatter") {
        least = std::min(least, fit.line.least_per_byte() / faster);
      }
    }
  }
  return least;
}

// The larger of two times: of the samples, shared by all the devices, and of the largest operator's gradients, reduced
// over two of them or more. Whatever the algorithm, each device sends its gradients once: those that it adds up itself
// as sums, the others as they are. A measured time owes nothing to latencies and bandwidths of links.
double reduced_seconds(const Problem& problem, const LeastTimes& times, const std::vector<DeviceId>& devices) {
  if (devices.size() < 2) {
    return kInfinity;
  }
  double rate = 0;
  for (const DeviceId device : devices) {
    double sum = 0;
    for (const double seconds : times.all[problem.type_index(device)]) {
      sum += problem.micro_batches * seconds;
    }
    rate += 1 / sum;
  }
  double parameters = 0;
  for (const Operator& op : problem.model.operators) {
    parameters = std::max(parameters, op.parameters);
  }
  // One byte less, since a plan's cost rounds to whole bytes.
  const Bytes gradients{std::max(0.0, parameters * parameter_bytes(problem.training).gradient - 1)};
  const double reduced =
      2 * best_path(problem, devices).latency.value + gradients.value / widest_ports(problem, devices);
  const double measured = gradients.value * least_measured(problem.platform);
  return std::max(rate > 0 ? 1 / rate : 0, std::min(reduced, measured));
}

} // namespace

Seconds communication_bound(const Problem& problem, const LeastTimes& times, const std::vector<DeviceId>& devices) {
  constexpr std::size_t kMostDevices = 256; // pairs are looked at one by one
  if (devices.size() < 2 || devices.size() > kMostDevices || !is_connected(problem.model) ||
      !problem.model.configurations.empty()) { // measured groups do not say what they send
    return Seconds{0};
  }
  const std::vector<DeviceId> able = that_hold_all(problem, devices);
  const int steps = problem.model.size() > 1 ? 1 : 0; // a lone operator may be shared out and nothing exchanged
  const double crossing = steps * best_path(problem, devices).latency.value;
  return Seconds{std::min({alone_seconds(problem, able), reduced_seconds(problem, times, able), crossing})};
}

Seconds lower_bound(const Problem& problem, const std::vector<DeviceId>& devices, bool from_empty) {
  const LeastTimes times = least_times(problem, devices);
  Seconds bound = std::max(work_bound(problem, times), indivisible_bound(problem, times, from_empty));
  if (from_empty) {
    bound = std::max({bound, path_bound(problem, times), communication_bound(problem, times, devices)});
  }
  return bound;
}

namespace {

OperatorTime launches_of(const Operator& op, const DeviceType& type) {
  const auto launches = [&](const Pass& pass) { return pass.launches() * type.launch_overhead; };
  return {launches(op.forward), launches(op.backward_input), launches(op.backward_weight)};
}

// The least seconds for which a micro-batch occupies one resource of a device: of each pass the resource's own work,
// and no more than the time beside its launches. `work`: the least of that time, per sample.
double resource_seconds(const Problem& problem, const Operator& op, const DeviceType& type, const OperatorTime& work,
                        double StreamKernel::*share) {
  const auto taken = [&](const Pass& pass, Seconds per_sample) {
    const Seconds time = pass.launches() * type.launch_overhead + per_sample * problem.samples;
    const StreamKernel kernel =
        kernel_of(pass, op.kind, type, problem.samples, problem.training.precision, time, op.products);
    return kernel.work * kernel.*share;
  };
  return taken(op.forward, work.forward) + taken(op.backward_input, work.backward_input) +
         taken(op.backward_weight, work.backward_weight);
}

// What the three cases of several streams count for each operator instead of its whole time.
struct StreamLeast {
  double arithmetic = 0, bandwidth = 0, stream = 0;
};

std::optional<StreamLeast> stream_least(const Problem& problem, OperatorId op, const DeviceType& type, int streams) {
  const Operator& what = problem.model.operators[op];
  const auto beside_launches =
      problem.cost.least_time(op, type, problem.training.precision, {problem.samples, 1, launches_of(what, type)});
  if (!beside_launches) {
    return std::nullopt;
  }
  const auto whole = problem.cost.least_time(op, type, problem.training.precision, {problem.samples});
  // An element-wise kernel may run inside another, without a launch.
  const double own = (what.kind == KernelKind::elementwise ? beside_launches : whole)->all.value * problem.samples;
  return StreamLeast{resource_seconds(problem, what, type, beside_launches->each, &StreamKernel::compute),
                     resource_seconds(problem, what, type, beside_launches->each, &StreamKernel::bandwidth),
                     own / streams};
}

} // namespace

Seconds lower_bound_of_streams(const Problem& problem, const std::vector<DeviceId>& devices, int streams) {
  const LeastTimes groups = least_times(problem, devices); // tensor-parallel groups have one stream
  const std::vector<OperatorId> first = first_alike(problem.cost, problem.model.size());
  std::vector<std::vector<std::optional<StreamLeast>>> least(groups.devices.size());
  for (std::size_t type = 0; type < groups.devices.size(); ++type) {
    for (OperatorId op = 0; op < problem.model.size() && groups.devices[type] > 0; ++op) {
      least[type].push_back(first[op] == op ? stream_least(problem, op, problem.platform.types[type], streams)
                                            : least[type][first[op]]);
    }
  }
  Seconds bound;
  for (double StreamLeast::*one : {&StreamLeast::arithmetic, &StreamLeast::bandwidth, &StreamLeast::stream}) {
    LeastTimes times = groups;
    for (std::size_t type = 0; type < least.size(); ++type) {
      for (std::size_t op = 0; op < least[type].size(); ++op) {
        if (least[type][op]) {
          times.all[type][op] = std::min(times.all[type][op], (*least[type][op]).*one);
        }
      }
    }
    bound = std::max(bound, work_bound(problem, times));
  }
  return bound;
}

} // namespace stagecraft
