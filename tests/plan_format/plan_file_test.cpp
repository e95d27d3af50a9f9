// Plan files: what is written is read back, and names are matched whatever their order.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_format/plan_file.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("a plan reads back the same from YAML and from JSON", "[study]") {
  const Study chain = study(chain_study(""));
  ScheduleCounts counts;
  StudyMemo memo(chain, counts);
  const Plan plan{
      .strategy = "mine",
      .stages = {{.operators = {0}, .devices = {0, 1}, .shares = {0.25, 0.75}, .recompute = Recompute::full},
                 {.operators = {1, 2, 3},
                  .devices = {0, 1},
                  .tensor_parallel = 2,
                  .tensor_rule = TensorRule::search,
                  .recompute = Recompute::selective,
                  .recomputed = {1, 3}}}};
  const std::string written = plan_to_yaml(plan, *chain.model, chain.platform);
  CHECK(read_plan(yaml::parse(written, "plan.yaml"), *chain.model, chain.platform) == plan);
  const PlanCost cost = cost_plan(memo.costs.problem(1), plan);
  const std::string json = plan_to_json(plan, cost, {}, *chain.model, chain.platform, true);
  CHECK(read_plan(yaml::parse(json, "plan.json"), *chain.model, chain.platform) == plan);
}

TEST_CASE("operators of a stage may stand in any order", "[study]") {
  const Study chain = study(chain_study(""));
  const Plan plan = read_plan(yaml::parse("stages: [{devices: node/profiled-0, operators: [d, b, a, c]}]", "plan.yaml"),
                              *chain.model, chain.platform);
  CHECK(plan.strategy == "given");
  CHECK(plan.stages.front().operators == std::vector<OperatorId>{0, 1, 2, 3});
}

TEST_CASE("all unknown operators of a plan are told at once, the first with its place", "[study]") {
  const Study read = study(chain_study(""));
  const auto error = [&](const std::string& operators) {
    return error_of([&] {
      read_plan(yaml::parse("stages:\n  - {devices: [0], operators: [a, e]}\n  - {devices: [1], operators: [" +
                                operators + "]}\n",
                            "plan.yaml"),
                *read.model, read.platform);
    });
  };
  CHECK_THAT(error("b, c, d"),
             Catch::StartsWith("plan.yaml:2:35: unknown operator 'e'; ") && Catch::EndsWith("known: a, b, c, d"));
  CHECK_THAT(error("f, b, g"), Catch::StartsWith("plan.yaml:2:35: unknown operator 'e'; ") &&
                                   Catch::EndsWith("known: a, b, c, d; unknown too: 'f' in line 3, 'g' in line 3"));
  CHECK_THAT(error("f, g, h, i, j, k, l, m"), Catch::EndsWith("'l' in line 3, 1 more"));
}

TEST_CASE("in a large model an unknown operator is answered by the nearest alone", "[study]") {
  const Study vgg = study("model: vgg16\nplatform: pcie-v100\n");
  const std::string error = error_of([&] {
    read_plan(yaml::parse("stages: [{devices: server/v100-pcie-16gb-0, operators: [conv1.0.con]}]", "plan.yaml"),
              *vgg.model, vgg.platform);
  });
  CHECK_THAT(error, Catch::Contains("unknown operator 'conv1.0.con'; did you mean 'conv1.0.conv'?") &&
                        Catch::Contains("known: 40, which `stagecraft show` lists"));
}

} // namespace
} // namespace stagecraft::test
