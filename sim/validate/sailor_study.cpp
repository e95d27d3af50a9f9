// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/sailor_study.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/format/csv.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr double kElement = 4; // B: all of it is trained in single precision

std::string type_of(const SailorGroup& group) { return lower_case(group.gpu) + "-x" + std::to_string(group.devices); }

std::string count_text(double count) { return std::to_string(std::llround(count)); }
std::string seconds_text(Seconds seconds) { return csv_cell(seconds.value) + " s"; }

// A time that grows with bytes along a line.
struct Line {
  Seconds start;
  double seconds_per_byte = 0;
};

// The line through the times of two messages; through 0 and the first where it would begin below 0 or fall.
Line line_through(const SailorNetwork& network, Bytes first, Bytes second) {
  const Seconds at_first = network.time(first), at_second = network.time(second);
  if (first.value != second.value) {
    const double slope = (at_second - at_first).value / (second - first).value;
    const double start = at_first.value - slope * first.value;
    if (slope > 0 && start >= 0) {
      return {Seconds{start}, slope};
    }
  }
  return {Seconds{0}, at_first.value / first.value};
}

class StudyText {
public:
  StudyText(const SailorPlan& plan, SailorData& data)
      : plan_(plan), data_(data), degree_(plan.stages.front().replicas.front().devices),
        replicas_(static_cast<int>(plan.stages.front().replicas.size())), amounts_(data.amounts(plan, degree_)) {
    for (const SailorStage& stage : plan.stages) {
      for (const SailorGroup& group : stage.replicas) {
        groups_.try_emplace(type_of(group), group);
        times_.try_emplace(type_of(group), data.times(plan, group));
      }
    }
  }

  SailorStudy write() {
    SailorStudy study{.formula = closed_form()};
    add_receives();
    study.text = model() + platform() + training();
    for (const SailorStage& stage : plan_.stages) {
      study.beside.push_back(copies(stage));
    }
    return study;
  }

private:
  int micro_batches() const { return plan_.global_batch / (plan_.micro_batch * replicas_); }

  static std::size_t at(int layer) { return static_cast<std::size_t>(layer); }

  template <class Figure> double sum_of(const SailorStage& stage, Figure figure) const {
    double sum = 0;
    for (int layer = stage.first; layer <= stage.last; ++layer) {
      sum += figure(at(layer));
    }
    return sum;
  }

  double parameters(const SailorStage& stage) const {
    return sum_of(stage, [&](std::size_t layer) { return amounts_[layer].parameters; });
  }

  // What a stage hands on to the next one, and gets the gradient of.
  Bytes message(std::size_t stage) const {
    return Bytes{amounts_[at(plan_.stages[stage].last)].output * plan_.micro_batch * kElement};
  }

  // A step of a ring in which replicas reduce the gradients of a stage.
  Bytes reduced(const SailorStage& stage) const { return Bytes{parameters(stage) * degree_ * kElement / replicas_}; }

  // Forward and backward of all micro-batches on the slowest stage, and once on the others (Huang et al. 2019).
  Seconds closed_form() const {
    double slowest = 0, all = 0, update = 0;
    for (const SailorStage& stage : plan_.stages) {
      double longest = 0;
      for (const SailorGroup& group : stage.replicas) {
        const std::vector<SailorTimes>& times = times_.at(type_of(group));
        longest = std::max(longest, sum_of(stage, [&](std::size_t layer) {
                             return (times[layer].forward + times[layer].backward).value;
                           }));
        update = std::max(update, times[at(stage.first)].update.value);
      }
      slowest = std::max(slowest, longest);
      all += longest;
    }
    return Seconds{(micro_batches() - 1) * slowest + all + update};
  }

  // The slowest way from a neighbour's groups to one, whose ranks each get a part of the tensor and gather it.
  Seconds received(const SailorStage& from, const SailorGroup& group, Bytes bytes) {
    Seconds most = data_.between_nodes(group).time(bytes);
    for (const SailorGroup& sender : from.replicas) {
      most = std::max(most, data_.between_nodes(sender).time(bytes));
    }
    const double others = static_cast<double>(group.devices - 1) / group.devices;
    return group.devices == 1 ? most : most + others * data_.within_node(group).time(bytes);
  }

  // DeepSpeed's engine receives as an instruction of its own, during which a device computes nothing. What it sends
  // blocks it, too, which the replay carries out.
  void add_receives() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const SailorStage& stage = plan_.stages[s];
      for (const auto& [type, group] : groups_) {
        std::vector<SailorTimes>& times = times_.at(type);
        if (s > 0) {
          times[at(stage.first)].forward += received(plan_.stages[s - 1], group, message(s - 1));
        }
        if (s + 1 < plan_.stages.size()) {
          times[at(stage.last)].backward += received(plan_.stages[s + 1], group, message(s));
        }
      }
    }
  }

  // "forward_time: {gh-96-x4: 0.001 s, …}"
  std::string times_text(const char* key, std::size_t layer, Seconds SailorTimes::*which) const {
    std::string text;
    for (const auto& [type, times] : times_) {
      text += (text.empty() ? "" : ", ") + type + ": " + seconds_text(times[layer].*which);
    }
    return std::string(key) + ": {" + text + "}";
  }

  // A layer before the blocks, one block for each layer between, and one behind. A device has what a GPU has.
  std::string model() const {
    std::string text = "model:\n  workload:\n    name: " + lower_case(plan_.model) + "\n    profile:\n";
    for (const auto& [type, times] : times_) {
      text += "      - {device: " + type + ", samples: " + std::to_string(plan_.micro_batch) + ", precision: fp32}\n";
    }
    text += "    layers:\n";
    for (std::size_t layer = 0; layer < amounts_.size(); ++layer) {
      const SailorAmounts& amounts = amounts_[layer];
      const std::string name = layer == 0                     ? "embedding"
                               : layer + 1 == amounts_.size() ? "head"
                                                              : "layer." + std::to_string(layer - 1) + ".block";
      text += "      - {name: " + name +
              ", kind: matmul, forward: 1 FLOP, parameters: " + count_text(amounts.parameters) +
              ", output: " + count_text(amounts.output / degree_) + ", stash: " + count_text(amounts.kept) +
              ",\n         " + times_text("forward_time", layer, &SailorTimes::forward) + ", " +
              times_text("backward_time", layer, &SailorTimes::backward) + "}\n";
    }
    return text;
  }

  // The part that each GPU of a group has of the way out of its node, by the sizes that are sent.
  Line way_out(const SailorGroup& group, std::size_t stage) {
    std::vector<Bytes> sizes;
    if (stage + 1 < plan_.stages.size()) {
      sizes.push_back(message(stage));
    }
    if (stage > 0) {
      sizes.push_back(message(stage - 1));
    }
    if (replicas_ > 1) {
      sizes.push_back(reduced(plan_.stages[stage]));
    }
    const Bytes first = sizes.empty() ? Bytes{1e6} : sizes.front(), last = sizes.empty() ? first : sizes.back();
    Line line = line_through(data_.between_nodes(group), first, last);
    line.seconds_per_byte *= degree_;
    return line;
  }

  // All groups in one node, whose links to the host are the ways between nodes: what goes from one to another takes
  // both, as long as the slower one needs. Memory, processor and power are not asked for.
  std::string platform() {
    std::string types, devices, links;
    for (const auto& [type, times] : times_) {
      types += "    - {name: " + type +
               ", vendor: nvidia, origin: measured, memory: 1 TB, memory_bandwidth: 1e6 TB/s, launch_overhead: 0 s, "
               "power: {idle: 0 W, busy: 0 W}, vector: 1 TFLOP/s, rates: {matmul: {fp32: 1 TFLOP/s}}}\n";
    }
    int device = 0;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      for (const SailorGroup& group : plan_.stages[s].replicas) {
        const Line line = way_out(group, s);
        devices += "        - {type: " + type_of(group) + ", count: 1}\n";
        links += "        - {kind: host-link, devices: [" + std::to_string(device++) +
                 "], bandwidth: " + csv_cell(1 / line.seconds_per_byte) +
                 " B/s, latency: " + seconds_text(line.start / 2) + "}\n";
      }
    }
    return "platform:\n  name: groups of gpus\n  device_types:\n" + types +
           "  nodes:\n    - name: all\n      host: {cores: 1, core_speed: 1 GFLOP/s, memory: 1 TB, memory_bandwidth: "
           "1e6 "
           "TB/s, disk_bandwidth: 1 GB/s, power: {idle: 0 W, core_busy: 0 W, core_spin: 0 W}}\n      devices:\n" +
           devices + "      links:\n" + links;
  }

  Seconds update() const {
    Seconds longest{};
    for (const SailorStage& stage : plan_.stages) {
      for (const SailorGroup& group : stage.replicas) {
        longest = std::max(longest, times_.at(type_of(group))[at(stage.first)].update);
      }
    }
    return longest;
  }

  // What nvidia-smi shows beside PyTorch's tensors, as the authors have it: their simulator on their GH200 nodes,
  // whatever the degree ("depends on GPU + platform", runtime_simulator.py), and their planner elsewhere. A study has
  // one figure for all devices, so of GH200 beside other GPUs, which no plan of theirs has, the most.
  std::string context() const {
    constexpr std::string_view kGh200 = "GH-96";
    const bool on_gh200 =
        std::any_of(groups_.begin(), groups_.end(), [&](auto& one) { return one.second.gpu == kGh200; });
    return on_gh200 ? "5.06 GB" : degree_ > 1 ? "3 GB" : "2 GB";
  }

  std::string training() const {
    std::string layers;
    for (const SailorStage& stage : plan_.stages) {
      const int last = plan_.stages.back().last;
      const int blocks = std::min(stage.last, last - 1) - std::max(stage.first, 1) + 1;
      layers += std::string(layers.empty() ? "" : "|") + (stage.first == 0 ? "E" : "") +
                (blocks > 0 ? "t*" + std::to_string(blocks) : "") + (stage.last == last ? "L" : "");
    }
    return "training:\n  precision: fp32\n  optimizer: adam\n  global_batch: " + std::to_string(plan_.global_batch) +
           "\n  micro_batch_size: " + std::to_string(plan_.micro_batch) +
           "\n  blocking_sends: true\n  step_overhead: " + seconds_text(update()) +
           "\n  memory: {context: " + context() + "}\n  parallel: {data: " + std::to_string(replicas_) +
           ", pipeline: " + std::to_string(plan_.stages.size()) + ", layers: \"" + layers +
           "\"}\ncost_model: profiled\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
  }

  // DeepSpeed keeps a copy of the weights, and one of what it communicates (the authors' own planner counts both).
  Bytes copies(const SailorStage& stage) const { return Bytes{2 * kElement * parameters(stage)}; }

  const SailorPlan& plan_;
  SailorData& data_;
  int degree_, replicas_;
  std::vector<SailorAmounts> amounts_;
  std::map<std::string, SailorGroup> groups_;
  std::map<std::string, std::vector<SailorTimes>> times_; // [type][layer]
};

// Why a plan cannot be replayed with a device for each group; "" where it can.
std::string why_not(const SailorPlan& plan) {
  const SailorStage& first = plan.stages.front();
  for (const SailorStage& stage : plan.stages) {
    if (stage.replicas.size() != first.replicas.size()) {
      return "its stages have different numbers of replicas";
    }
    for (const SailorGroup& group : stage.replicas) {
      if (group.devices != first.replicas.front().devices) {
        return "its groups have different tensor degrees";
      }
    }
  }
  if (plan.stages.back().last < 2) {
    return "it has no layer between the first and the last";
  }
  constexpr int kMost = 1 << 16;
  const auto at_a_time = static_cast<long>(plan.micro_batch) * static_cast<long>(first.replicas.size());
  if (plan.global_batch % at_a_time != 0) {
    return "its batch is no multiple of micro-batch x replicas";
  }
  return plan.global_batch / at_a_time > kMost ? "it has more than 65,536 micro-batches" : "";
}

} // namespace

std::variant<SailorStudy, Infeasible> sailor_study(const SailorPlan& plan, SailorData& data) {
  if (std::string reason = why_not(plan); !reason.empty()) {
    return Infeasible{std::move(reason)};
  }
  return StudyText(plan, data).write();
}

} // namespace stagecraft
