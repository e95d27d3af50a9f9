// The headline numbers of reports/ju-2024: its tables, computed again from its studies.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "sim/analysis/judge.hpp"
#include "sim/base/statistics.hpp"
#include "sim/study/compare/compare.hpp"
#include "tests/reports/reports.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

const std::vector<std::pair<std::string, std::string>> kModels = {{"vgg16-cifar10", "VGG-16"},
                                                                  {"resnet50-cifar10", "ResNet-50"},
                                                                  {"densenet121-cifar10", "DenseNet-121"},
                                                                  {"squeezenet-cifar10", "SqueezeNet"}};

const JudgedPlan& plan_of(const Judgement& judgement, std::string_view planner, std::string_view model,
                          std::string_view platform) {
  const auto found = std::find_if(judgement.plans.begin(), judgement.plans.end(), [&](const JudgedPlan& plan) {
    return plan.planner == planner && plan.model == model && plan.platform == platform;
  });
  REQUIRE(found != judgement.plans.end());
  return *found;
}

Judgement judged(const std::string& study, const std::vector<Setting>& settings) {
  return judge(load_judge_study(yaml::load(test::kReports / "ju-2024" / study), test::folders_of("ju-2024"), settings));
}

// Checks a line of the page per model, with a cell per platform: the speed-up, and how late gradients are.
void check_speedups(const Judgement& judgement, const std::string& reading) {
  for (const auto& [model, title] : kModels) {
    std::string row = "| " + title + ", " + reading + " |";
    for (const char* platform : {"one-server-4", "one-server-8", "two-servers-4", "two-servers-8"}) {
      const JudgedPlan& plan = plan_of(judgement, "antichain", model, platform);
      REQUIRE(plan.feasible);
      row += " " + to_text(plan.speedup, 2);
      row += plan.staleness.empty() ? " |" : " (" + to_text(plan.staleness.front(), 0) + ") |";
    }
    test::check_says("ju-2024", row);
  }
}

double median(const Judgement& judgement, std::string_view planner, std::string_view platform,
              double JudgedPlan::*figure) {
  std::vector<double> values;
  for (const JudgedPlan& plan : judgement.plans) {
    if (plan.planner == planner && plan.platform == platform && plan.feasible) {
      values.push_back(plan.*figure);
    }
  }
  return quantile(values, 0.5);
}

TEST_CASE("reports/ju-2024 says what its study gives with a flush", "[reports]") {
  const Judgement judgement = judged("study.yaml", {});
  check_speedups(judgement, "flush");
  for (const std::string planner :
       {"antichain", "optimal", "block-partition", "capability", "uniform", "parameters", "pipedream"}) {
    const auto of = [&](const char* platform, double JudgedPlan::*figure) {
      return median(judgement, planner, platform, figure);
    };
    const std::string title = "`" + planner + (planner == "pipedream" ? "`, with replicas" : "`");
    test::check_says("ju-2024", "| " + title + " | " + percent(of("one-server-4", &JudgedPlan::load_imbalance), 0) +
                                    " | " + percent(of("one-server-8", &JudgedPlan::load_imbalance), 0) + " | " +
                                    to_text(of("one-server-4", &JudgedPlan::speedup), 2) + " | " +
                                    to_text(of("one-server-8", &JudgedPlan::speedup), 2) + " |");
  }
  int better_balanced = 0;
  int faster = 0;
  for (const JudgedPlan& plan : judgement.plans) {
    const JudgedPlan& antichain = plan_of(judgement, "antichain", plan.model, plan.platform);
    if (plan.planner == "block-partition" || plan.planner == "capability" || plan.planner == "uniform" ||
        plan.planner == "parameters") {
      faster += plan.feasible && plan.speedup > antichain.speedup ? 1 : 0;
      better_balanced += plan.feasible && plan.load_imbalance < antichain.load_imbalance - 1e-9 ? 1 : 0;
    }
  }
  CHECK(faster == 1);
  test::check_says("ju-2024", "except `uniform` with ResNet-50 on 4 devices in two servers");
  CHECK(better_balanced == 5);
  test::check_says("ju-2024", "is better balanced in five of the sixteen cases, `capability` in none");
  int as_fast = 0;
  for (const JudgedPlan& plan : judgement.plans) {
    const double speedup = plan_of(judgement, "antichain", plan.model, plan.platform).speedup;
    as_fast += plan.planner == "optimal" && std::abs(plan.speedup / speedup - 1) < 1e-9 ? 1 : 0;
  }
  CHECK(as_fast == 13);
  test::check_says("ju-2024", "as fast as `optimal` in 13 of the 16 cases");
  int pipedream_wins = 0;
  for (const auto& [model, title] : kModels) {
    for (const char* platform : {"one-server-4", "one-server-8"}) {
      const double antichain = plan_of(judgement, "antichain", model, platform).speedup;
      CHECK(plan_of(judgement, "data-parallel", model, platform).speedup > antichain);
      pipedream_wins += plan_of(judgement, "pipedream", model, platform).speedup > antichain * (1 + 1e-9) ? 1 : 0;
    }
  }
  CHECK(pipedream_wins == 7);
  test::check_says("ju-2024", "in seven of eight cases");
}

TEST_CASE("reports/ju-2024 says what its study gives without a flush", "[reports]") {
  const Judgement judgement = judged("asynchronous.yaml", {});
  CHECK(judgement.schedule == "pipedream");
  check_speedups(judgement, "asynchronous");
  int few = 0;
  for (const JudgedPlan& plan : judgement.plans) {
    few += plan.micro_batches <= 4 ? 1 : 0;
    CHECK(plan.iteration > plan.micro_batches * plan.bottleneck); // the plain period is never reached
  }
  CHECK(few == 13);
  test::check_says("ju-2024", "M is 1 to 4 in 13 of 16 cases");
}

// What one planner makes of one model on one platform of the study with M micro-batches.
JudgedPlan plan_with(const std::string& planner, const std::string& model, const std::string& platform,
                     int micro_batches, std::vector<Setting> settings) {
  settings.insert(settings.begin(), {{"judge.models", "[" + model + "]"},
                                     {"judge.platforms", "[platforms/" + platform + ".yaml]"},
                                     {"judge.planners", "[" + planner + "]"},
                                     {"training.micro_batches", std::to_string(micro_batches)}});
  return judged("study.yaml", settings).plans.front();
}

// One device of the study alone with M micro-batches, one at a time; `judge` would take the M that is best for it.
Run alone_with(const std::string& model, int micro_batches, const std::string& cost_model) {
  constexpr const char* kAlone = R"(platform: platforms/one-server-4.yaml
compare: {strategies: [single], schedules: [1f1b]}
training: {global_batch: 1024, optimizer: momentum, precision: fp32}
)";
  const Study read =
      load_study(yaml::parse("model: " + model + "\n" + kAlone, "alone.yaml"), test::folders_of("ju-2024"),
                 {{"cost_model", cost_model}, {"training.micro_batches", std::to_string(micro_batches)}});
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  return compare(memo).comparison.runs.front();
}

// The one server of the study with links a thousand times as fast.
std::vector<Setting> thousandfold_links(int devices) {
  std::vector<Setting> fast = {{"platform.nodes.0.host.memory_bandwidth", "180000 GB/s"}};
  for (int link = 0; link < devices / 2; ++link) {
    fast.push_back({"platform.nodes.0.links." + std::to_string(link) + ".bandwidth", "12000 GB/s"});
  }
  return fast;
}

TEST_CASE("reports/ju-2024 says where the factor of 8 goes", "[reports]") {
  const std::vector<std::pair<int, std::vector<int>>> counts = {{4, {32, 64, 32, 16}}, {8, {64, 64, 64, 32}}};
  for (const auto& [devices, micro_batches] : counts) {
    const std::vector<Setting> fast = thousandfold_links(devices);
    for (std::size_t i = 0; i < kModels.size(); ++i) {
      const auto& [model, title] = kModels[i];
      const int count = micro_batches[i];
      const std::string platform = "one-server-" + std::to_string(devices);
      const Run alone = alone_with(model, count, "roofline");
      const JudgedPlan ideal = plan_with("antichain", model, platform, count, fast);
      const JudgedPlan real = plan_with("antichain", model, platform, count, {});
      const double balance = alone.metrics.iteration / (count * ideal.bottleneck) / devices;
      const double filling = ideal.speedup / (devices * alone.speedup * balance);
      std::string row = "| " + title + ", " + std::to_string(devices) + " | " + std::to_string(count) + " |";
      for (const double part : {alone.speedup, balance, filling, real.speedup / ideal.speedup, real.speedup}) {
        row += " " + to_text(part, 2) + " |";
      }
      test::check_says("ju-2024", row);
    }
  }
}

TEST_CASE("on fast links the plain period is reached without a flush", "[reports]") {
  std::vector<Setting> settings = {{"judge.models", "[resnet50-cifar10]"},
                                   {"judge.platforms", "[platforms/one-server-4.yaml]"},
                                   {"training.micro_batches", "4"},
                                   {"platform.nodes.0.host.memory_bandwidth", "1800 GB/s"}};
  for (const std::string link : {"0", "1"}) {
    settings.push_back({"platform.nodes.0.links." + link + ".bandwidth", "120 GB/s"});
  }
  const Judgement judgement = judged("asynchronous.yaml", settings);
  const JudgedPlan& plan = judgement.plans.front();
  CHECK(plan.micro_batches * plan.bottleneck / plan.iteration > 0.98);
}

TEST_CASE("reports/ju-2024 says what its networks give on fits to measured kernels", "[reports]") {
  const auto on_fits = [](const std::string& study, const std::string& planner, std::vector<Setting> settings = {}) {
    settings.insert(settings.begin(), {{"cost_model", "auto"}, {"judge.planners", "[" + planner + "]"}});
    return judged(study, settings);
  };
  const Judgement flush = on_fits("study.yaml", "antichain");
  check_speedups(flush, "flush, on fits");
  CHECK(std::all_of(flush.plans.begin(), flush.plans.end(),
                    [](const JudgedPlan& plan) { return plan.micro_batches >= 8 && plan.micro_batches <= 32; }));
  const Judgement asynchronous = on_fits("asynchronous.yaml", "antichain");
  check_speedups(asynchronous, "asynchronous, on fits");
  CHECK(std::count_if(asynchronous.plans.begin(), asynchronous.plans.end(),
                      [](const JudgedPlan& plan) { return plan.micro_batches <= 2; }) == 14);
  test::check_says("ju-2024", "1 or 2 in 14 of the 16 cases");
  const auto on = [&](const Judgement& judgement, const std::string& model, const std::string& platform) {
    return plan_of(judgement, "antichain", model, platform);
  };
  const auto gain = [&](const std::string& model) {
    return to_text(on(asynchronous, model, "one-server-8").speedup / on(asynchronous, model, "one-server-4").speedup,
                   2);
  };
  test::check_says("ju-2024", "in one server, " + gain("densenet121-cifar10") +
                                  " times as much as 4 for DenseNet-121, " + gain("resnet50-cifar10") +
                                  " for ResNet-50 and " + gain("vgg16-cifar10") +
                                  " for VGG-16, where the paper has 1.11; only SqueezeNet gains more, " +
                                  gain("squeezenet-cifar10"));
  // Over the fastest single device whose memory holds what it trains.
  const auto over_what_fits = [&](const std::string& model, int micro_batches) {
    REQUIRE_FALSE(alone_with(model, micro_batches / 2, "auto").feasible);
    const Seconds alone = alone_with(model, micro_batches, "auto").metrics.iteration;
    return to_text(alone / on(asynchronous, model, "one-server-4").iteration, 2) + " and " +
           to_text(alone / on(asynchronous, model, "one-server-8").iteration, 2);
  };
  test::check_says("ju-2024",
                   "DenseNet-121 without a flush comes to " + over_what_fits("densenet121-cifar10", 4) + ", which");
  test::check_says("ju-2024", "ResNet-50 to " + over_what_fits("resnet50-cifar10", 2) + ".");
  const auto without_links = [&](int devices) {
    std::vector<Setting> settings = thousandfold_links(devices);
    settings.push_back({"judge.models", "[vgg16-cifar10]"});
    settings.push_back({"judge.platforms", "[platforms/one-server-" + std::to_string(devices) + ".yaml]"});
    return to_text(on_fits("asynchronous.yaml", "antichain", settings).plans.front().speedup, 2);
  };
  test::check_says("ju-2024", "VGG-16 would give " + without_links(4) + " and " + without_links(8));
  const Judgement replicas = on_fits("study.yaml", "data-parallel", {{"judge.models", "[vgg16-cifar10]"}});
  test::check_says("ju-2024", "gives VGG-16 " + to_text(replicas.plans[0].speedup, 2) + " and " +
                                  to_text(replicas.plans[1].speedup, 2) + " there");
  const auto milliseconds = [](int micro_batches, const std::string& cost_model) {
    return to_text(alone_with("vgg16-cifar10", micro_batches, cost_model).metrics.iteration.value * 1e3, 0);
  };
  test::check_says("ju-2024", "in " + milliseconds(1, "auto") + " instead of " + milliseconds(1, "roofline") + " ms");
  test::check_says("ju-2024", "in " + milliseconds(64, "auto") + " instead of " + milliseconds(64, "roofline") + " ms");
  const auto kernels = [](int micro_batches, const std::string& cost_model,
                          const std::string& model = "vgg16-cifar10") {
    return to_text(alone_with(model, micro_batches, cost_model).speedup, 2);
  };
  test::check_says("ju-2024", "that of 64 is " + kernels(64, "auto", "resnet50-cifar10") + " for ResNet-50, " +
                                  kernels(64, "auto", "densenet121-cifar10") + " for DenseNet-121 and " +
                                  kernels(64, "auto", "squeezenet-cifar10") + " for SqueezeNet");
  test::check_says("ju-2024", "of 8 micro-batches is then " + kernels(8, "auto") + " instead of " +
                                  kernels(8, "roofline") + ", that of 64 is " + kernels(64, "auto") + " instead of " +
                                  kernels(64, "roofline"));
}

TEST_CASE("the measured profiles give what reports/ju-2024 says", "[reports]") {
  const std::filesystem::path profiles = test::source_dir() / "../shared/data/pipedream/profiles";
  if (!std::filesystem::exists(profiles)) {
    std::cout << "skipped: no " << profiles << "\n";
    return;
  }
  const std::vector<std::pair<std::string, std::string>> files = {{"ResNet-50", "resnet50"},
                                                                  {"SqueezeNet", "squeezenet1_0"},
                                                                  {"DenseNet-121", "densenet121"},
                                                                  {"VGG-16", "vgg16"},
                                                                  {"AlexNet", "alexnet"}};
  const auto plans_of = [&](const std::string& file, const std::string& study, const std::string& ordered) {
    return judged(study, {{"cost_model", "profiled"},
                          {"judge.models", "['" + (profiles / (file + ".graph.txt")).string() + "']"},
                          {"judge.platforms", "[{devices: 4, bandwidth: 10 GB/s}, {devices: 8, bandwidth: 10 GB/s}]"},
                          {"judge.planners", "[antichain]"},
                          {"training.global_batch", "64"},
                          {"training.micro_batches", "64"},
                          {"training.ordered_sends", ordered}})
        .plans;
  };
  for (const auto& [title, file] : files) {
    std::string row = "| " + title + " |";
    for (const char* study : {"study.yaml", "asynchronous.yaml"}) {
      for (const JudgedPlan& plan : plans_of(file, study, "true")) {
        row += " " + to_text(plan.speedup, 2) + " |";
      }
    }
    test::check_says("ju-2024", row);
  }
  CHECK(to_text(plans_of("resnet50", "study.yaml", "false").back().speedup, 2) == "3.85");
  test::check_says("ju-2024", "On 8 devices ResNet-50 gives 3.85");
  // The closed form of a pipeline: M + P - 1 times the bottleneck.
  const auto closed = [](const JudgedPlan& plan, int devices) {
    const double alone = plan.speedup * plan.iteration.value;
    return to_text(alone / ((64 + devices - 1) * plan.bottleneck.value), 2);
  };
  const std::vector<JudgedPlan> plans = plans_of("squeezenet1_0", "study.yaml", "true");
  CHECK(closed(plans.front(), 4) == "3.37");
  CHECK(closed(plans.back(), 8) == "3.77");
  test::check_says("ju-2024", "within 1 % of the published pair, with 3.37 and 3.77");
}

} // namespace
} // namespace stagecraft
