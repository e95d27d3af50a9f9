// The headline numbers of reports/wang-2024, and relations that hold whatever the numbers are.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/reports/reports.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Comparison compared(const std::vector<Setting>& settings) {
  const Study read =
      load_study(yaml::load(kReports / "wang-2024/study.yaml"), folders_of("wang-2024"), settings, Purpose::comparison);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  return compare(memo).comparison;
}

// The best run of the study with these settings.
Run best_run(const std::vector<Setting>& settings) { return compared(settings).runs.front(); }

struct Row {
  Run framework, loader, streams, inside, between, blocking;
};

// Switches the optimisations on one after another, as reports/wang-2024/run does.
Row rows_of(const std::string& model, int devices, const std::vector<Setting>& more = {}) {
  std::vector<Setting> all = {{"model", model},
                              {"platform.nodes.0.devices.0.count", std::to_string(devices)},
                              {"training.global_batch", std::to_string(64 * devices)}};
  all.insert(all.end(), more.begin(), more.end());
  const auto with = [&](std::vector<Setting> row) {
    row.insert(row.begin(), all.begin(), all.end());
    return best_run(row);
  };
  const Setting spin{"loader.host", "spin"};
  const Setting one{"training.streams", "1"};
  const Setting apart{"compare.schedules", "[gpipe, 1f1b]"};
  return {.framework = with({spin, one, apart, {"compare.strategies", "framework"}}),
          .loader = with({spin, one, apart, {"compare.strategies", "data-parallel"}}),
          .streams = with({spin, apart, {"compare.strategies", "data-parallel"}}),
          .inside = with({spin, {"compare.strategies", "data-parallel"}}),
          .between = with({spin, {"compare.strategies", "[data-parallel, layered]"}}),
          .blocking = with({{"compare.strategies", "[data-parallel, layered]"}})};
}

double saved(double before, double after) { return 1 - after / before; }

// The pipeline inside a device cuts the batch, which is nearly free by the roofline and dear by fits: it must save time
// by the one, and is left out where it would cost time by the other.
TEST_CASE("no optimisation of Wang et al. 2024 costs time, and blocking cores cost none at all", "[reports]") {
  for (const auto& [devices, cost_model] :
       std::vector<std::pair<int, std::string>>{{1, "auto"}, {2, "auto"}, {1, "roofline"}, {2, "roofline"}}) {
    const Row row =
        rows_of("resnet50", devices, {{"loader.decode", "2 ms"}, {"engine", "analytic"}, {"cost_model", cost_model}});
    const auto seconds = [](const Run& run) { return run.metrics.iteration.value; };
    for (const Run* run : {&row.framework, &row.loader, &row.streams, &row.inside, &row.between, &row.blocking}) {
      REQUIRE(run->feasible);
      CHECK(run->metrics.iteration >= run->lower_bound * (1 - 1e-9));
    }
    CHECK(seconds(row.loader) <= seconds(row.framework) * (1 + 1e-9));
    CHECK(seconds(row.streams) < seconds(row.loader));
    CHECK(seconds(row.inside) <= seconds(row.streams) * (1 + 1e-9));
    CHECK((seconds(row.inside) < seconds(row.streams) * (1 - 1e-9)) == (cost_model == "roofline"));
    CHECK(seconds(row.between) <= seconds(row.inside) * (1 + 1e-9));
    CHECK(seconds(row.blocking) == near(seconds(row.between)).epsilon(1e-6));
    CHECK(row.blocking.metrics.energy.total() < row.between.metrics.energy.total());
  }
}

TEST_CASE("reports/wang-2024 says what a cut costs and what the pipeline inside a device saves of it", "[reports]") {
  for (const auto& [name, cost_model] :
       std::vector<std::pair<std::string, std::string>>{{"fits", "auto"}, {"the roofline", "roofline"}}) {
    const Comparison comparison =
        compared({{"cost_model", cost_model}, {"loader.host", "spin"}, {"compare.strategies", "data-parallel"}});
    const auto seconds = [&](const char* schedule, int micro_batches) {
      return find_run(comparison, "data-parallel", schedule, micro_batches).metrics.iteration.value;
    };
    const double whole = seconds("gpipe", 1);
    const double cut = seconds("gpipe", 2);
    const double inside = seconds("combined-1f1b", 2);
    CHECK(whole < cut);
    CHECK(inside < cut);
    CHECK((inside < whole) == (cost_model == "roofline"));
    const auto milliseconds = [](double time) { return to_text(1e3 * time, 1) + " ms | "; };
    check_says("wang-2024", "| by " + name + " | " + milliseconds(whole) + milliseconds(cut) + milliseconds(inside));
  }
}

// Energy = static power * T + work that does not depend on T. Where only T shrinks, the saving in energy is less than
// that in time: more needs less power.
TEST_CASE("idle power alone saves less energy than time", "[reports]") {
  const Row row = rows_of("resnet50", 1, {{"loader.decode", "2 ms"}, {"engine", "analytic"}});
  const Energy before = row.framework.metrics.energy;
  const Energy after = row.between.metrics.energy;
  const double time = saved(row.framework.metrics.iteration.value, row.between.metrics.iteration.value);
  REQUIRE(time > 0);
  const double idle_before = (before.devices_idle + before.hosts_idle).value;
  const double idle_after = (after.devices_idle + after.hosts_idle).value;
  CHECK((idle_before - idle_after) / before.total().value < time);
}

// A share as table.awk writes it.
std::string share(double before, double after) {
  const double part = saved(before, after);
  constexpr double kNothing = 0.0005;
  constexpr double kTenth = 0.0995;
  return std::abs(part) < kNothing ? "0" : percent(part, part < kTenth ? 1 : 0);
}

// What a row of the table saves compared with the one before: time / energy.
std::string both(const Run& before, const Run& after) {
  const std::string time = share(before.metrics.iteration.value, after.metrics.iteration.value);
  const std::string energy = share(before.metrics.energy.total().value, after.metrics.energy.total().value);
  return time == "0" && energy == "0" ? "0" : time + " / " + energy;
}

// The row of a table for a model on devices.
void check_row(const std::string& model, int devices, const std::vector<Setting>& more) {
  const Row row = rows_of(model, devices, more);
  const Metrics& first = row.framework.metrics;
  constexpr double kMilli = 1e3;
  check_says("wang-2024", "| " + model + ", " + std::to_string(devices) + " | " +
                              to_text(kMilli * first.iteration.value, 0) + " ms, " +
                              to_text(first.energy.total().value, 0) + " J | " + both(row.framework, row.loader) +
                              " | " + both(row.loader, row.streams) + " | " + both(row.streams, row.inside) + " | " +
                              both(row.inside, row.between) + " | " + both(row.between, row.blocking) + " | " +
                              both(row.framework, row.blocking) + " |");
}

TEST_CASE("reports/wang-2024 says what its study gives", "[reports]") {
  for (const auto& [model, devices] : std::vector<std::pair<std::string, int>>{{"resnet50", 1},
                                                                               {"resnet50", 4},
                                                                               {"vgg16", 1},
                                                                               {"inception-v3", 1},
                                                                               {"densenet121", 4},
                                                                               {"squeezenet", 4}}) {
    check_row(model, devices, {});
  }
  for (const std::string model : {"resnet50", "vgg16"}) {
    check_row(model, 1, {{"cost_model", "roofline"}});
  }
}

// Seconds and joules as the table of links has them.
std::string seconds_and_joules(const Run& run) {
  return to_text(1e3 * run.metrics.iteration.value, 0) + " ms, " + to_text(run.metrics.energy.total().value, 0) + " J";
}

TEST_CASE("reports/wang-2024 says where stages on several devices pay", "[reports]") {
  for (const std::string bandwidth : {"12 GB/s", "1.25 GB/s"}) {
    const auto best = [&](const char* strategy) {
      return best_run({{"model", "vgg16"},
                       {"platform.nodes.0.devices.0.count", "4"},
                       {"platform.nodes.0.links.0.bandwidth", bandwidth},
                       {"training.global_batch", "256"},
                       {"loader.host", "spin"},
                       {"compare.strategies", strategy}});
    };
    const Run replicas = best("data-parallel");
    const Run stages = best("layered");
    CHECK((stages.metrics.iteration < replicas.metrics.iteration) == (bandwidth == "1.25 GB/s"));
    check_says("wang-2024", "| vgg16 at " + bandwidth + " | " + seconds_and_joules(replicas) + " | " +
                                seconds_and_joules(stages) + " | ");
  }
}

TEST_CASE("reports/wang-2024 says where the power goes", "[reports]") {
  const Row row = rows_of("resnet50", 1);
  for (const auto& [name, run] : std::vector<std::pair<std::string, const Run*>>{
           {"framework", &row.framework}, {"loader", &row.loader}, {"blocking", &row.blocking}}) {
    const Energy& energy = run->metrics.energy;
    std::string line = "| " + name + " |";
    for (const Joules joules : {energy.devices_idle, energy.devices_dynamic, energy.hosts_idle, energy.loaders_busy,
                                energy.loaders_waiting, energy.drivers_waiting, energy.total()}) {
      line += " " + to_text(joules.value / run->metrics.iteration.value, 0) + " |";
    }
    check_says("wang-2024", line);
  }
}

// Two to ten per cent is what a lone worker costs that falls a little short.
TEST_CASE("between 2.65 and 2.9 ms a sample loading ahead saves what Wang et al. claim", "[reports]") {
  const auto loading = [](const char* decode) {
    const Row row = rows_of("resnet50", 1, {{"loader.decode", decode}});
    return saved(row.framework.metrics.iteration.value, row.loader.metrics.iteration.value);
  };
  CHECK(loading("2.65 ms") == Approx(0.02).margin(0.002));
  CHECK(loading("2.9 ms") == Approx(0.10).margin(0.003));
  const Row row = rows_of("resnet50", 1, {{"loader.decode", "2.9 ms"}});
  CHECK(both(row.framework, row.blocking) == "11 % / 7.3 %");
  check_says("wang-2024", "2.65 to 2.9 ms per sample instead of 8 ms");
  check_says("wang-2024", "At 2.9 ms all steps together save 11 % of time and 7.3 % of energy");
}

} // namespace
} // namespace stagecraft::test
