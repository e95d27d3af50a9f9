// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/streams.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "sim/cost/passes.hpp"

namespace stagecraft {
namespace {

using Levels = std::vector<std::vector<int>>; // kernels of each level

// The kernel on a stream, -1 for none, and the seconds that it still needs.
struct Running {
  int kernel = -1;
  double gap = 0, work = 0; // seconds left
};

// Kernels running on one device. A kernel in its gap uses nothing of the device. When the shares of the working kernels
// add up to more than a whole resource, all of them slow down in proportion (processor sharing).
class SharedDevice {
public:
  SharedDevice(const std::vector<StreamKernel>& kernels, int streams) : kernels_(kernels), streams_(streams) {}

  double now() const { return now_; }
  bool is_free(int stream) const { return streams_[stream].kernel < 0; }
  void start(int stream, int kernel) { streams_[stream] = {kernel, kernels_[kernel].gap, kernels_[kernel].work}; }

  // Advances to the next end of a gap or of a kernel and calls ended(kernel). Returns false when nothing runs.
  template <class Ended> bool advance(Ended ended) {
    const double rate = rate_of_work();
    double step = std::numeric_limits<double>::infinity();
    for (const Running& one : streams_) {
      if (one.kernel >= 0) {
        step = std::min(step, one.gap > 0 ? one.gap : one.work / rate);
      }
    }
    if (step == std::numeric_limits<double>::infinity()) {
      return false;
    }
    now_ += step;
    for (Running& one : streams_) {
      if (one.kernel < 0) {
        continue;
      }
      const bool in_gap = one.gap > 0;
      double& left = in_gap ? one.gap : one.work;
      left -= in_gap ? step : step * rate;
      left = left > kRounding * kernels_[one.kernel].seconds() ? left : 0;
      if (one.gap == 0 && one.work == 0) {
        ended(std::exchange(one.kernel, -1));
      }
    }
    return true;
  }

private:
  static constexpr double kRounding = 1e-12;

  double rate_of_work() const {
    double compute = 0;
    double bandwidth = 0;
    for (const Running& one : streams_) {
      if (one.kernel >= 0 && one.gap == 0) {
        compute += kernels_[one.kernel].compute;
        bandwidth += kernels_[one.kernel].bandwidth;
      }
    }
    return 1 / std::max({1.0, compute, bandwidth});
  }

  const std::vector<StreamKernel>& kernels_;
  std::vector<Running> streams_;
  double now_ = 0;
};

std::vector<std::vector<int>> successors_of(const KernelGraph& graph) {
  std::vector<std::vector<int>> successors(graph.kernels.size());
  for (std::size_t to = 0; to < graph.kernels.size(); ++to) {
    for (const int from : graph.predecessors[to]) {
      successors[from].push_back(static_cast<int>(to));
    }
  }
  return successors;
}

void sort_longest_first(const KernelGraph& graph, std::vector<int>& kernels) {
  std::sort(kernels.begin(), kernels.end(), [&](int a, int b) {
    const double first = graph.kernels[a].seconds();
    const double second = graph.kernels[b].seconds();
    return first != second ? first > second : a < b;
  });
}

// LPT (longest processing time first): the longest kernel goes to the stream with the least to do, on a tie to the
// first.
std::vector<std::vector<int>> assign_longest_first(const KernelGraph& graph, std::vector<int> kernels, int streams) {
  sort_longest_first(graph, kernels);
  std::vector<std::vector<int>> assigned(streams);
  std::vector<double> load(streams, 0.0);
  for (const int kernel : kernels) {
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    assigned[least].push_back(kernel);
    load[least] += graph.kernels[kernel].seconds();
  }
  return assigned;
}

// Seconds of the longest stream of a level, as if each kernel had the device to itself.
double longest_stream(const KernelGraph& graph, const std::vector<int>& level, int streams) {
  double longest = 0;
  for (const auto& stream : assign_longest_first(graph, level, streams)) {
    double load = 0;
    for (const int kernel : stream) {
      load += graph.kernels[kernel].seconds();
    }
    longest = std::max(longest, load);
  }
  return longest;
}

double level_seconds(const KernelGraph& graph, const std::vector<int>& level, int streams) {
  const auto assigned = assign_longest_first(graph, level, streams);
  std::vector<std::size_t> next(streams, 0);
  SharedDevice device(graph.kernels, streams);
  do {
    for (int stream = 0; stream < streams; ++stream) {
      if (device.is_free(stream) && next[stream] < assigned[stream].size()) {
        device.start(stream, assigned[stream][next[stream]++]);
      }
    }
  } while (device.advance([](int) {}));
  return device.now();
}

// Moves kernels with slack to other levels, the best move first, while the sum of the levels' longest streams falls.
class Balance {
public:
  Balance(const KernelGraph& graph, int streams)
      : graph_(graph), streams_(streams), successors_(successors_of(graph)), level_(levels_of(graph)) {
    const int count = level_.empty() ? 0 : *std::max_element(level_.begin(), level_.end()) + 1;
    levels_.resize(count);
    for (std::size_t kernel = 0; kernel < level_.size(); ++kernel) {
      levels_[level_[kernel]].push_back(static_cast<int>(kernel));
    }
    for (const auto& level : levels_) {
      longest_.push_back(longest_stream(graph_, level, streams_));
    }
  }

  Levels run() {
    constexpr int kMostRounds = 100;
    for (int round = 0; round < kMostRounds && improve(); ++round) {
    }
    return std::move(levels_);
  }

private:
  std::vector<int> without(int level, int kernel) const {
    std::vector<int> rest = levels_[level];
    rest.erase(std::find(rest.begin(), rest.end(), kernel));
    return rest;
  }

  std::vector<int> with(int level, int kernel) const {
    std::vector<int> more = levels_[level];
    more.push_back(kernel);
    return more;
  }

  bool improve() {
    double best = 0; // change of the sum, in seconds
    int kernel_to_move = -1;
    int target = -1;
    for (int kernel = 0; kernel < static_cast<int>(level_.size()); ++kernel) {
      int first = 0;
      int last = static_cast<int>(levels_.size()) - 1;
      for (const int before : graph_.predecessors[kernel]) {
        first = std::max(first, level_[before] + 1);
      }
      for (const int after : successors_[kernel]) {
        last = std::min(last, level_[after] - 1);
      }
      if (first >= last) {
        continue;
      }
      const int home = level_[kernel];
      const double left = longest_stream(graph_, without(home, kernel), streams_) - longest_[home];
      for (int level = first; level <= last; ++level) {
        if (level == home || left >= best) {
          continue;
        }
        const double change = left + longest_stream(graph_, with(level, kernel), streams_) - longest_[level];
        if (change < best - 1e-9 * std::max(longest_[home], 1e-300)) {
          best = change;
          kernel_to_move = kernel;
          target = level;
        }
      }
    }
    if (kernel_to_move >= 0) {
      move(kernel_to_move, target);
    }
    return kernel_to_move >= 0;
  }

  void move(int kernel, int target) {
    const int home = level_[kernel];
    levels_[home] = without(home, kernel);
    levels_[target].push_back(kernel);
    level_[kernel] = target;
    for (const int level : {home, target}) {
      longest_[level] = longest_stream(graph_, levels_[level], streams_);
    }
  }

  const KernelGraph& graph_;
  int streams_;
  std::vector<std::vector<int>> successors_;
  std::vector<int> level_; // [kernel]
  Levels levels_;
  std::vector<double> longest_; // [level], seconds
};

} // namespace

StreamKernel kernel_of(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                       Seconds time, std::optional<Precision> products) {
  StreamKernel kernel;
  kernel.gap = std::min(time, pass.launches() * type.launch_overhead).value;
  kernel.work = time.value - kernel.gap;
  kernel.element_wise = kind == KernelKind::elementwise;
  const auto rate = type.rate(kind, products.value_or(precision));
  const Bytes traffic{(samples * pass.moved_elements + pass.moved_parameters) * row_of(precision).bytes +
                      samples * pass.cast_bytes + unpacked_bytes(pass, samples, precision).value};
  if (kernel.work > 0 && rate && (pass.flops.value > 0 || traffic.value > 0)) {
    kernel.compute = std::min(1.0, computing_time(pass, *rate, type, samples).value / kernel.work);
    kernel.bandwidth = std::min(1.0, (traffic / type.memory_bandwidth).value / kernel.work);
  }
  return kernel;
}

std::vector<int> levels_of(const KernelGraph& graph) {
  std::vector<int> level(graph.kernels.size(), 0);
  for (std::size_t kernel = 0; kernel < level.size(); ++kernel) {
    for (const int before : graph.predecessors[kernel]) {
      level[kernel] = std::max(level[kernel], level[before] + 1);
    }
  }
  return level;
}

KernelGraph fuse_cheap(const KernelGraph& graph, double launch) {
  KernelGraph fused;
  std::vector<int> into(graph.kernels.size()); // number of each kernel in the fused graph
  for (std::size_t kernel = 0; kernel < graph.kernels.size(); ++kernel) {
    const StreamKernel& one = graph.kernels[kernel];
    const auto& before = graph.predecessors[kernel];
    if (one.element_wise && one.work < launch && before.size() == 1) {
      into[kernel] = into[before.front()];
      StreamKernel& host = fused.kernels[into[kernel]];
      const double work = host.work + one.work;
      if (work > 0) { // averages, which keep the work on each resource
        host.compute = (host.compute * host.work + one.compute * one.work) / work;
        host.bandwidth = (host.bandwidth * host.work + one.bandwidth * one.work) / work;
      }
      host.work = work;
      continue;
    }
    into[kernel] = static_cast<int>(fused.kernels.size());
    fused.kernels.push_back(one);
    std::vector<int> merged;
    for (const int from : before) {
      merged.push_back(into[from]);
    }
    std::sort(merged.begin(), merged.end());
    merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
    fused.predecessors.push_back(std::move(merged));
  }
  return fused;
}

double layered_seconds(const KernelGraph& graph, int streams, double sync) {
  const Levels levels = Balance(graph, streams).run();
  double seconds = levels.empty() ? 0 : sync * static_cast<double>(levels.size() - 1);
  for (const auto& level : levels) {
    seconds += level_seconds(graph, level, streams);
  }
  return seconds;
}

double unsynchronised_seconds(const KernelGraph& graph, int streams) {
  const auto successors = successors_of(graph);
  const std::vector<int> level = levels_of(graph);
  std::vector<std::size_t> waits(graph.kernels.size());
  std::vector<int> ready;
  const auto later = [&](int a, int b) { // whether a starts after b
    const double first = graph.kernels[a].seconds();
    const double second = graph.kernels[b].seconds();
    return std::tuple(level[a], -first, a) > std::tuple(level[b], -second, b);
  };
  const auto make_ready = [&](int kernel) {
    ready.push_back(kernel);
    std::push_heap(ready.begin(), ready.end(), later);
  };
  for (std::size_t kernel = 0; kernel < waits.size(); ++kernel) {
    waits[kernel] = graph.predecessors[kernel].size();
    if (waits[kernel] == 0) {
      make_ready(static_cast<int>(kernel));
    }
  }
  SharedDevice device(graph.kernels, streams);
  do {
    for (int stream = 0; stream < streams && !ready.empty(); ++stream) {
      if (device.is_free(stream)) {
        std::pop_heap(ready.begin(), ready.end(), later);
        device.start(stream, ready.back());
        ready.pop_back();
      }
    }
  } while (device.advance([&](int kernel) {
    for (const int next : successors[kernel]) {
      if (--waits[next] == 0) {
        make_ready(next);
      }
    }
  }));
  return device.now();
}

double sequential_seconds(const KernelGraph& graph) {
  double seconds = 0;
  for (const StreamKernel& kernel : graph.kernels) {
    seconds += kernel.seconds();
  }
  return seconds;
}

double best_seconds(const KernelGraph& graph, int streams, double launch) {
  const KernelGraph fused = fuse_cheap(graph, launch);
  return std::min(
      {sequential_seconds(fused), layered_seconds(fused, streams, launch), unsynchronised_seconds(fused, streams)});
}

} // namespace stagecraft
