// A plan that travels as bytes arrives as it was.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_bytes.hpp"
#include "tests/catch.hpp"

namespace stagecraft::test {
namespace {

PlanResult sent(const PlanResult& result) {
  std::string bytes;
  put_plan(bytes, result);
  ByteReader reader(bytes);
  PlanResult arrived = take_plan(reader);
  CHECK(reader.done());
  return arrived;
}

// No member has its default value.
Plan whole_plan() {
  const Stage stage{.operators = {0, 2},
                    .devices = {3, 1, 4, 5},
                    .shares = {0.25, 0.75},
                    .tensor_parallel = 2,
                    .sequence_parallel = true,
                    .tensor_rule = TensorRule::search,
                    .recompute = Recompute::selective,
                    .recomputed = {2},
                    .turns = 2,
                    .streams = 3};
  const BalanceRound round{.stages = {stage},
                           .devices = {1, 3},
                           .weights = {0.5, 1.5},
                           .candidates = {{.operators = {0}, .devices = {1}}, {.operators = {2}, .devices = {1, 3}}},
                           .step = 0.5,
                           .held = true,
                           .iteration = Seconds{7},
                           .waiting = {Seconds{1}, Seconds{2}},
                           .tail = {Seconds{0}, Seconds{0.5}},
                           .why_not = "no room",
                           .action = "weights follow"};
  return {.strategy = "dynamic",
          .stages = {stage, {.operators = {1}, .devices = {0}}},
          .objective = Objective{"max-load", Seconds{0.1}},
          .note = "cut short",
          .default_loader = true,
          .memory_bound = true,
          .rounds = {round, BalanceRound{}}};
}

TEST_CASE("a plan arrives with everything that it says", "[plan][bytes]") {
  CHECK(std::get<Plan>(sent(whole_plan())) == whole_plan());
  CHECK(std::get<Plan>(sent(Plan{})) == Plan{});
  CHECK(std::get<Infeasible>(sent(Infeasible{"stage 1 needs more"})).reason == "stage 1 needs more");
}

TEST_CASE("a message that is cut short is no plan", "[plan][bytes]") {
  std::string bytes;
  put_plan(bytes, whole_plan());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ByteReader reader(std::string_view(bytes).substr(0, length));
    CHECK_THROWS_AS(take_plan(reader), std::logic_error);
  }
}

} // namespace
} // namespace stagecraft::test
