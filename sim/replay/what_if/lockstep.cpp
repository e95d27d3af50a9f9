// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/what_if/lockstep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/random.hpp"

namespace stagecraft {
namespace {

constexpr std::int32_t kNone = -1;

bool computes_stage(const Work& work) { return work.computes() && work.kind <= TaskKind::recompute; }

// One replica's transfer over a link.
struct Flow {
  std::int32_t sender, receiver; // indices into TaskGraph::devices
  double bandwidth;              // B/s of its leg alone
  double seconds;                // that the sender computes for a micro-batch of the stage
};

class Meetings {
public:
  Meetings(const TaskGraph& graph, const Platform& platform)
      : graph_(graph), platform_(platform), first_task_(graph.works.size(), kNone) {
    for (TaskId task = graph.tasks(); task-- > 0;) {
      first_task_[graph.work[task]] = task;
    }
    for (const Work& work : graph.works) {
      if (computes_stage(work)) {
        seconds_[{work.device, work.stage}] += work.seconds.value;
      }
    }
  }

  bool any() {
    for (std::size_t index = 0; index < graph_.works.size(); ++index) {
      const Work& work = graph_.works[index];
      if (work.transfers() && work.kind == TaskKind::transfer && work.bytes >= 1 && first_task_[index] != kNone) {
        add(work, first_task_[index]);
      }
    }
    return std::any_of(flows_.begin(), flows_.end(), [this](const auto& entry) {
      return is_full(platform_.links[std::get<2>(entry.first)].bandwidth.value, entry.second) &&
             has_equal_pair(entry.second);
    });
  }

private:
  void add(const Work& work, TaskId task) {
    const Leg& leg = graph_.legs[work.leg];
    const Flow flow{work.device, receiver_of(task), leg.bandwidth.value, seconds_[{work.device, work.stage}]};
    for (const LinkId link : leg.links) {
      if (!std::isinf(platform_.links[link].bandwidth.value)) {
        flows_[{work.stage, work.to_stage, link}].push_back(flow);
      }
    }
  }

  // The first device that computes with what a transfer brings, maybe over further legs. All ranks of a tensor-parallel
  // replica wait for what any of them receives, so the first stands for the replica.
  std::int32_t receiver_of(TaskId transfer) const {
    const std::int32_t index = graph_.work[transfer];
    const Work& work = graph_.works[index];
    std::int32_t receiver = kNone;
    TaskId next_leg = kNone;
    for (const TaskId next : graph_.successors_of(transfer)) {
      const Work& other = graph_.works[graph_.work[next]];
      if (other.computes() && other.stage == work.to_stage && other.device != work.device) {
        receiver = receiver == kNone ? other.device : std::min(receiver, other.device);
      } else if (other.transfers() && other.device == work.device && other.to_stage == work.to_stage &&
                 graph_.work[next] != index) {
        next_leg = next;
      }
    }
    return receiver == kNone && next_leg != kNone ? receiver_of(next_leg) : receiver;
  }

  // Whether a link cannot carry at once what its flows bring.
  static bool is_full(double bandwidth, const std::vector<Flow>& flows) {
    constexpr double kRounding = 1e-9;
    const double wanted = std::accumulate(flows.begin(), flows.end(), 0.0,
                                          [](double sum, const Flow& flow) { return sum + flow.bandwidth; });
    return wanted > bandwidth * (1 + kRounding);
  }

  static bool has_equal_pair(const std::vector<Flow>& flows) {
    for (std::size_t i = 0; i < flows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Flow &one = flows[i], &other = flows[j];
        if (one.sender != other.sender && one.receiver != other.receiver &&
            std::abs(one.seconds - other.seconds) <= kDrift * std::max(one.seconds, other.seconds)) {
          return true;
        }
      }
    }
    return false;
  }

  const TaskGraph& graph_;
  const Platform& platform_;
  std::vector<TaskId> first_task_;                                                    // [work]
  std::map<std::pair<std::int32_t, std::int32_t>, double> seconds_;                   // of a device and a stage
  std::map<std::tuple<std::int32_t, std::int32_t, LinkId>, std::vector<Flow>> flows_; // from, to, over
};

// Draws how far each computation is from its mean. The steps of a pass that a group divides at its exchanges are one
// work of one group, whose devices wait for each other all the time: they have one number.
class Drift {
public:
  explicit Drift(const TaskGraph& graph) : graph_(graph) {
    for (const Work& work : graph.works) {
      if (work.goes_on) {
        divided_.resize(std::max<std::size_t>(divided_.size(), work.pass + 1), 0);
        divided_[work.pass] = 1;
      }
    }
  }

  double of(TaskId task, Random& random) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.pass < 0 || work.pass >= static_cast<std::int32_t>(divided_.size()) || divided_[work.pass] == 0) {
      return random.normal();
    }
    const auto [at, is_new] = known_.try_emplace({work.pass, graph_.micro_batch[task], work.part_begin}, 0);
    at->second = is_new ? random.normal() : at->second;
    return at->second;
  }

private:
  const TaskGraph& graph_;
  std::vector<char> divided_; // [pass]
  std::map<std::tuple<std::int32_t, std::int32_t, double>, double> known_;
};

} // namespace

bool replicas_meet(const TaskGraph& graph, const Platform& platform) { return Meetings(graph, platform).any(); }

TaskGraph drifted(const TaskGraph& graph, std::uint64_t seed, int draw) {
  constexpr std::uint64_t kOfDrift = 1ULL << 33U; // not the random numbers of `perturb`
  constexpr double kLeast = 0.1;
  Random random(seed, kOfDrift + static_cast<std::uint64_t>(draw));
  TaskGraph drawn = graph;
  Drift drift(graph);
  std::vector<double> normal(graph.tasks(), 0.0), sum(graph.works.size(), 0.0);
  std::vector<int> count(graph.works.size(), 0);
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const std::int32_t index = graph.work[task];
    if (computes_stage(graph.works[index])) {
      normal[task] = drift.of(task, random);
      sum[index] += normal[task];
      ++count[index];
    }
  }
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const std::int32_t index = graph.work[task];
    if (count[index] > 1) {
      Work work = graph.works[index];
      work.seconds = work.seconds * std::max(kLeast, 1 + kDrift * (normal[task] - sum[index] / count[index]));
      drawn.work[task] = static_cast<std::int32_t>(drawn.works.size());
      drawn.works.push_back(work);
    }
  }
  return drawn;
}

bool may_gain(double exact_seconds, double alone_seconds) {
  constexpr double kLeast = 1e-3;
  return exact_seconds > alone_seconds * (1 + kLeast);
}

bool gains(double drifted_seconds, double exact_seconds) {
  constexpr double kRounding = 1e-9;
  return drifted_seconds < exact_seconds * (1 - kRounding);
}

int median_index(std::span<const double> values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] < values[b]; });
  return order[order.size() / 2];
}

} // namespace stagecraft
