// Judging planners on chains whose times can be worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/analysis/judge.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Judgement judged(const std::string& text) {
  return judge(load_judge_study(yaml::parse(text, "judge.yaml"), kFolders, {}));
}

const JudgedPlan& plan_of(const Judgement& judgement, std::string_view planner) {
  const auto found = std::find_if(judgement.plans.begin(), judgement.plans.end(),
                                  [&](const JudgedPlan& plan) { return plan.planner == planner; });
  REQUIRE(found != judgement.plans.end());
  return *found;
}

const PlannerScore& score_of(const Judgement& judgement, std::string_view planner) {
  const auto found = std::find_if(judgement.planners.begin(), judgement.planners.end(),
                                  [&](const PlannerScore& score) { return score.planner == planner; });
  REQUIRE(found != judgement.planners.end());
  return *found;
}

std::string chains(const std::string& planners, const std::string& more = "") {
  return "judge: {models: [chain.yaml], platforms: [{devices: 2}], planners: " + planners + more +
         "}\ntraining: {global_batch: 4, micro_batches: [2, 4]}\n";
}

// One device: 4 samples x 4 operators x 3 s = 48 s. Two stages of two operators, 6 s a sample: (M + 1) 6 * 4/M = 30 s
// with 4 micro-batches, 36 s with 2. No plan takes less than 24 s, all work spread over both.
TEST_CASE("regret is the distance to the best known plan, and stands beside the distance to the bound",
          "[study][judge]") {
  const Judgement judgement = judged(chains("[single, uniform]"));
  const JudgedPlan& one = plan_of(judgement, "single");
  const JudgedPlan& two = plan_of(judgement, "uniform");
  REQUIRE((one.feasible && two.feasible));
  CHECK(one.iteration.value == Approx(48).margin(0.01)); // optimiser steps take microseconds
  CHECK(two.iteration.value == Approx(30).margin(0.01));
  CHECK(two.micro_batches == 4);
  CHECK(two.lower_bound.value == Approx(24).margin(0.01));
  CHECK(two.regret == 0);
  CHECK(one.regret == Approx(48.0 / 30 - 1).margin(0.001));
  CHECK(two.over_bound == Approx(30.0 / 24 - 1).margin(0.001));
  CHECK(two.bias == Approx(0).margin(0.001)); // the closed form is exact for equal stages
  CHECK(judgement.planners.front().planner == "uniform");
  CHECK(score_of(judgement, "uniform").wins == 1);
  CHECK(score_of(judgement, "single").wins == 0);
}

// Equal stages of 6 s a sample for every M. With a flush, (M + 1) 6 * 4/M is least for M = 4. Without a flush and with
// free links, every M takes 24 s, by its estimate too, and the first is kept.
TEST_CASE("micro-batches are chosen by the estimate of the schedule, or by replay", "[study][judge]") {
  const auto chosen = [](const std::string& more) {
    const Judgement judgement = judged(chains("[uniform]", more));
    return judgement.plans.front();
  };
  CHECK(chosen(", micro_batches: replay").micro_batches == 4);
  CHECK(chosen(", schedule: pipemare").micro_batches == 2);
  const JudgedPlan replayed = chosen(", schedule: pipemare, micro_batches: replay");
  CHECK(replayed.micro_batches == 2);
  CHECK(replayed.iteration.value == Approx(24).margin(0.01));
  CHECK(replayed.staleness == std::vector<double>{1.0 / 2, 0}); // one of two forwards runs a step ahead
  CHECK(chosen("").staleness.empty());
  // Two versions need two micro-batches; a number that cannot run is skipped.
  CHECK(chosen(", schedule: pipedream-2bw, micro_batches: replay").micro_batches == 2);
}

TEST_CASE("every planner plans every model on every platform", "[study][judge]") {
  const Judgement judgement =
      judged("judge: {models: [chain.yaml, {file: two.txt, samples: 1}], platforms: [{devices: 2}, {devices: 1}, "
             "{devices: 3}], planners: [single, uniform]}\n"
             "training: {global_batch: 4, micro_batches: 2}\n");
  CHECK(judgement.plans.size() == 2 * 3 * 2);
  CHECK(score_of(judgement, "single").cases == 6);
}

TEST_CASE("manual work is trials of editing, launching and iterating", "[study][judge]") {
  const Judgement judgement =
      judged(chains("[by-hand, optimal]", ", manual: {trials: 3, edit: 10 s, launch: 5 s, iterations: 2}"));
  // The uniform split, 30 s an iteration, then both moves of one operator. 1 + 3 operators: the second device works
  // 4 * 9 s after a forward of 1 s and before a backward of 2 s. 3 + 1: the first is never without work, 4 * 9 s.
  const double expected = 3 * (10 + 5) + 2 * (30 + 39 + 36);
  REQUIRE(plan_of(judgement, "by-hand").manual_seconds);
  CHECK(plan_of(judgement, "by-hand").manual_seconds->value == Approx(expected).margin(0.1));
  CHECK(!plan_of(judgement, "optimal").manual_seconds);
}

// Four operators in two stages: nothing to move by less than half a stage of two.
TEST_CASE("only a drawn by-hand gives first guesses, and only an undrawn one has a manual time", "[study][judge]") {
  const Judgement judgement =
      judged(chains("[{name: guess, strategy: by-hand, draws: 3}, uniform, by-hand]", ", manual: {trials: 3}"));
  const JudgedPlan& guess = plan_of(judgement, "guess");
  REQUIRE(guess.spread);
  CHECK(guess.spread->feasible == 3);
  CHECK(guess.spread->best == plan_of(judgement, "uniform").iteration);
  CHECK(guess.iteration == plan_of(judgement, "uniform").iteration);
  CHECK(!guess.manual_seconds);
  CHECK(plan_of(judgement, "by-hand").manual_seconds);
}

// The command line of a planner that prints `text`.
std::string printing(const std::string& text) {
  return R"({name: mine, command: [sh, -c, 'cat >/dev/null; echo "$0"', ')" + text + "']}";
}

TEST_CASE("a foreign planner is judged like ours", "[study][judge]") {
  const std::string plan =
      "{stages: [{operators: [a, b], devices: [DEVICE0]}, {operators: [c, d], devices: [DEVICE1]}]}";
  const Study read = study(chain_study("training: {global_batch: 4, micro_batches: [2, 4]}\n"));
  std::string named = plan;
  for (int device = 0; device < 2; ++device) {
    const std::string from = "DEVICE" + std::to_string(device);
    named.replace(named.find(from), from.size(), read.platform.devices[device].name);
  }
  const Judgement judgement = judged(chains("[uniform, " + printing(named) + "]"));
  const JudgedPlan& mine = plan_of(judgement, "mine");
  REQUIRE(mine.feasible);
  CHECK(mine.micro_batches == 4);
  CHECK(mine.iteration == plan_of(judgement, "uniform").iteration);
  CHECK(score_of(judgement, "mine").wins == 1); // a tie is a win of both
}

TEST_CASE("a foreign planner that fails is a row with its reason", "[study][judge]") {
  const auto reason = [](const std::string& planner) {
    const Judgement judgement = judged(chains("[uniform, " + planner + "]"));
    CHECK(plan_of(judgement, "uniform").feasible);
    CHECK(!plan_of(judgement, "mine").feasible);
    CHECK(score_of(judgement, "mine").why_not == plan_of(judgement, "mine").why_not);
    CHECK(score_of(judgement, "uniform").why_not.empty());
    return plan_of(judgement, "mine").why_not;
  };
  CHECK_THAT(reason("{name: mine, command: [sleep, '60'], timeout: 50 ms}"), Catch::Contains("longer than 50"));
  CHECK_THAT(reason("{name: mine, command: ['false']}"), Catch::Contains("status 1"));
  CHECK_THAT(reason("{name: mine, command: [no-such-planner]}"), Catch::Contains("cannot be run"));
  CHECK_THAT(reason(printing("{stages: [")), Catch::Contains("mine:2:1"));
  CHECK_THAT(reason(printing("{stages: [{operators: [a], devices: [nowhere]}]}")), Catch::Contains("nowhere"));
  CHECK_THAT(reason(printing("")), Catch::Contains("mine"));
}

TEST_CASE("a foreign planner runs confined, with the memory that the study gives it", "[study][judge]") {
  const std::string limit = "command: [sh, -c, 'ulimit -v >&2; exit 1']";
  const Judgement judgement =
      judged(chains("[{name: usual, " + limit + "}, {name: more, memory: 6 GiB, " + limit + "}]"));
  CHECK(plan_of(judgement, "usual").why_not == "it ended with status 1: 4194304"); // KiB
  CHECK(plan_of(judgement, "more").why_not == "it ended with status 1: 6291456");
}

TEST_CASE("a foreign planner is told operators, devices, paths and training", "[study][judge]") {
  const Study read =
      study(chain_study("training: {global_batch: 4, micro_batches: 2}\n", "{devices: 2, bandwidth: 4 MB/s}"));
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const nlohmann::json told = nlohmann::json::parse(problem_to_json(memo.costs.problem(2), "1f1b"));
  CHECK(told.at("schema") == "stagecraft/1");
  const auto& operators = told.at("model").at("operators");
  REQUIRE(operators.size() == 4);
  CHECK(operators[1].at("inputs") == nlohmann::json{"a"});
  const std::string type = told.at("platform").at("devices")[0].at("type");
  CHECK(operators[0].at("forward_seconds").at(type) == 2.0); // 2 samples
  CHECK(operators[0].at("output_bytes") == 8e6);
  CHECK(told.at("platform").at("paths").at("seconds_per_byte")[0][1].get<double>() == Approx(1 / 4e6));
  CHECK(told.at("platform").at("paths").at("seconds_per_byte")[0][0] == 0);
  CHECK(told.at("training").at("samples_per_micro_batch") == 2);
}

TEST_CASE("a judge study is read strictly", "[study][judge]") {
  const auto error = [](const std::string& text) { return error_of([&] { judged(text); }); };
  CHECK_THAT(error("training: {}\n"), Catch::Contains("needs the key 'judge'"));
  CHECK_THAT(error("judge: {models: [chain.yaml], platforms: [x]}\n"), Catch::Contains("'planners' is missing"));
  CHECK_THAT(error("judge: {models: [], platforms: [x], planners: all}\n"), Catch::Contains("'models' is missing"));
  CHECK_THAT(error(chains("[singel]")), Catch::Contains("did you mean 'single'"));
  CHECK_THAT(error(chains("[single, single]")), Catch::Contains("two planners are called 'single'"));
  CHECK_THAT(error(chains("[{strategy: single, command: [x]}]")), Catch::Contains("a 'strategy' or a 'command'"));
  CHECK_THAT(error(chains("[{strategy: single, seeds: 2}]")), Catch::Contains("seeds"));
  CHECK_THAT(error(chains("[{command: [x], memory: 65 GiB}]")), Catch::Contains("1 MiB to 64 GiB"));
  CHECK_THAT(error("model: chain.yaml\n" + chains("[single]")), Catch::Contains("'model' stands beside 'judge'"));
  CHECK_THAT(error(chains("[single]", ", manual: {edit: 5}")), Catch::Contains("judge.yaml:1:"));
}

} // namespace
} // namespace stagecraft::test
