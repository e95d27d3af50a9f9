// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/assumptions.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "sim/base/divisors.hpp"
#include "sim/base/format/yaml.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/named_table.hpp"
#include "sim/cost/memory.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

// Whether the user says the value at the key, one below it or one above it.
bool is_given(const std::vector<Setting>& given, const std::string& key) {
  return std::any_of(given.begin(), given.end(), [&](const Setting& setting) {
    return setting.key == key || key.starts_with(setting.key + ".") || setting.key.starts_with(key + ".");
  });
}

const char* precision_on(const Platform& platform) {
  const auto all_have = [&](Precision precision) {
    return std::all_of(platform.types.begin(), platform.types.end(),
                       [&](const DeviceType& type) { return type.rate(KernelKind::matmul, precision).has_value(); });
  };
  return all_have(Precision::bf16) ? "bf16" : all_have(Precision::fp16) ? "fp16" : "fp32";
}

// The recipe of how such models are trained today on such devices, which predictions are nearer to measurements with;
// "" where none is known.
const char* framework_on(const ModelGraph& model, const Platform& platform) {
  const auto all_are_of = [&](std::string_view vendor) {
    return std::all_of(platform.types.begin(), platform.types.end(), [&](const DeviceType& type) {
      return type.vendor == vendor && type.rate(KernelKind::matmul, Precision::bf16).has_value();
    });
  };
  if (tokens_of(model) == 0 || layer_row_of(model).layers.empty()) {
    return "";
  }
  return all_are_of("nvidia") ? kUsualFramework : all_are_of("google") ? "maxtext" : "";
}

// The least memory of a device.
Bytes memory_of(const Platform& platform) {
  Bytes memory{std::numeric_limits<double>::infinity()};
  for (const DeviceType& type : platform.types) {
    memory = std::min(memory, type.memory);
  }
  return memory;
}

// Parameters and what comes with them in 16 bits with Adam: a part that each device of a replica has its share of, and
// the optimiser's, which replicas may share too.
ParameterBytes bytes_of_adam() {
  Training training;
  training.precision = Precision::bf16;
  training.optimizer = &find_by_name(kOptimizers, "adam", "optimizer", {});
  return parameter_bytes(training);
}

// Whether a pipeline over all devices, which has a micro-batch of one sample in flight for each of them, has memory to
// keep what their backwards need.
bool keeps_activations(const ModelGraph& model, const Platform& platform) {
  constexpr double kShare = 0.8; // stages are not equal
  const ParameterBytes bytes = bytes_of_adam();
  const ModelTotals totals = totals_of(model);
  const double states = totals.parameters * (bytes.weight + bytes.gradient + bytes.optimizer);
  const double kept = totals.stash_elements * row_of(Precision::bf16).bytes;
  return states / static_cast<double>(platform.devices.size()) + kept <= kShare * memory_of(platform).value;
}

struct Degrees {
  int tensor = 1, pipeline = 1, zero = 1, expert = 1;
  bool operator==(const Degrees&) const = default;
};

std::string in_study(const Degrees& degrees) {
  return "{tensor: " + std::to_string(degrees.tensor) + ", pipeline: " + std::to_string(degrees.pipeline) +
         ", zero: " + std::to_string(degrees.zero) +
         (degrees.expert > 1 ? ", expert: " + std::to_string(degrees.expert) : "") + "}";
}

// What of a device's memory parameters and what comes with them may take, so that activations have room.
constexpr double kShareOfStates = 0.6;
constexpr int kMostTensor = 8;

// The devices that every node has.
int devices_of_node(const Platform& platform) {
  std::map<int, int> per_node;
  for (const Device& device : platform.devices) {
    ++per_node[device.node];
  }
  auto node = static_cast<int>(platform.devices.size());
  for (const auto& [id, count] : per_node) {
    node = std::gcd(node, count);
  }
  return node;
}

// The experts of a mixture's layer; 1 of a dense model.
int experts_of(const ModelGraph& model) {
  int experts = 1;
  for (const Operator& op : model.operators) {
    experts = op.routing ? std::max(experts, op.routing->experts) : experts;
  }
  return experts;
}

double expert_parameters_of(const ModelGraph& model) {
  return std::accumulate(model.operators.begin(), model.operators.end(), 0.0,
                         [](double sum, const Operator& op) { return sum + (op.active < 1 ? op.parameters : 0); });
}

// What degrees are chosen by: a model of so many layers and parameters, on so many devices.
struct Task {
  int devices, node, layers, experts;
  double parameters, of_experts, memory; // of_experts: among the parameters
  ParameterBytes bytes = bytes_of_adam();

  Task(const ModelGraph& model, const Platform& platform)
      : devices(static_cast<int>(platform.devices.size())), node(devices_of_node(platform)),
        layers(static_cast<int>(layer_row_of(model).layers.size())), experts(experts_of(model)),
        parameters(totals_of(model).parameters), of_experts(expert_parameters_of(model)),
        memory(memory_of(platform).value) {}

  // Stages of the layers so shared are nearly equal: the longest has at most a tenth more than its part.
  bool shares_layers(int pipeline) const {
    const int longest = (layers + pipeline - 1) / pipeline;
    return pipeline <= layers && 10 * longest * pipeline <= 11 * layers;
  }
  // All of it, on each device: replicas that share nothing.
  bool holds_whole() const {
    return parameters * (bytes.weight + bytes.gradient + bytes.optimizer) <= kShareOfStates * memory;
  }
  int replicas(const Degrees& degrees) const { return devices / (degrees.tensor * degrees.pipeline); }
  // Parameters and what comes with them leave room on each device.
  bool holds(const Degrees& degrees) const {
    const double replicas_of = replicas(degrees);
    const double shared = degrees.zero == 3 ? 1 : replicas_of; // ZeRO 1 shares the optimiser's alone
    const double held =
        ((parameters - of_experts) / degrees.tensor + of_experts / std::max(degrees.tensor, degrees.expert)) /
        degrees.pipeline;
    const double each =
        held * (bytes.weight + bytes.gradient) * (shared / replicas_of) + parameters / devices * bytes.optimizer;
    return each <= kShareOfStates * memory;
  }
  // Over how many devices of a node the ranks of a stage may share experts: the most.
  int expert(const Degrees& degrees) const { return std::gcd(std::gcd(experts, devices / degrees.pipeline), node); }
};

// The fewest devices for one replica, first within a node and then as a pipeline of nodes, on which parameters and
// what comes with them take at most a share of the memory that leaves room for activations (the order is that of
// Narayanan et al. 2021, sec. 3). The optimiser's states are shared by the replicas (ZeRO 1).
Degrees fewest_degrees(const Task& task) {
  for (Degrees degrees;;) {
    if (task.holds(degrees)) {
      return degrees;
    }
    const int doubled = degrees.tensor * degrees.pipeline * 2;
    if (degrees.tensor * 2 <= kMostTensor && task.node % (degrees.tensor * 2) == 0) {
      degrees.tensor *= 2;
    } else if (task.devices % doubled == 0 && degrees.pipeline * 2 <= task.layers) {
      degrees.pipeline *= 2;
    } else {
      return degrees;
    }
  }
}

// Whether the batch is known to be shared by the replicas without a rest.
bool divides(const Task& task, const Degrees& degrees, int batch) { return batch % task.replicas(degrees) == 0; }

// Degrees worth a try, the fewest devices a replica first: those that hold the model and divide devices and batch, with
// stages that are nearly equal. ZeRO 3 with one device a replica, or eight where the model is that large; ZeRO 1 with
// the least product of tensor and pipeline, and with twice that, of a mixture also with experts over the devices of a
// node.
std::vector<Degrees> degrees_to_try(const Task& task, const Degrees& fewest, int batch) {
  std::vector<Degrees> tried;
  const auto add = [&](const Degrees& degrees) {
    const int product = degrees.tensor * degrees.pipeline;
    const bool fits = task.devices % product == 0 && task.node % degrees.tensor == 0 && task.holds(degrees);
    const bool is_new = std::find(tried.begin(), tried.end(), degrees) == tried.end();
    if (fits && is_new && divides(task, degrees, batch)) {
      tried.push_back(degrees);
    }
  };
  add(fewest);
  int least = tried.empty() ? 0 : fewest.tensor * fewest.pipeline;
  const Degrees alone{.zero = 3};
  add(alone);
  if (!task.holds(alone) || fewest.tensor == kMostTensor) {
    add({.tensor = kMostTensor, .zero = 3});
  }
  for (int product = 1; product <= task.devices && (least == 0 || product <= 2 * least); product *= 2) {
    for (int tensor = std::min(product, kMostTensor); tensor >= 1; tensor /= 2) {
      const int pipeline = product / tensor;
      const std::size_t before = tried.size();
      if (task.shares_layers(pipeline)) {
        Degrees degrees{.tensor = tensor, .pipeline = pipeline};
        add(degrees);
        degrees.expert = task.expert(degrees);
        add(degrees);
      }
      least = least == 0 && tried.size() > before ? product : least;
    }
  }
  return tried;
}

// The least common multiple of the numbers of micro-batches that the user gives, "8" or "[8, 16]"; 1 where there are
// none.
int micro_batches_in(const std::vector<Setting>& given) {
  constexpr int kMost = 1 << 24;
  int multiple = 1;
  for (const Setting& setting : given) {
    for (std::size_t at = 0; setting.key == "training.micro_batches" && at < setting.value.size();) {
      const std::size_t end = std::min(setting.value.find_first_not_of("0123456789", at), setting.value.size());
      const int count = end > at ? std::atoi(setting.value.substr(at, std::min<std::size_t>(end - at, 8)).c_str()) : 1;
      multiple = count > 0 && multiple <= kMost / count ? std::lcm(multiple, count) : multiple;
      at = std::max(end, at + 1);
    }
  }
  return multiple;
}

// The batch that the user gives; 0 where he gives none, or one that is no number.
int batch_in(const std::vector<Setting>& given) {
  constexpr int kMost = 1 << 24;
  int batch = 0;
  for (const Setting& setting : given) {
    const bool number = setting.key == "training.global_batch" && !setting.value.empty() &&
                        setting.value.find_first_not_of("0123456789") == std::string::npos;
    batch = number ? std::atoi(setting.value.substr(0, 8).c_str()) : batch;
  }
  return batch <= kMost ? batch : 0;
}

constexpr int kFewDevices = 16; // on which strategies search by themselves

// Whether degrees are assumed: of many devices, and of few that are alike where one alone does not hold what Adam
// keeps, so that replicas must share it.
bool needs_degrees(const ModelGraph& model, const Platform& platform, const Task& task, AssumedDegrees degrees) {
  const bool shares = tokens_of(model) > 0 && platform.types.size() == 1 && task.devices > 1 &&
                      (degrees == AssumedDegrees::anywhere || !task.holds_whole()) &&
                      (task.holds({.zero = 3}) || task.holds(fewest_degrees(task)));
  return task.layers > 0 && (task.devices > kFewDevices || shares);
}

// Whether the strategies that the user names, if any, leave somebody to keep degrees.
bool may_keep_degrees(const std::vector<Setting>& given) {
  const auto named = std::find_if(given.rbegin(), given.rend(),
                                  [](const Setting& setting) { return setting.key == "compare.strategies"; });
  if (named == given.rend() || named->value.empty()) {
    return true;
  }
  const yaml::Node names = yaml::parse(named->value, "--set compare.strategies");
  const std::vector<yaml::Node> listed = names.kind == yaml::Node::Kind::sequence ? names.items : std::vector{names};
  return std::any_of(listed.begin(), listed.end(), [](const yaml::Node& name) {
    return name.text == "all" || std::any_of(strategies().begin(), strategies().end(), [&](const StrategyRow& row) {
             return (row.takes_degrees || row.keeps_degrees()) && same_name(row.name, name.text);
           });
  });
}

// The batch that is assumed: a sequence is a sample, four for each device, and enough of them that a pipeline is
// filled, four for each of its stages.
int assumed_batch(const ModelGraph& model, const Task& task, const std::optional<Degrees>& degrees) {
  constexpr int kLeast = 64, kEach = 4, kImages = 32, kPipelines = 32;
  if (degrees && task.devices > kFewDevices) {
    return task.replicas(*degrees) * (degrees->pipeline > 1 ? std::max(kPipelines, kEach * degrees->pipeline)
                                      : degrees->tensor > 1 ? 16
                                                            : kEach);
  }
  return tokens_of(model) > 0 ? round_up(std::max(kLeast, kEach * task.devices), degrees ? task.devices : 1)
                              : kImages * task.devices;
}

// Whether dapple takes minutes: its table grows with the devices that share no layer, and with the square of layers.
bool is_long_for_dapple(const Task& task, const Degrees& degrees) {
  constexpr int kShort = 8; // stages
  constexpr double kMany = 400'000;
  const int groups = task.devices / degrees.tensor;
  return degrees.pipeline > kShort || 1.0 * task.layers * task.layers * groups > kMany;
}

// The degrees with the least time of an iteration, and what was tried; the first where nothing is tried.
Degrees fastest(const std::vector<Degrees>& candidates, const TryDegrees& attempt, std::vector<Setting> settings,
                std::vector<TriedDegrees>& tried) {
  if (!attempt || candidates.size() < 2) {
    return candidates.front();
  }
  settings.push_back({"training.parallel", ""});
  std::size_t best = 0;
  for (const Degrees& degrees : candidates) {
    settings.back().value = in_study(degrees);
    tried.push_back({settings.back().value, attempt(settings)});
    const auto seconds = [&](std::size_t one) { return tried[one].iteration.value_or(Seconds{kInfinity}); };
    best = seconds(tried.size() - 1) < seconds(best) ? tried.size() - 1 : best;
  }
  return candidates[best];
}

} // namespace

Assumptions assumptions_for(const ModelGraph& model, const Platform& platform, const std::vector<Setting>& given,
                            const TryDegrees& attempt, AssumedDegrees degrees) {
  if (!model.profiles.empty() || !model.configurations.empty() || model.memory_given ||
      is_given(given, "training.config")) {
    return {};
  }
  const Task task(model, platform);
  const bool of_layers = task.layers > 0;
  const bool with_degrees = needs_degrees(model, platform, task, degrees) && may_keep_degrees(given);
  const std::optional<Degrees> fewest = with_degrees ? std::optional(fewest_degrees(task)) : std::nullopt;
  const int batch = round_up(assumed_batch(model, task, fewest), micro_batches_in(given));
  Assumptions made{{{"training.global_batch", std::to_string(batch)},
                    {"training.optimizer", "adam"},
                    {"training.precision", precision_on(platform)}},
                   {}};
  if (const std::string framework = framework_on(model, platform); !framework.empty()) {
    made.settings.push_back({"training.framework", framework});
  }
  const bool recomputes = !with_degrees && of_layers && !keeps_activations(model, platform);
  if (recomputes || with_degrees) {
    made.settings.push_back({"training.recompute", with_degrees ? "[none, blocks]" : "blocks"});
  }
  const auto drop_given = [&] {
    std::erase_if(made.settings, [&](const Setting& setting) { return is_given(given, setting.key); });
  };
  bool without_dapple = false;
  if (with_degrees && !is_given(given, "training.parallel")) {
    drop_given();
    const int given_batch = batch_in(given);
    std::vector<Degrees> candidates = degrees_to_try(task, *fewest, given_batch > 0 ? given_batch : batch);
    if (candidates.empty()) {
      candidates.push_back(*fewest);
    }
    const Degrees best = fastest(candidates, attempt, made.settings, made.tried);
    without_dapple = is_long_for_dapple(task, best);
    made.settings.push_back({"training.parallel", in_study(best)});
  }
  const bool by_degrees = with_degrees || is_given(given, "training.parallel");
  made.settings.push_back(
      {"compare.strategies", by_degrees && without_dapple ? "[mesh, uniform, optimal]"
                             : by_degrees                 ? "[mesh, uniform, optimal, dapple]"
                             : recomputes                 ? "[data-parallel, uniform, capability, piper, amp]"
                                          : "[data-parallel, uniform, capability, optimal, dapple, piper, amp]"});
  made.settings.push_back({"compare.schedules", "[gpipe, 1f1b, interleaved, zb-h1, zb-v]"});
  drop_given();
  return made;
}

std::string in_words(const std::vector<Setting>& assumptions) {
  std::vector<std::string> texts;
  for (const Setting& setting : assumptions) {
    texts.push_back(setting.key + "=" + setting.value);
  }
  return join(texts, ", ");
}

std::string in_words(std::vector<TriedDegrees> tried) {
  const auto seconds = [](const TriedDegrees& one) { return one.iteration.value_or(Seconds{kInfinity}); };
  std::stable_sort(tried.begin(), tried.end(), [&](auto& one, auto& other) { return seconds(one) < seconds(other); });
  std::vector<std::string> texts;
  for (const TriedDegrees& one : tried) {
    texts.push_back(one.parallel + (one.iteration ? " " + to_text(*one.iteration) : " cannot run"));
  }
  constexpr std::size_t kOther = 1;
  return tried.size() <= kOther
             ? ""
             : "Of these degrees the fastest are assumed, each tried as mesh under 1f1b without "
               "contention: " +
                   join(texts, "; ") + ". --set training.parallel='" + tried[kOther].parallel + "' asks for others.";
}

} // namespace stagecraft
