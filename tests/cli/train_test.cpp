// stagecraft train: every schedule learns the same.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

const std::string kTwo =
    "train " + kChain + " --devices 2 --bandwidth '1 GB/s' --set training.global_batch=4 --micro-batches 4 ";

TEST_CASE("train reports for every schedule how far its weights are off", "[cli][train]") {
  const Workshop shop;
  const Json rows = shop.succeed(kTwo + "--strategy uniform --schedule all --steps 5 --format json").json().at("rows");
  int synchronous = 0, asynchronous = 0;
  for (const Json& row : rows) {
    if (!row.at("why_not").is_null()) {
      continue;
    }
    INFO(row.at("schedule"));
    CHECK(row.at("losses").size() == 5);
    CHECK((row.at("weights_difference") < 1e-10) == row.at("synchronous"));
    CHECK(row.at("replicas_difference") == 0);
    (row.at("synchronous") ? synchronous : asynchronous) += 1;
  }
  CHECK(synchronous >= 8);
  CHECK(asynchronous >= 3);
  CHECK_THAT(shop.succeed(kTwo + "--strategy uniform --schedule 1f1b").out, Catch::Contains("weights off by"));
}

TEST_CASE("train says what it cannot train", "[cli][train]") {
  const Workshop shop;
  CHECK(shop.run(kTwo + "--schedule 1f1b").status == 2);
  CHECK_THAT(shop.run(kTwo + "--strategy uniform --schedule 1f1").err, Catch::Contains("did you mean '1f1b'?"));
  const Outcome infeasible = shop.run(kTwo + "--strategy uniform --schedule 1f1b --memory '1 B'");
  CHECK(infeasible.status == 1);
}

} // namespace
} // namespace stagecraft::test
