// The claims of reports/wang-2024 in numbers that a change of the model would move.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

const fs::path kFolder = kRoot / "reports/wang-2024";

// The best run of the study with settings on top; ResNet-50 on one V100.
Run best_run(const std::vector<Setting>& settings) {
  const Study read = load_study(yaml::load(kFolder / "study.yaml"), {kFolder, kRoot}, settings);
  Simulator simulator(read);
  return compare(read, simulator).comparison.runs.front();
}

struct Row {
  Run framework, loader, streams, pipeline, blocking;
};

Row rows_of(const std::string& decode, int devices) {
  const std::vector<Setting> all = {{"loader.decode", decode},
                                    {"platform.nodes.0.devices.0.count", std::to_string(devices)},
                                    {"training.global_batch", std::to_string(64 * devices)},
                                    {"engine", "analytic"}};
  const auto with = [&](std::vector<Setting> more) {
    more.insert(more.begin(), all.begin(), all.end());
    return best_run(more);
  };
  const Setting spin{"loader.host", "spin"};
  const Setting one{"training.streams", "1"};
  return {.framework = with({spin, one, {"compare.strategies", "framework"}}),
          .loader = with({spin, one, {"compare.strategies", "data-parallel"}}),
          .streams = with({spin, {"compare.strategies", "data-parallel"}}),
          .pipeline = with({spin, {"compare.strategies", "[data-parallel, layered]"}}),
          .blocking = with({{"compare.strategies", "[data-parallel, layered]"}})};
}

double saved(double before, double after) { return 1 - after / before; }

TEST_CASE("no optimisation of Wang et al. 2024 costs time, and blocking cores cost none at all", "[study][wang-2024]") {
  for (const int devices : {1, 2}) {
    const Row row = rows_of("2 ms", devices);
    const auto seconds = [](const Run& run) { return run.metrics.iteration.value; };
    for (const Run* run : {&row.framework, &row.loader, &row.streams, &row.pipeline, &row.blocking}) {
      REQUIRE(run->feasible);
      CHECK(run->metrics.iteration >= run->lower_bound * (1 - 1e-9));
    }
    CHECK(seconds(row.loader) <= seconds(row.framework) * (1 + 1e-9));
    CHECK(seconds(row.streams) < seconds(row.loader));
    CHECK(seconds(row.pipeline) <= seconds(row.streams) * (1 + 1e-9));
    CHECK(seconds(row.blocking) == near(seconds(row.pipeline)).epsilon(1e-6));
    CHECK(row.blocking.metrics.energy.total() < row.pipeline.metrics.energy.total());
  }
}

// Energy = static power * T + work that does not depend on T. Where only T shrinks, the saving in energy is less than
// that in time: more needs less power.
TEST_CASE("idle power alone saves less energy than time", "[study][wang-2024]") {
  const Row row = rows_of("2 ms", 1);
  const Energy before = row.framework.metrics.energy;
  const Energy after = row.pipeline.metrics.energy;
  const double time = saved(row.framework.metrics.iteration.value, row.pipeline.metrics.iteration.value);
  REQUIRE(time > 0);
  const double idle_before = (before.devices_idle + before.hosts_idle).value;
  const double idle_after = (after.devices_idle + after.hosts_idle).value;
  CHECK((idle_before - idle_after) / before.total().value < time);
}

} // namespace
} // namespace stagecraft::test
