// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/lower_bound.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/cost/streams.hpp"

namespace stagecraft {
namespace {

double finite_or_zero(double value) { return std::isinf(value) ? 0 : value; }

// The time per sample is least at the whole micro-batch or at a smaller measured size, because it is monotonic between
// two measured sizes and beyond them.
std::vector<double> sizes_to_try(const Problem& problem) {
  std::vector<double> sizes = {problem.samples};
  for (const Profile& profile : problem.model.profiles) {
    if (profile.samples > 0 && profile.samples < problem.samples) {
      sizes.push_back(profile.samples);
    }
  }
  return sizes;
}

// 1 and the tensor degrees that were measured. At any other degree t a shard takes no less than 1/t of the time at
// degree 1.
std::vector<int> degrees_to_try(const Problem& problem) {
  std::vector<int> degrees = {1};
  for (const Profile& profile : problem.model.profiles) {
    if (std::find(degrees.begin(), degrees.end(), profile.tensor_parallel) == degrees.end()) {
      degrees.push_back(profile.tensor_parallel);
    }
  }
  return degrees;
}

// Optimiser step without its launch, which a device pays once for all its operators.
double step_seconds(const Problem& problem, OperatorId op, const DeviceType& type) {
  const double parameters = problem.model.operators[op].parameters;
  return parameters > 0 ? (optimizer_time(problem.training, parameters, type) - type.launch_overhead).value : 0;
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
  for (const double samples : sizes_to_try(problem)) {
    const double scale = problem.samples / samples;
    for (std::size_t type = 0; type < types; ++type) {
      for (OperatorId op = 0; op < problem.model.size() && times.devices[type] > 0; ++op) {
        for (const int degree : degrees_to_try(problem)) { // a group takes `degree` times that in sum
          const auto time = problem.cost.time_of_shard(op, problem.platform.types[type], samples,
                                                       problem.training.precision, {degree});
          const auto lower = [&](double& least, Seconds seconds) {
            least = std::min(least, seconds.value * scale * degree);
          };
          if (time) {
            lower(times.forward[type][op], time->forward);
            lower(times.backward_input[type][op], time->backward_input);
            lower(times.all[type][op], time->forward + time->backward_input + time->backward_weight);
          }
        }
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

// The larger of two times: of the samples, shared by all the devices, and of the largest operator's gradients, reduced
// over two of them.
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
  const Group two{2, best_path(problem, devices)};
  return std::max(rate > 0 ? 1 / rate : 0, seconds_of({CollectiveKind::all_reduce, two, gradients}).value);
}

} // namespace

Seconds communication_bound(const Problem& problem, const LeastTimes& times, const std::vector<DeviceId>& devices) {
  constexpr std::size_t kMostDevices = 256; // pairs are looked at one by one
  if (devices.size() < 2 || devices.size() > kMostDevices || !is_connected(problem.model) ||
      !problem.model.configurations.empty()) { // measured groups do not say what they send
    return Seconds{0};
  }
  const std::vector<DeviceId> able = that_hold_all(problem, devices);
  const double crossing = 2 * best_path(problem, devices).latency.value;
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

// Seconds for which all three passes occupy one resource of a device.
Seconds resource_seconds(const Problem& problem, OperatorId op, const DeviceType& type, double samples,
                         const OperatorTime& time, double StreamKernel::*share) {
  const Operator& passes = problem.model.operators[op];
  const auto taken = [&](const Pass& pass, Seconds seconds) {
    const StreamKernel kernel = kernel_of(pass, passes.kind, type, samples, problem.training.precision, seconds);
    return kernel.work * kernel.*share;
  };
  return Seconds{taken(passes.forward, time.forward) + taken(passes.backward_input, time.backward_input) +
                 taken(passes.backward_weight, time.backward_weight)};
}

} // namespace

Seconds lower_bound_of_streams(const Problem& problem, const std::vector<DeviceId>& devices) {
  Seconds bound;
  for (double StreamKernel::*share : {&StreamKernel::compute, &StreamKernel::bandwidth}) {
    LeastTimes times = least_times(problem, devices);
    for (std::size_t type = 0; type < times.devices.size(); ++type) {
      for (OperatorId op = 0; op < problem.model.size(); ++op) {
        double least = kInfinity;
        for (const double samples : sizes_to_try(problem)) {
          const DeviceType& on = problem.platform.types[type];
          if (const auto time = problem.cost.time(op, on, samples, problem.training.precision)) {
            const Seconds taken = resource_seconds(problem, op, on, samples, *time, share);
            least = std::min(least, taken.value * (problem.samples / samples));
          }
        }
        times.all[type][op] = least;
      }
    }
    bound = std::max(bound, work_bound(problem, times));
  }
  return bound;
}

} // namespace stagecraft
