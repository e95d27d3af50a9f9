// stagecraft buy: by a study and by a model, in every format, and what other commands do with what it writes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kBuyStudy =
    "model: gpt2\n"
    "training: {framework: megatron-lm-2025, global_batch: 64, precision: bf16, recompute: none,\n"
    "           micro_batches: 4, parallel: {zero: 1}}\n"
    "compare: {strategies: [mesh], schedules: [1f1b]}\n"
    "tokens: 10B\n"
    "buy:\n"
    "  offers:\n"
    "    - 1, 2 x dgx-h100\n"
    "    - {platform: dgx-a100, name: ours, price: 1 USD/h}\n"
    "  failures: {mean_time_between: 50000 h}\n";

TEST_CASE("buy ranks offers in every format", "[cli][buy]") {
  Workshop shop;
  shop.write("study.yaml", kBuyStudy);
  const Outcome table = shop.run("buy study.yaml");
  CHECK(table.status == 0);
  CHECK_THAT(table.out, StartsWith("Train gpt2 on ") && Contains("of 3 offers") && Contains("Nine of ten") &&
                            Contains("Prices: ") && Contains("ours"));
  CHECK(shop.run("buy study.yaml -o bought.json --quiet").status == 0);
  const Json json = Json::parse(shop.read("bought.json"));
  REQUIRE(json.at("choices").size() == 3);
  for (const Json& choice : json.at("choices")) {
    CHECK(choice.at("days") > 0);
    CHECK(choice.at("goodput") < 1);
    CHECK(choice.at("interval").at("low_usd") < choice.at("usd"));
  }
  const std::string csv = shop.run("buy study.yaml --format csv").out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK_THAT(shop.run("buy study.yaml --format md").out, StartsWith("### gpt2: which machines?"));
  CHECK(shop.run("report bought.json -o page.html").status == 0);
  CHECK_THAT(shop.run("explain bought.json").out, Contains("mesh under 1f1b: gpt2 on"));
  CHECK(shop.run("check bought.json").status == 0);
}

TEST_CASE("buy takes limits and offers from the command line", "[cli][buy]") {
  Workshop shop;
  shop.write("study.yaml", kBuyStudy);
  const Outcome none = shop.run("buy study.yaml --budget '1 USD' --quiet");
  CHECK(none.status == 1);
  CHECK_THAT(none.out, StartsWith("All 3 offers are out.") && Contains("more than 1 USD"));
  const Json one = shop.run("buy study.yaml --offer dgx-h200 --within 1d --format json").json();
  REQUIRE(one.at("choices").size() == 1);
  CHECK(one.at("choices")[0].at("offer") == "dgx-h200");
  const Outcome mistyped = shop.run("buy study.yaml --offer dgx-h20");
  CHECK(mistyped.status == 2);
  CHECK_THAT(mistyped.err, Contains("did you mean 'dgx-h200'?"));
  CHECK_THAT(shop.run("buy gpt2 --offer dgx-h100").err, Contains("how much is trained?"));
  CHECK_THAT(shop.run("compare study.yaml").err, Contains("offers in place of a platform"));
  CHECK_THAT(shop.run("buy study.yaml --price 'h200-sxm=1 USD/h'").err, Contains("has a 'h200-sxm'"));
  CHECK_THAT(shop.run("buy gpt2").err, Contains("which machines are offered?"));
}

// Of 8, 24 and 40 devices the batches would be 64, 96 and 160: the largest is made up to what all share.
TEST_CASE("offers of unlike numbers of nodes share a batch, in micro-batches of any number", "[cli][buy]") {
  Workshop shop;
  const Json json = shop.run("buy llama3-8b --offer '1, 3, 5 x dgx-h100' --tokens 10B --format json "
                             "--set compare.schedules=1f1b --set compare.strategies=mesh")
                        .json();
  double least = 1e300, most = 0;
  for (const Json& choice : json.at("choices")) {
    CHECK(choice.at("assumed").at("training.global_batch") == "240");
    least = std::min(least, choice.at("usd").get<double>());
    most = std::max(most, choice.at("usd").get<double>());
  }
  CHECK(most < 1.25 * least); // the same machine, at the same efficiency but for its network
}

TEST_CASE("buy trains on all offers by one framework, also where a model's devices suggest none", "[cli][buy]") {
  Workshop shop;
  const Json json = shop.run("buy gpt2 --offer dgx-h100 --offer mi300x-8 --tokens 1B --format json "
                             "--set compare.schedules=1f1b --set compare.strategies=data-parallel")
                        .json();
  for (const Json& choice : json.at("choices")) {
    CHECK(choice.at("assumed").at("training.framework") == "megatron-lm-2025");
  }
}

TEST_CASE("buy trains on chips of a TPU by MaxText, whatever the other offers", "[cli][buy]") {
  Workshop shop;
  const Json json = shop.run("buy gpt2 --offer tpu-v5p-4x4x4 --offer mi300x-8 --tokens 1B --format json "
                             "--set compare.schedules=1f1b --set compare.strategies=data-parallel")
                        .json();
  for (const Json& choice : json.at("choices")) {
    const bool of_chips = choice.at("offer") == "tpu-v5p-4x4x4";
    CHECK(choice.at("assumed").at("training.framework") == (of_chips ? "maxtext" : "megatron-lm-2025"));
  }
}

TEST_CASE("buy of a model says what nobody gave, the same batch for all", "[cli][buy]") {
  Workshop shop;
  const Outcome outcome = shop.run("buy gpt2 --offer '1, 4 x dgx-a100' --tokens 1B --set compare.schedules=1f1b "
                                   "--set compare.strategies=mesh");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("training.global_batch=128") && Contains("Assumed, since nobody says otherwise: ") &&
                              Contains("Failures are not counted"));
}

} // namespace
} // namespace stagecraft::test
