// Worked schedules kept outside the project: orders, makespans, periods and activations held. Skipped where those files
// are missing.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/event_loop.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;
using test::near;

// A schedule's name in those files, and the recompute that follows it.
struct Named {
  std::string schedule;
  bool recomputes = false;
  RecomputeRule rule;
};

Named named(std::string name) {
  Named found;
  if (const std::size_t at = name.find("_recompute"); at != std::string::npos) {
    found.recomputes = true;
    found.rule.skip_after_own_forward = name.find("skip") != std::string::npos;
    found.rule.except_last_micro_batch = name.find("except_last") != std::string::npos;
    name.resize(at);
  }
  for (const std::string suffix : {"_comm", "_uneven"}) {
    name = name.substr(0, name.find(suffix));
  }
  std::replace(name.begin(), name.end(), '_', '-');
  found.schedule = name == "1f1b-eager"         ? "eager-1f1b"
                   : name == "interleaved-1f1b" ? "interleaved"
                   : name == "dualpipev"        ? "dualpipe-v"
                                                : name;
  return found;
}

// Those files count the micro-batches of each direction from 0 and mark them d or u. We number all of them, first those
// going down.
std::string renumbered(const std::string& order, int micro_batches) {
  std::string text;
  std::string token;
  std::istringstream tokens(order);
  const auto translate = [&](const std::string& task) {
    const bool up = task.find('u') != std::string::npos;
    const int m = std::stoi(task.substr(1)) + (up ? micro_batches / 2 : 0);
    const int stage = std::stoi(task.substr(task.find('@') + 1));
    return task.substr(0, 1) + std::to_string(m) + "@" + std::to_string(stage);
  };
  while (tokens >> token) {
    text += text.empty() ? "" : " ";
    for (std::size_t at = 0; at != std::string::npos;) {
      const std::size_t plus = token.find('+', at);
      text += translate(token.substr(at, plus - at)) + (plus == std::string::npos ? "" : "+");
      at = plus == std::string::npos ? plus : plus + 1;
    }
  }
  return text;
}

double number(const json& row, const char* key, double otherwise) {
  return row.contains(key) && row.at(key).is_number() ? row.at(key).get<double>() : otherwise;
}

test::Pipeline pipeline_of(const json& row, const ScheduleRow& schedule, int chunks) {
  const int ranks = row.at("devices");
  test::Pipeline pipeline{
      .ranks = ranks, .latency = number(row, "comm", 0), .stage_placement = schedule.stage_placement};
  if (row.contains("stage_forward")) {
    for (int s = 0; s < ranks; ++s) {
      pipeline.stages.push_back({row.at("stage_forward").at(s), row.at("stage_backward").at(s), 0});
    }
    return pipeline;
  }
  const double forward = number(row, "t_forward_device", number(row, "tF", 0) * chunks);
  const double input = number(row, "t_B_device", number(row, "tB_input", 0) * chunks);
  const double weight = number(row, "t_W_device", number(row, "tW", 0) * chunks);
  const double whole = number(row, "t_backward_device", input + weight);
  const double part = 1.0 / chunks;
  const test::StageTimes times{forward * part, schedule.splits_backward ? input * part : whole * part,
                               schedule.splits_backward ? weight * part : 0, 0, number(row, "t_recompute", 0) * part};
  pipeline.stages.assign(static_cast<std::size_t>(ranks) * chunks, times);
  pipeline.fused = number(row, "t_FandB_fused", 1) / (row.contains("t_FandB_fused") ? forward + input + weight : 1);
  pipeline.fused *= row.contains("t_FandB_fused") ? chunks : 1;
  return pipeline;
}

TEST_CASE("replays agree in every figure with schedules worked out elsewhere", "[schedule][vectors]") {
  const std::filesystem::path file = test::source_dir() / "../shared/data/vectors/schedules.json";
  if (!std::filesystem::exists(file)) {
    std::cout << "skipped: no ../shared/data/vectors\n";
    return;
  }
  const json rows = json::parse(read_file(file));
  const std::vector<std::string> known = names_of(schedules());
  int met = 0;
  for (const json& row : rows) {
    const Named name = named(row.at("schedule"));
    if (std::find(known.begin(), known.end(), name.schedule) == known.end()) {
      continue;
    }
    const ScheduleRow& schedule_row = test::schedule_row(name.schedule);
    const int ranks = row.at("devices");
    const int micro_batches = row.at("microbatches");
    const int chunks = chunks_of(schedule_row, static_cast<int>(number(row, "chunks_per_device", 1)));
    CAPTURE(name.schedule, ranks, micro_batches, chunks, number(row, "comm", 0));
    Schedule schedule = test::schedule_of(name.schedule, ranks, micro_batches, chunks);
    if (name.recomputes) {
      schedule = add_recompute(schedule, std::vector<char>(schedule.stages, 1), name.rule);
    }
    if (row.contains("orders")) {
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(to_text(schedule.orders[rank]) == renumbered(row.at("orders").at(rank), micro_batches));
      }
    }
    const test::Pipeline pipeline = pipeline_of(row, schedule_row, chunks);
    CHECK(test::makespan_of(pipeline, schedule) == near(row.at("makespan")));
    if (row.contains("iteration_period_no_barrier")) {
      CHECK(test::period_of(pipeline, schedule) == near(row.at("iteration_period_no_barrier")));
    }
    if (row.contains("peak_inflight_chunks")) {
      CHECK(most_held(schedule) == row.at("peak_inflight_chunks").get<std::vector<int>>());
    }
    ++met;
  }
  CHECK(met > 20);
}

} // namespace
} // namespace stagecraft
