// Laws that every cost model obeys, and the table they stand in.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/named_table.hpp"
#include "sim/cost/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

// Every kernel kind, with shapes and a profile.
ModelGraph every_kind() {
  std::vector<Operator> operators;
  std::vector<MeasuredTime> times;
  for (const KernelKindRow& row : kKernelKinds) {
    Operator op;
    op.name = row.name;
    op.kind = row.kind;
    op.parameters = row.matrix ? 10 : 0;
    op.forward = {Flops{100}, 10, 10, 1};
    op.backward_input = {Flops{100}, 20, 10, 1};
    op.backward_weight = row.matrix ? Pass{Flops{100}, 20, 10, 1} : Pass{};
    operators.push_back(op);
    times.push_back({Seconds{1}, Seconds{2}});
  }
  return make_graph("every kind", operators, {}, {{"round", 4, Precision::fp32, times}}, {"test", 0, 0});
}

TEST_CASE("times are finite, not negative, alike when asked twice, and do not shrink with the micro-batch",
          "[cost][conformance]") {
  const ModelGraph model = every_kind();
  const DeviceType type = test::round_device();
  for (const CostModelRow& row : cost_models()) {
    const auto made = row.make({.model = model, .reference = &type});
    REQUIRE(std::holds_alternative<std::unique_ptr<CostModel>>(made));
    const CostModel& cost = *std::get<std::unique_ptr<CostModel>>(made);
    for (OperatorId op = 0; op < model.size(); ++op) {
      CAPTURE(row.name, model.operators[op].name);
      double before = 0;
      for (const double samples : {0.25, 1.0, 3.0, 4.0, 5.0, 64.0}) {
        const auto time = cost.time(op, type, samples, Precision::fp32);
        const auto again = cost.time(op, type, samples, Precision::fp32);
        if (!time) {
          CHECK(!type.rate(model.operators[op].kind, Precision::fp32).has_value());
          CHECK(!again.has_value());
          continue;
        }
        const double whole = (time->forward + time->backward_input + time->backward_weight).value;
        CHECK(std::isfinite(whole));
        CHECK(std::min({time->forward, time->backward_input, time->backward_weight}).value >= 0);
        CHECK(whole == (again->forward + again->backward_input + again->backward_weight).value);
        CHECK(whole >= before);
        before = whole;
      }
    }
  }
}

TEST_CASE("names of cost models are unique and have a line of help", "[cost][conformance]") {
  std::vector<std::string> names = names_of(cost_models());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const CostModelRow& row : cost_models()) {
    CHECK(!row.help.empty());
  }
}

TEST_CASE("auto takes the profile where there is one, else the roofline where a device has no fits", "[cost]") {
  ModelGraph model = every_kind();
  const DeviceType type = test::round_device();
  const auto forward = [&](std::string_view name) {
    const auto made = make_cost_model(name, {.model = model}, {"study.yaml", 3, 7});
    return std::get<std::unique_ptr<CostModel>>(made)->time(0, type, 4, Precision::fp32)->forward.value;
  };
  CHECK(forward("auto") == forward("profiled"));
  CHECK(forward("roofline") != forward("profiled"));
  CHECK(forward("constant") == 1);
  model.profiles.clear();
  CHECK(forward("auto") == forward("roofline"));
}

TEST_CASE("an unknown cost model is an error with its place and the nearest name", "[cost]") {
  const ModelGraph model = every_kind();
  CHECK_THROWS_WITH(make_cost_model("rofline", {.model = model}, {"study.yaml", 3, 7}),
                    Catch::StartsWith("study.yaml:3:7: ") && Catch::Contains("did you mean 'roofline'?"));
}

TEST_CASE("a model without shapes has no roofline", "[cost]") {
  ModelGraph model = every_kind();
  for (Operator& op : model.operators) {
    op.forward = op.backward_input = op.backward_weight = {};
  }
  CHECK(std::holds_alternative<Infeasible>(make_roofline({.model = model})));
}

} // namespace
} // namespace stagecraft
