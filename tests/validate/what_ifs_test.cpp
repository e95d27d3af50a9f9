// Pairs of measured runs that differ in one setting, and rankings. The tables here are made up.
// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/what_ifs.hpp"
#include "sim/validate/validators.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// GPT of two layers on eight A100: what differs is tensor degree, micro-batch, recompute and the time.
struct Measured {
  std::string name;
  int tensor = 1, micro_batch = 1;
  std::string recompute = "none";
  double seconds = 1;
  int batch = 8;
  std::string note = "";
  std::string gpu = "a100-80gb-sxm";
  int nodes = 1;
};

Validation validated(const std::vector<Measured>& runs) {
  std::string text = "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,tensor_parallel,"
                     "pipeline_parallel,micro_batch,global_batch,precision,recompute,metric,unit,value,note\n";
  for (const Measured& run : runs) {
    text += run.name + ",Some Megatron-LM paper,GPT small,2,512,8,128,1024," + run.gpu + ",8," +
            std::to_string(run.nodes) + "," + std::to_string(run.tensor) + ",1," + std::to_string(run.micro_batch) +
            "," + std::to_string(run.batch) + ",bf16," + run.recompute + ",iteration_seconds,s," +
            std::to_string(run.seconds) + "," + run.note + "\n";
  }
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-what-ifs-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  write_file(folder / "made-up.csv", text);
  return validate(folder / "made-up.csv", {.shipped = kRoot});
}

double predicted(const Validation& validation, const std::string& name) {
  return std::find_if(validation.rows.begin(), validation.rows.end(),
                      [&](const auto& row) { return row.case_name == name; })
      ->predicted;
}

TEST_CASE("rows that differ in one setting are a pair, by the time of a token", "[validate][what-ifs]") {
  const Validation validation = validated({{"plain", 2, 1, "none", 1}, {"again", 2, 1, "full", 1.25}});
  REQUIRE(validation.what_ifs.size() == 1);
  const WhatIf& pair = validation.what_ifs.front();
  CHECK(pair.setting == "recompute");
  CHECK((pair.from == "none" && pair.to == "full"));
  CHECK(pair.measured == near(1.25));
  CHECK(pair.predicted == near(predicted(validation, "again") / predicted(validation, "plain")));
  CHECK_FALSE(pair.is_tie());
  CHECK(pair.is_sign_right()); // what runs again takes time
}

TEST_CASE("numbers go from the smaller to the larger, whatever the order of the rows", "[validate][what-ifs]") {
  const Validation validation = validated({{"four", 4, 1, "none", 3}, {"two", 2, 1, "none", 2}});
  REQUIRE(validation.what_ifs.size() == 1);
  CHECK(validation.what_ifs.front().before == "two");
  CHECK(validation.what_ifs.front().measured == near(1.5));
}

TEST_CASE("a batch may follow a setting, and alone it is one", "[validate][what-ifs]") {
  // Tensor degree 2 leaves 4 replicas, 4 leaves 2: of 8 and 4 samples each replica has 2 micro-batches of a sample. A
  // token then takes 1 s / 8 and 1 s / 4.
  const Validation follows = validated({{"two", 2, 1, "none", 1, 8}, {"four", 4, 1, "none", 1, 4}});
  REQUIRE(follows.what_ifs.size() == 1);
  CHECK(follows.what_ifs.front().setting == "tensor degree");
  CHECK(follows.what_ifs.front().measured == near(2));
  CHECK(validated({{"two", 2, 1, "none", 1, 8}, {"four", 4, 1, "none", 1, 16}}).what_ifs.empty());
  const Validation alone = validated({{"few", 2, 1, "none", 1, 8}, {"many", 2, 1, "none", 1.5, 16}});
  REQUIRE(alone.what_ifs.size() == 1);
  CHECK(alone.what_ifs.front().setting == "batch");
  CHECK(alone.what_ifs.front().measured == near(0.75));
}

TEST_CASE("two settings, and what a row does not say, make no pair", "[validate][what-ifs]") {
  CHECK(validated({{"a", 2, 1, "none", 1}, {"b", 4, 1, "full", 2}}).what_ifs.empty());
  CHECK(validated({{"a", 2, 1, "none", 1}, {"b", 2, 1, "", 2}}).what_ifs.empty());
  CHECK(validated({{"a", 2, 1, "none", 1}, {"b", 2, 1, "full", 2, 8, "no optimizer"}}).what_ifs.empty());
}

TEST_CASE("two device types are a pair by the device time of a token, each at its fastest", "[validate][what-ifs]") {
  // Of the A100 8 devices take 1 s for 8 samples, so a device a second for each; 16 H100 take 0.25 s, half a second.
  const std::string h100 = "h100-80gb-sxm";
  const Validation validation =
      validated({{"slow", 2, 1, "full", 3}, {"a100", 4, 1, "none", 1}, {"h100", 2, 1, "none", 0.25, 8, "", h100, 2}});
  REQUIRE(validation.what_ifs.size() == 1); // the two of the A100 differ in two settings
  const WhatIf& pair = validation.what_ifs.front();
  CHECK(pair.setting == kDeviceTypeSetting);
  CHECK((pair.from == "a100-80gb-sxm" && pair.to == h100));
  CHECK((pair.before == "a100" && pair.after == "h100"));
  CHECK(pair.measured == near(0.5));
  CHECK(pair.predicted == near(2 * predicted(validation, "h100") / predicted(validation, "a100")));
  // Other work is no pair: another precision of numbers would be one, and so is what has no optimizer.
  CHECK(validated({{"a", 2, 1, "none", 1}, {"b", 2, 1, "none", 1, 8, "no optimizer", h100}}).what_ifs.empty());
}

TEST_CASE("what was measured several times is its median, and its noise makes ties", "[validate][what-ifs]") {
  // Each of 1.0, 1.1 and 1.2 is predicted by the median of the others, 1.15, 1.1 and 1.05: noise is the median of 15 %,
  // 0 % and 12.5 %.
  const Validation validation = validated(
      {{"a", 2, 1, "none", 1}, {"b", 2, 1, "none", 1.1}, {"c", 2, 1, "none", 1.2}, {"d", 2, 1, "full", 1.21}});
  REQUIRE(validation.what_ifs.size() == 1);
  CHECK(validation.what_ifs.front().measured == near(1.1));
  CHECK(validation.what_ifs.front().tie == near(0.125));
  CHECK(validation.what_ifs.front().is_tie());
  const Validation few = validated({{"a", 2, 1, "none", 1}, {"b", 2, 1, "full", 1.02}});
  CHECK(few.what_ifs.front().is_tie()); // below 3 %
}

TEST_CASE("signs count where there is no tie, errors everywhere", "[validate][what-ifs]") {
  const auto pair = [](double measured, double predicted) {
    WhatIf one{.group = "t", .setting = "s"};
    one.measured = measured;
    one.predicted = predicted;
    return one;
  };
  const WhatIfAccuracy accuracy =
      accuracy_of_pairs({pair(1.5, 1.2), pair(0.5, 0.55), pair(0.8, 1.0), pair(1.01, 0.9), pair(2, 2)});
  CHECK(accuracy.pairs == 5);
  CHECK(accuracy.ties == 1);
  CHECK(accuracy.signs_right == near(3.0 / 4));         // no change is no answer
  CHECK(accuracy.median_error == near(1 - 0.9 / 1.01)); // of 20, 10, 25, 10.9 and 0 %
}

TEST_CASE("a ranking says what the choice predicted best costs", "[validate][what-ifs]") {
  // Predicted with each number of tensor ranks, measured backwards: the one predicted fastest was the slowest.
  const std::vector<int> degrees = {1, 2, 4, 8};
  std::vector<Measured> runs;
  for (const int degree : degrees) {
    runs.push_back({"t" + std::to_string(degree), degree, 1, "none", 1, 8});
  }
  runs.push_back({"full", 8, 1, "full", 1, 8});
  const Validation first = validated(runs);
  REQUIRE(first.rankings.size() == 1);
  std::sort(runs.begin(), runs.end(),
            [&](const Measured& a, const Measured& b) { return predicted(first, a.name) < predicted(first, b.name); });
  for (std::size_t at = 0; at < runs.size(); ++at) {
    runs[at].seconds = 2.0 - 0.1 * static_cast<double>(at);
  }
  const Ranking backwards = validated(runs).rankings.front();
  CHECK(backwards.runs == 5);
  CHECK(*backwards.spearman == near(-1));
  CHECK(backwards.regret == near(2.0 / 1.6 - 1));
  runs.pop_back();
  CHECK(validated(runs).rankings.empty());
}

} // namespace
} // namespace stagecraft::test
