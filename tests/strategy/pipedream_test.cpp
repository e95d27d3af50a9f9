// Splits of PipeDream's published profiles against exact bottlenecks found by another program.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <filesystem>

#include "sim/base/system/file.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::kInfinite;

// One device type that runs every kernel as the profile says.
DeviceType profiled_type() {
  DeviceType type;
  type.name = "profiled";
  for (auto& rates : type.rates) {
    rates.fill(FlopsPerSecond{1});
  }
  type.memory = Bytes{kInfinite};
  type.memory_bandwidth = BytesPerSecond{kInfinite};
  return type;
}

// The bottleneck that `antichain` and `optimal` claim on `devices` devices round a switch. That of `optimal` is what
// the plan costs; `antichain` counts some tensors twice, so its plan may cost less.
std::pair<double, double> bottlenecks(const ModelGraph& model, int devices, double bandwidth) {
  const Platform platform = make_star_platform(profiled_type(), devices, BytesPerSecond{bandwidth}, Seconds{0});
  const auto cost = make_profiled({.model = model});
  const Training training;
  Router router(platform);
  const Problem problem =
      make_problem(model, platform, *std::get<std::unique_ptr<CostModel>>(cost), training, router, 1);
  PlanRequest request{.problem = problem, .devices = {}, .in_flight = [](int, int) { return 1.0; }};
  for (DeviceId device = 0; device < devices; ++device) {
    request.devices.push_back(device);
  }
  std::vector<double> found;
  for (const std::string_view name : {"antichain", "optimal"}) {
    const Plan plan = std::get<Plan>(make_plan(test::strategy_row(name), request));
    CHECK(plan.note.empty());
    const double costs = bottleneck(problem, plan, cost_plan(problem, plan)).value;
    CHECK(costs <= plan.objective->value.value * (1 + 1e-9));
    if (name == "optimal") {
      CHECK(plan.objective->value.value == test::near(costs));
    }
    found.push_back(plan.objective->value.value);
  }
  return {found[0], found[1]};
}

ModelGraph per_minibatch(ModelGraph model) {
  for (Profile& profile : model.profiles) {
    profile.samples = 1; // the minibatch as a whole
  }
  return model;
}

TEST_CASE("a profile graph is cut where its tensors are small", "[plan][pipedream]") {
  // Milliseconds forward + backward: a 1+1, b 2+2, c 2+2, d 1+1, in a diamond; tensors of 1, 2, 3 and 9 MB.
  const ModelGraph model = per_minibatch(import_pipedream(
      "node1 -- a -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1000000.0, parameter_size=0\n"
      "node2 -- b -- forward_compute_time=2.0, backward_compute_time=2.0, activation_size=2000000.0, parameter_size=0\n"
      "node3 -- c -- forward_compute_time=2.0, backward_compute_time=2.0, activation_size=3000000.0, parameter_size=0\n"
      "node4 -- d -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=9000000.0, parameter_size=0\n"
      "\tnode1 -- node2\n\tnode1 -- node3\n\tnode2 -- node4\n\tnode3 -- node4\n",
      "diamond.txt"));
  // Two devices, free links: {a, b} and {c, d} take 6 ms each.
  CHECK(bottlenecks(model, 2, kInfinite).first == test::near(6e-3));
  // Four devices: b and c take 4 ms each.
  CHECK(bottlenecks(model, 4, kInfinite).first == test::near(4e-3));
  // At 1 GB/s the border of {a, b} is crossed by a (for c) and b: 2 x 3 ms = 6 ms, as long as its stages.
  CHECK(bottlenecks(model, 2, 1e9).first == test::near(6e-3));
  CHECK(bottlenecks(model, 2, 1e9).second == test::near(6e-3));
  // At 0.8 GB/s that takes 7.5 ms; {a, c} 2 x 4 / 0.8 = 10 ms, {a} 2 x 1 / 0.8 = 2.5 ms but leaves 10 ms of work,
  // {a, b, c} 2 x 5 / 0.8. So 7.5 ms.
  CHECK(bottlenecks(model, 2, 0.8e9).first == test::near(7.5e-3));
  // At 0.1 GB/s every cut costs 20 ms or more: one device, 12 ms.
  CHECK(bottlenecks(model, 2, 0.1e9).first == test::near(12e-3));
}

TEST_CASE("published profiles reach the exact bottleneck", "[plan][pipedream]") {
  const std::filesystem::path folder = test::source_dir() / "../shared/data/pipedream";
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder.string() << " is absent");
    return;
  }
  const auto expected = nlohmann::json::parse(read_file(folder / "expected_straight_minmax.json"));
  int compared = 0;
  int worse = 0;
  for (const auto& [name, figures] : expected.at("models").items()) {
    const ModelGraph model = per_minibatch(load_model(folder / "profiles" / (name + ".graph.txt")));
    const std::vector<std::pair<std::string, double>> links = {
        {"compute_only", kInfinite}, {"bw10GBs", 10e9}, {"bw1GBs", 1e9}};
    for (const auto& [key, bandwidth] : links) {
      for (const int devices : {2, 4, 8}) {
        CAPTURE(name, key, devices);
        const double exact = figures.at(key).at(std::to_string(devices)).at("bottleneck_s").get<double>();
        const auto [antichain, optimal] = bottlenecks(model, devices, bandwidth);
        CHECK(antichain >= exact * (1 - 1e-9));
        CHECK(optimal == Approx(exact).epsilon(1e-9));
        worse += antichain > exact * (1 + 1e-9) ? 1 : 0;
        ++compared;
      }
    }
  }
  CHECK(compared == 6 * 3 * 3);
  CHECK(worse > 0);
  // PipeDream counts the block's input again beside its two branches: 0.285058 s, where 0.276674 s are needed.
  const ModelGraph resnet = per_minibatch(load_model(folder / "profiles/resnet50.graph.txt"));
  const auto [antichain, optimal] = bottlenecks(resnet, 2, 1e9);
  CHECK(antichain == Approx(0.285058).epsilon(1e-5));
  CHECK(optimal == Approx(0.276674).epsilon(1e-5));
}

} // namespace
} // namespace stagecraft
