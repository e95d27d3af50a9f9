// The headline numbers of reports/ju-2024.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "sim/study/judge.hpp"
#include "tests/reports/reports.hpp"

namespace stagecraft {
namespace {

const JudgedPlan& plan_of(const Judgement& judgement, std::string_view planner, std::string_view model,
                          std::string_view platform) {
  const auto found = std::find_if(judgement.plans.begin(), judgement.plans.end(), [&](const JudgedPlan& plan) {
    return plan.planner == planner && plan.model == model && plan.platform == platform;
  });
  REQUIRE(found != judgement.plans.end());
  REQUIRE(found->feasible);
  return *found;
}

double asynchronous(const JudgedPlan& plan) {
  const double single = plan.speedup * plan.iteration.value;
  return single / (plan.micro_batches * plan.bottleneck.value);
}

Judgement judged(const std::vector<Setting>& settings) {
  return judge(
      load_judge_study(yaml::load(test::kReports / "ju-2024/study.yaml"), test::folders_of("ju-2024"), settings));
}

TEST_CASE("reports/ju-2024 says what its study gives", "[reports]") {
  const Judgement judgement = judged({});
  struct Row {
    const char* model;
    double flush_4, flush_8, asynchronous_4, asynchronous_8;
  };
  for (const Row& row :
       {Row{"vgg16-cifar10", 2.97, 4.79, 3.27, 5.41}, Row{"resnet50-cifar10", 2.95, 4.24, 3.45, 6.14},
        Row{"densenet121-cifar10", 2.93, 4.33, 3.34, 5.74}, Row{"squeezenet-cifar10", 2.42, 2.95, 3.06, 4.01}}) {
    INFO(row.model);
    const JudgedPlan& four = plan_of(judgement, "antichain", row.model, "one-server-4");
    const JudgedPlan& eight = plan_of(judgement, "antichain", row.model, "one-server-8");
    CHECK(four.speedup == Approx(row.flush_4).margin(0.006));
    CHECK(eight.speedup == Approx(row.flush_8).margin(0.006));
    CHECK(asynchronous(four) == Approx(row.asynchronous_4).margin(0.006));
    CHECK(asynchronous(eight) == Approx(row.asynchronous_8).margin(0.006));
    CHECK(four.load_imbalance < plan_of(judgement, "capability", row.model, "one-server-4").load_imbalance);
  }
  test::check_says("ju-2024", "| ResNet-50, flush | 2.95 | 4.24 | 2.05 | 3.09 |");
  test::check_says("ju-2024", "| ResNet-50, asynchronous | 3.45 | 6.14 | 2.56 | 3.96 |");
}

TEST_CASE("the measured ResNet-50 profile gives the published pair", "[reports]") {
  const std::filesystem::path profile =
      std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "../shared/data/pipedream/profiles/resnet50.graph.txt";
  if (!std::filesystem::exists(profile)) {
    std::cout << "skipped: no " << profile << "\n";
    return;
  }
  const Judgement judgement =
      judged({{"judge.models", "['" + profile.string() + "']"},
              {"judge.platforms", "[{devices: 4, bandwidth: 10 GB/s}, {devices: 8, bandwidth: 10 GB/s}]"},
              {"judge.planners", "[antichain]"},
              {"training.global_batch", "64"},
              {"training.micro_batches", "64"}});
  REQUIRE(judgement.plans.size() == 2);
  CHECK(judgement.plans[0].speedup == Approx(3.40).margin(0.006));
  CHECK(judgement.plans[1].speedup == Approx(3.85).margin(0.006));
}

} // namespace
} // namespace stagecraft
