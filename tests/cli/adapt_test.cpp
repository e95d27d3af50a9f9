// stagecraft adapt: a study with events, in every format.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kStudy = "model: " + kChain +
                           "\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4}\n"
                           "adapt: {iterations: 20, round_iterations: 5, "
                           "events: [{iteration: 10, device: node/profiled-0, speed: 0.5}]}\n";

TEST_CASE("adapt prints policies and rounds, JSON with every round, a CSV line per round", "[cli][adapt]") {
  Workshop shop;
  shop.write("study.yaml", kStudy);
  const Outcome table = shop.run("adapt study.yaml");
  CHECK(table.status == 0);
  CHECK_THAT(table.out, Contains("never") && Contains("dynamic") && Contains("oracle") && Contains("round by round"));
  const Json json = shop.run("adapt study.yaml --format json").json();
  CHECK(json.at("schema") == "stagecraft/1");
  REQUIRE(json.at("policies").size() == 3);
  const Json& dynamic = json.at("policies")[1];
  CHECK(dynamic.at("rounds").size() == 4);
  CHECK(dynamic.at("balancing").size() == 4);
  CHECK(dynamic.at("balancing")[0].at("weights") == Json({1.0, 1.0}));
  CHECK(dynamic.at("balancing")[0].at("candidates").size() == 1);
  CHECK(json.at("phases").size() == 2);
  const std::string csv = shop.run("adapt study.yaml --format csv").out;
  CHECK_THAT(csv, StartsWith("policy,round,first_iteration,"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 3 * 4);
}

TEST_CASE("adapt asks for its key, and compare shows the rounds of dynamic", "[cli][adapt]") {
  Workshop shop;
  shop.write("plain.yaml", "model: " + kChain + "\nplatform: {devices: 2}\n");
  const Outcome refused = shop.run("adapt plain.yaml");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("no key 'adapt'"));
  const Json runs =
      shop.run("compare plain.yaml --format json --set compare.strategies=dynamic --set compare.schedules=gpipe")
          .json()
          .at("runs");
  REQUIRE(runs.size() == 1);
  CHECK_FALSE(runs[0].at("rounds").empty());
  CHECK(runs[0].at("rounds")[0].at("iteration_seconds").is_number());
}

} // namespace
} // namespace stagecraft::test
