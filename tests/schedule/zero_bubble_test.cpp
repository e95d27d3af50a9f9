// Bubble fractions that Qi et al. 2023 (Table 5) computed from the stage times they measured (Table 6).
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <map>

#include "sim/base/format/csv.hpp"
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/timed_pipelines.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

// One model on P devices with M micro-batches: stage times, and fractions by schedule.
struct Measured {
  int ranks = 0, micro_batches = 0;
  double kept = 1;
  std::map<std::string, double> milliseconds, bubble;
};

// Of the activations of a transformer layer, s b h (34 + 5 a s / h) bytes (Korthikanti et al. 2022, eq. 1), W needs the
// inputs of its matrix products, 32 s b h (Qi et al. 2023, Table 1).
double kept_by_weights(double hidden, double heads, double sequence) {
  return 32 / (34 + 5 * heads * sequence / hidden);
}

std::vector<Measured> read(const std::filesystem::path& file) {
  const CsvTable table(read_file(file), file.string(),
                       {"hidden", "heads", "seq_len", "pipeline_parallel", "micro_batch", "global_batch", "schedule",
                        "metric", "value"});
  std::map<std::pair<int, int>, Measured> cases;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& metric = table.at(row, "metric").text;
    if (metric != "bubble_fraction_from_profile" && !metric.starts_with("stage_")) {
      continue;
    }
    const auto number = [&](std::string_view column) { return table.at(row, column).number(); };
    const int ranks = table.at(row, "pipeline_parallel").integer(1, 1024);
    const int micro_batches = static_cast<int>(number("global_batch") / number("micro_batch"));
    Measured& one = cases[{ranks, micro_batches}];
    one.ranks = ranks;
    one.micro_batches = micro_batches;
    one.kept = kept_by_weights(number("hidden"), number("heads"), number("seq_len"));
    if (metric == "bubble_fraction_from_profile") {
      one.bubble[table.at(row, "schedule").text] = number("value");
    } else {
      one.milliseconds[metric] = number("value");
    }
  }
  std::vector<Measured> all;
  for (const auto& [key, one] : cases) {
    all.push_back(one);
  }
  return all;
}

test::Pipeline pipeline_of(const Measured& one, int chunks) {
  const auto ms = [&](const char* metric) { return one.milliseconds.at(metric); };
  return test::equal_stages(one.ranks, chunks,
                            {.forward = ms("stage_forward_ms"),
                             .input = ms("stage_backward_input_ms"),
                             .weight = ms("stage_backward_weight_ms")},
                            ms("stage_communication_ms"));
}

TEST_CASE("counts in flight include the memory that B frees", "[schedule][in-flight]") {
  // F0 F1 B0 B1 W0 W1: two before B; after both B two halves. F0 B0 F1 B1 W0 W1: one and a half.
  Schedule schedule{.stages = 1, .micro_batches = 2, .splits_backward = true};
  const auto order_of = [](std::initializer_list<std::pair<TaskKind, int>> tasks) {
    std::vector<Action> order;
    for (const auto& [kind, micro_batch] : tasks) {
      order.push_back({kind, micro_batch, 0});
    }
    return order;
  };
  constexpr TaskKind kF = TaskKind::forward;
  constexpr TaskKind kB = TaskKind::backward;
  constexpr TaskKind kW = TaskKind::weight;
  schedule.orders = {order_of({{kF, 0}, {kF, 1}, {kB, 0}, {kB, 1}, {kW, 0}, {kW, 1}})};
  CHECK(in_flight(schedule, 0.5) == std::vector<double>{2});
  schedule.orders = {order_of({{kF, 0}, {kB, 0}, {kF, 1}, {kB, 1}, {kW, 0}, {kW, 1}})};
  CHECK(in_flight(schedule, 0.5) == std::vector<double>{1.5});
  CHECK(in_flight(schedule) == std::vector<double>{2});
  CHECK(in_flight(schedule, 0) == std::vector<double>{1});
}

TEST_CASE("the bubbles of profiled pipelines are the published ones", "[schedule][timed]") {
  const std::filesystem::path file = test::source_dir() / "../shared/data/truth/zero_bubble.csv";
  if (!std::filesystem::exists(file)) {
    std::cout << "skipped: no ../shared/data/truth/zero_bubble.csv\n";
    return;
  }
  int compared = 0;
  for (const Measured& one : read(file)) {
    if (one.milliseconds.empty()) {
      continue;
    }
    CAPTURE(one.ranks, one.micro_batches);
    const test::Pipeline pipeline = pipeline_of(one, 1);
    const test::StageTimes& stage = pipeline.stages.front();
    const double busy = one.micro_batches * (stage.forward + stage.input + stage.weight);
    const auto bubble = [&](std::string_view schedule, double room) {
      ScheduleRequest request = test::request_of(pipeline, one.micro_batches);
      for (StageFigures& figures : request.figures) {
        figures.kept = one.kept;
      }
      request.room.assign(one.ranks, room);
      const ScheduleResult result = make_schedule(test::schedule_row(schedule), request);
      return 1 - busy / test::replayed_period(pipeline, std::get<Schedule>(result));
    };
    // Printed with four digits; the times behind them with five.
    CHECK(std::abs(bubble("1f1b", one.ranks) - one.bubble.at("1f1b")) < 0.0005);
    CHECK(std::abs(bubble("zb-h1", one.ranks) - one.bubble.at("zb-h1")) < 0.0005);
    CHECK(std::abs(bubble("zb-h2", 2.0 * one.ranks) - one.bubble.at("zb-h2")) < 0.0005);
    // Three stages of one layer each per device; times are of a device's three.
    const Schedule interleaved = test::schedule_of("interleaved", one.ranks, one.micro_batches, 3);
    CHECK(std::abs(1 - busy / test::replayed_period(pipeline_of(one, 3), interleaved) -
                   one.bubble.at("interleaved-1f1b")) < 0.01);
    // "1p" and "2p": zero bubble within once and twice the activations of 1F1B.
    CHECK(bubble("zb-auto", one.ranks) < one.bubble.at("zb-1p") + 0.0001);
    CHECK(bubble("zb-auto", 2.0 * one.ranks) < one.bubble.at("zb-2p") + 0.0001);
    ++compared;
  }
  CHECK(compared > 0);
}

} // namespace
} // namespace stagecraft
