// Small planning problems: operators with costs from a table, on a star of devices of several types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/estimate/estimate.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/strategy/strategy.hpp"

namespace stagecraft::test {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// One operator; bytes and seconds are of a micro-batch of one sample.
struct ToyOperator {
  std::vector<double> seconds; ///< forward + backward, per device type; infinite: no kernel
  double output = 0;           ///< bytes
  double parameters = 0;
  double stash = 0; ///< bytes
  bool divisible = true;
};

struct ToyType {
  double memory = kInfinite;
  double peak = 1; ///< FLOP/s, for planners that split by nominal power
};

/// A device on its own link of a star.
struct ToyDevice {
  int type = 0;
  double bandwidth = kInfinite;
  double latency = 0; ///< of its way out
};

/// Operators are named 0, 1, …; edges go from lower to higher numbers.
struct Toy {
  std::vector<ToyOperator> operators;
  std::vector<std::pair<int, int>> edges;
  std::vector<ToyType> types = {{}};
  std::vector<ToyDevice> devices = {{}};
  double input = 0; ///< bytes fed to each source
  int micro_batches = 1;
  int samples = 1; ///< of a micro-batch; replicas share them
  Training training = {};
};

inline std::vector<std::pair<int, int>> chain_edges(int operators) {
  std::vector<std::pair<int, int>> edges;
  for (int op = 0; op + 1 < operators; ++op) {
    edges.emplace_back(op, op + 1);
  }
  return edges;
}

/// Operators of 3, 6 and 9 s in five micro-batches on four equal devices; tensors of 4 and 8 B at 2 B/s, each way out
/// costs 1 s.
inline Toy chain_of_three() {
  Toy toy;
  toy.operators = {{{3}, 4}, {{6}, 8}, {{9}, 0}};
  toy.edges = chain_edges(3);
  toy.devices.assign(4, {0, 2, 1});
  toy.micro_batches = 5;
  return toy;
}

/// A third of an operator's time is forward; what remains is half input gradient, half weight gradient.
class TableCost : public CostModel {
public:
  explicit TableCost(const Toy& toy) : toy_(toy) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision /*precision*/) const override {
    const double seconds = toy_.operators[op].seconds[std::stoi(type.name)] * samples;
    if (seconds == kInfinite) {
      return std::nullopt;
    }
    return OperatorTime{Seconds{seconds / 3}, Seconds{seconds / 3}, Seconds{seconds - 2 * (seconds / 3)}};
  }

  // Proportional to samples; a launch takes no time.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    return least_of_whole(*this, op, type, precision, part);
  }

private:
  const Toy& toy_;
};

inline ModelGraph model_of(const Toy& toy) {
  std::vector<Operator> operators;
  for (std::size_t op = 0; op < toy.operators.size(); ++op) {
    Operator made;
    made.name = std::to_string(op);
    made.parameters = toy.operators[op].parameters;
    made.output_elements = toy.operators[op].output / 4; // fp32
    made.divisible = toy.operators[op].divisible;
    made.stash_elements = toy.operators[op].stash / 4;
    made.forward.flops = Flops{toy.operators[op].seconds[0]}; // static load: one FLOP a second on type 0
    operators.push_back(made);
  }
  ModelGraph model = make_graph("toy", operators, toy.edges, {}, {"toy", 0, 0});
  model.input_elements = toy.input / 4;
  return model;
}

inline Platform platform_of(const Toy& toy) {
  Platform platform =
      make_star_platform({}, static_cast<int>(toy.devices.size()), BytesPerSecond{kInfinite}, Seconds{0});
  platform.types.clear();
  for (std::size_t type = 0; type < toy.types.size(); ++type) {
    DeviceType made;
    made.name = std::to_string(type);
    made.memory = Bytes{toy.types[type].memory};
    made.peak.fill(FlopsPerSecond{toy.types[type].peak});
    made.memory_bandwidth = BytesPerSecond{kInfinite};
    platform.types.push_back(made);
  }
  for (std::size_t d = 0; d < toy.devices.size(); ++d) {
    platform.devices[d].type = toy.devices[d].type;
    platform.links[2 * d].bandwidth = platform.links[2 * d + 1].bandwidth = BytesPerSecond{toy.devices[d].bandwidth};
    platform.links[2 * d].latency = Seconds{toy.devices[d].latency};
  }
  return platform;
}

/// A problem with all it refers to.
class World {
public:
  explicit World(Toy what)
      : toy(std::move(what)), model(model_of(toy)), platform(platform_of(toy)), cost(toy), router(platform),
        problem(make_problem(model, platform, cost, training(), router, toy.micro_batches)) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// All devices in order; stage s of S holds the micro-batches of 1F1B.
  PlanRequest request() const {
    PlanRequest made{.problem = problem, .devices = {}};
    for (std::size_t d = 0; d < toy.devices.size(); ++d) {
      made.devices.push_back(static_cast<DeviceId>(d));
    }
    const int m = toy.micro_batches;
    made.in_flight = [m](int stage, int stages) { return static_cast<double>(std::min(stages - stage, m)); };
    return made;
  }

  Seconds bottleneck_of(const Plan& plan) const { return bottleneck(problem, plan, cost_plan(problem, plan)); }

  Toy toy;
  ModelGraph model;
  Platform platform;
  TableCost cost;
  Router router;
  Problem problem;

private:
  const Training& training() {
    toy.training.global_batch = toy.micro_batches * toy.samples;
    return toy.training;
  }
};

inline const StrategyRow& strategy_row(std::string_view name) {
  return find_by_name(strategies(), name, "strategy", {"test", 0, 0});
}

inline PlanResult plan_of(const World& world, std::string_view strategy) {
  return make_plan(strategy_row(strategy), world.request());
}

/// The last operator of each stage and 1: the cuts of a plan of a chain.
inline std::vector<int> cuts_of(const Plan& plan) {
  std::vector<int> cuts = {0};
  for (const Stage& stage : plan.stages) {
    cuts.push_back(cuts.back() + static_cast<int>(stage.operators.size()));
  }
  return cuts;
}

} // namespace stagecraft::test
