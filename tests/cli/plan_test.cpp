// stagecraft plan, check and replay --plan: a plan file goes round.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/strategy.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kOn = " " + kChain + " --devices 2 --set training.global_batch=4 --micro-batches 4 ";

TEST_CASE("plan gives JSON with every key", "[cli]") {
  const Workshop shop;
  const Json json = shop.succeed("plan" + kOn + "--strategy uniform --format json").json();
  for (const char* key : {"schema", "strategy", "stages", "bottleneck_seconds", "objective", "estimate_seconds",
                          "lower_bound_seconds", "timing"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  CHECK(json.at("strategy") == "uniform");
  REQUIRE(json.at("stages").size() == 2);
  CHECK(json.at("stages").at(0).at("operators") == Json({"a", "b"}));
  CHECK(json.at("stages").at(1).at("devices") == Json({"node/profiled-1"}));
  CHECK(json.at("stages").at(1).at("seconds").get<double>() == near(6));
  CHECK(json.at("bottleneck_seconds").get<double>() == near(6));
  CHECK(json.at("estimate_seconds").get<double>() == near(3 * 6 + 12)); // (M-1) max c + sum c
  CHECK(json.at("lower_bound_seconds").get<double>() == near(24));
}

TEST_CASE("the plan of every strategy is read back by check and by replay", "[cli]") {
  const Workshop shop;
  for (const StrategyRow& strategy : strategies()) {
    const std::string name(strategy.name);
    const Outcome planned = shop.run("plan" + kOn + "--strategy " + name);
    REQUIRE(planned.status == 0);
    CHECK_THAT(planned.err, Contains("bottleneck "));
    shop.write("plan.yaml", planned.out);
    CHECK(shop.succeed("check plan.yaml" + kOn).out == "plan.yaml: a valid plan that fits\n");
    const std::string as = "--schedule 1f1b --format json ";
    Json direct = shop.succeed("replay" + kOn + as + "--strategy " + name).json();
    Json again = shop.succeed("replay" + kOn + as + "--plan plan.yaml").json();
    for (const char* key : {"timing", "objective", "note"}) { // a plan file does not carry them
      direct.erase(key);
      again.erase(key);
    }
    CHECK(direct == again);
  }
}

TEST_CASE("the flag --quiet keeps remarks off stderr, -o the plan off stdout", "[cli]") {
  const Workshop shop;
  CHECK(shop.succeed("plan" + kOn + "--strategy uniform --quiet").err.empty());
  CHECK(shop.succeed("plan" + kOn + "--strategy uniform -o plan.yaml").out.empty());
  CHECK_THAT(shop.read("plan.yaml"), StartsWith("# A plan of Stagecraft: "));
}

TEST_CASE("check tells every defect of a plan and ends with status 1", "[cli]") {
  const Workshop shop;
  shop.write("plan.yaml", "stages:\n"
                          "  - {devices: [node/profiled-0], operators: [a, c]}\n"
                          "  - {devices: [node/profiled-1, node/profiled-1], operators: [b, c]}\n");
  const Outcome outcome = shop.run("check plan.yaml" + kOn);
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("plan.yaml: operator 'c' is in stage 0 and in stage 1\n"));
  CHECK_THAT(outcome.out, Contains("plan.yaml: operator 'd' is in no stage\n"));
  CHECK_THAT(outcome.out, Contains("lists device 'node/profiled-1' more than once"));
  const Json json = shop.run("check plan.yaml --format json" + kOn).json();
  CHECK_FALSE(json.at("valid").get<bool>());
  CHECK(json.at("defects").size() >= 3);
  const Outcome replayed = shop.run("replay --schedule 1f1b --plan plan.yaml" + kOn);
  CHECK(replayed.status == 1);
  CHECK_THAT(replayed.err, Contains("operator 'd' is in no stage"));
}

TEST_CASE("check and replay refuse a plan that overflows memory", "[cli]") {
  const Workshop shop;
  shop.succeed("plan" + kOn + "--strategy uniform -o plan.yaml");
  // Under GPipe device 1 keeps 8 MB of four micro-batches, beside 8 MB of buffers and 24 kB of weights and optimiser.
  const auto check = [&](const std::string& memory) {
    return shop.run("check plan.yaml --schedule gpipe --memory '" + memory + "'" + kOn);
  };
  CHECK(check("40024000 B").status == 0);
  const Outcome outcome = check("40023999 B");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("'node/profiled-1' overflows by 1.000 B"));
  CHECK(shop.run("replay --plan plan.yaml --schedule gpipe --memory '40023999 B'" + kOn).status == 1);
}

TEST_CASE("a plan file with an unknown name is bad input", "[cli]") {
  const Workshop shop;
  shop.write("plan.yaml", "stages:\n  - {devices: [node/profiled-0], operators: [a, b, c, e]}\n");
  const Outcome outcome = shop.run("check plan.yaml" + kOn);
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, StartsWith("error: plan.yaml:2:55: unknown operator 'e'"));
}

} // namespace
} // namespace stagecraft::test
