// Days and money of a whole training, and a plan in degrees.
// SPDX-License-Identifier: Apache-2.0
#include "sim/result/plan_line.hpp"
#include "sim/result/whole_training.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// A batch of 64 sequences in 2 s: 32 samples/s, of 4,000 tokens each; a million samples cost 400 USD.
Run run_of_64() {
  Run run;
  run.feasible = true;
  run.micro_batches = 4;
  run.metrics.iteration = Seconds{2};
  run.samples_per_second = 32;
  run.tokens_per_second = 128e3;
  run.cost_per_million_samples = Dollars{400};
  run.stages.resize(1);
  run.stages[0].devices = {"a", "b", "c", "d", "e", "f", "g", "h"};
  run.stages[0].data_parallel = 8;
  run.stages[0].zero = 3;
  run.stages[0].shard = 8;
  return run;
}

// 300e9 / 128e3 = 2.34375e6 s = 27.1 days, in which 75e6 samples cost 75 * 400 = 30,000 USD. From half the time to
// twice it: 13.6 to 54.3 days.
TEST_CASE("tokens of a training take days and money, with the range of the time", "[result]") {
  Run run = run_of_64();
  CHECK_FALSE(whole_training(run));
  run.tokens = 300e9;
  CHECK(in_words(*whole_training(run)) == "300 billion tokens take 27.1 days and cost 30,000 USD");
  run.expected = RunExpected{.low = Seconds{1}, .high = Seconds{4}, .family = "", .models = 1, .median = 0.1};
  CHECK(in_words(*whole_training(run)) ==
        "300 billion tokens take 27.1 days and cost 30,000 USD (13.6 to 54.3 days, 15,000 to 60,000 USD)");
  run.metrics.assumed_cost = Dollars{1};
  CHECK(in_words(*whole_training(run)).find("cost ~30,000 USD") != std::string::npos);
  run.cost_per_million_samples = Dollars{0};
  run.tokens = 1e9; // 7812.5 s
  CHECK(in_words(*whole_training(run)) == "1 billion tokens take 2.2 hours (1.1 to 4.3 hours)");
}

// 64 sequences in 4 micro-batches over 8 replicas: 2 each.
TEST_CASE("a plan is said in the degrees of frameworks", "[result]") {
  Run run = run_of_64();
  CHECK(plan_line(run) ==
        "data 8, tensor 1, pipeline 1, ZeRO 3 (FSDP), no recomputation, 4 micro-batches of 2 sequences a replica");
  run.stages[0].zero = 1;
  run.stages[0].shard = 4;
  run.stages[0].tensor_parallel = 2;
  run.stages[0].sequence_parallel = true;
  run.recompute.what = "full";
  run.stages.push_back(run.stages[0]);
  run.stages[1].devices = {"i"};
  CHECK(plan_line(run) ==
        "data 8, tensor 2 with sequence parallelism, pipeline 2, ZeRO 1 among 4, full recomputation, 4 "
        "micro-batches of 2 sequences a replica");
  run.feasible = false;
  CHECK(plan_line(run).empty());
}

} // namespace
} // namespace stagecraft
