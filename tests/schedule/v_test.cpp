// Two stages per rank in a V: orders, makespans, periods and activations of zb-v, v-half and v-min.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>

#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/timed_pipelines.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::near;

Schedule made(std::string_view name, int ranks, int micro_batches) {
  const ScheduleRequest request{.ranks = ranks, .micro_batches = micro_batches};
  return std::get<Schedule>(make_schedule(test::schedule_row(name), request));
}

test::Pipeline v_pipeline(int ranks) {
  test::Pipeline pipeline = test::equal_stages(ranks, 2, {1, 1, 1});
  pipeline.stage_placement = StagePlacement::v_shaped;
  return pipeline;
}

double most_activations(const Schedule& schedule) {
  const ScheduleRequest request{.figures = std::vector<StageFigures>(schedule.stages)};
  double most = 0;
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    most = std::max(most, test::most_held(schedule, request, rank));
  }
  return most;
}

TEST_CASE("schedules in a V take the published time", "[schedule][timed]") {
  struct Case {
    std::string_view schedule;
    int ranks, micro_batches;
    double makespan, period;
  };
  // A device's F, B and W take 1 each; all work is 3 M.
  for (const Case& one : {Case{"zb-v", 4, 8, 25.5, 24}, Case{"zb-v", 4, 12, 37.5, 36}, Case{"zb-v", 8, 24, 75.5, 72},
                          Case{"v-half", 4, 8, 26.5, 26.5}, Case{"v-half", 8, 24, 80.5, 80.5},
                          Case{"v-min", 4, 8, 29.5, 29.5}, Case{"v-min", 8, 24, 85.5, 85.5}}) {
    CAPTURE(one.schedule, one.ranks);
    const Schedule schedule = made(one.schedule, one.ranks, one.micro_batches);
    const test::Pipeline pipeline = v_pipeline(one.ranks);
    CHECK(test::run(pipeline, schedule).end() == near(one.makespan));
    CHECK(test::replayed_period(pipeline, schedule) == near(one.period));
  }
}

TEST_CASE("schedules in a V hold at most the published activations", "[schedule][timed]") {
  // In halves of a device's activations: 1F1B holds 2P; half and a third of that, and what the pattern's gaps add.
  for (const int ranks : {4, 8, 16}) {
    CAPTURE(ranks);
    CHECK(most_activations(made("zb-v", ranks, 4 * ranks)) == 2 * ranks);
    CHECK(most_activations(made("v-half", ranks, 4 * ranks)) <= ranks + 2);
    CHECK(most_activations(made("v-min", ranks, 4 * ranks)) <= 2 * ranks / 3 + 3);
  }
}

TEST_CASE("zb-v's orders are those of its authors' program", "[schedule][timed]") {
  const std::filesystem::path file = test::source_dir() / "../shared/data/vectors/schedules.json";
  if (!std::filesystem::exists(file)) {
    std::cout << "skipped: no ../shared/data/vectors/schedules.json\n";
    return;
  }
  int compared = 0;
  for (const nlohmann::json& row : nlohmann::json::parse(read_file(file))) {
    if (row.at("schedule") != "zb_v") {
      continue;
    }
    const Schedule schedule = made("zb-v", row.at("devices").get<int>(), row.at("microbatches").get<int>());
    for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
      CHECK(to_text(schedule.orders[rank]) == row.at("orders").at(rank).get<std::string>());
      ++compared;
    }
  }
  CHECK(compared > 0);
}

TEST_CASE("schedules in a V say what they cannot do", "[schedule][timed]") {
  const auto reason = [](std::string_view name, int ranks, int micro_batches) {
    const ScheduleRequest request{.ranks = ranks, .micro_batches = micro_batches};
    return std::get<Infeasible>(make_schedule(test::schedule_row(name), request)).reason;
  };
  CHECK(reason("zb-v", 1001, 1000) == "zb-v orders 1001 ranks x 1000 micro-batches one by one; at most 1000000");
  CHECK(reason("v-half", 17, 241) == "v-half packs 17 ranks x 241 micro-batches slot by slot; at most 4096");
  CHECK(reason("v-min", 17, 241) == "v-min packs 17 ranks x 241 micro-batches slot by slot; at most 4096");
}

} // namespace
} // namespace stagecraft
