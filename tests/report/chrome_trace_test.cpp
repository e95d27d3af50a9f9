// Traces for Chrome and Perfetto: slices, arrows, memory.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "sim/report/chrome_trace.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"
#include "tests/report/small_run.hpp"
#include "tests/schedule/pipelines.hpp"

using namespace stagecraft;
using nlohmann::json;

namespace {

// Transfers of 1.5 s between computations of 1 s and 2 s: some overlap on their link.
const test::SmallRequest kRequest{.ranks = 3,
                                  .micro_batches = 4,
                                  .optimizer = 0.25,
                                  .bytes = 3e7,
                                  .bandwidth = 2e7,
                                  .stash = 5e8,
                                  .weights = 1e9,
                                  .iterations = 2};

json events_of(const test::SmallRun& run) {
  return json::parse(chrome_trace(run.graph, run.timeline, run.platform)).at("traceEvents");
}

using Row = std::pair<int, int>; // process, thread

Row row_of(const json& event) { return {event.at("pid"), event.at("tid")}; }

std::map<Row, std::string> row_names(const json& events) {
  std::map<Row, std::string> names;
  for (const json& event : events) {
    if (event.at("name") == "thread_name") {
      names[row_of(event)] = event.at("args").at("name");
    }
  }
  return names;
}

std::map<Row, std::vector<json>> slices_of(const json& events) {
  std::map<Row, std::vector<json>> slices;
  for (const json& event : events) {
    if (event.at("ph") == "X") {
      slices[row_of(event)].push_back(event);
    }
  }
  for (auto& [row, list] : slices) {
    std::sort(list.begin(), list.end(), [](const json& a, const json& b) { return a.at("ts") < b.at("ts"); });
  }
  return slices;
}

double end_of(const json& slice) { return slice.at("ts").get<double>() + slice.at("dur").get<double>(); }

// The row of this name in the process of devices.
Row device_row(const json& events, const std::string& name) {
  for (const auto& [row, of_row] : row_names(events)) {
    if (row.first == 1 && of_row == name) {
      return row;
    }
  }
  FAIL("no row '" << name << "'");
  return {};
}

using Times = std::vector<std::pair<double, double>>; // start and end, seconds

Times times_of(const std::vector<json>& slices) {
  Times times;
  for (const json& slice : slices) {
    times.emplace_back(slice.at("ts").get<double>() * 1e-6, end_of(slice) * 1e-6);
  }
  return times;
}

// The slice of a row at a moment.
const json* slice_at(const std::vector<json>& slices, double moment) {
  const json* found = nullptr;
  for (const json& slice : slices) {
    if (slice.at("ts") <= moment && moment <= end_of(slice)) {
      found = &slice; // the later of two that meet here
    }
  }
  return found;
}

} // namespace

TEST_CASE("a trace names processes, devices and the links that are used") {
  const auto run = test::run(kRequest);
  const json events = events_of(run);
  std::map<int, std::string> processes;
  for (const json& event : events) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    }
  }
  CHECK(processes == std::map<int, std::string>{{1, "devices"}, {2, "links"}});
  std::multiset<std::string> names;
  for (const auto& [row, name] : row_names(events)) {
    names.insert(name);
  }
  for (const Device& device : run.platform.devices) {
    CHECK(names.count(device.name) == 1);
  }
  for (const Link& link : run.platform.links) { // a star: every device sends and receives
    CHECK(names.count(link.name) == 1);
  }
  CHECK(names.count("node/x-0>node/switch #2") == 1);
}

TEST_CASE("slices of a device add up to its busy time, with what they are") {
  const auto run = test::run(kRequest);
  const json events = events_of(run);
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  const auto slices = slices_of(events);
  const auto row_of_device = [&](int device) { return device_row(events, run.platform.devices[device].name); };
  for (int device = 0; device < 3; ++device) {
    const std::vector<json>& row = slices.at(row_of_device(device));
    CHECK(row.size() == 2 * (2 * 4 + 1));
    double busy = 0;
    for (const json& slice : row) {
      busy += slice.at("dur").get<double>() * 1e-6;
    }
    CHECK(busy == test::near(2 * metrics.busy[device].value));
  }
  const json& first = slices.at({1, 1}).front();
  CHECK(first.at("name") == "F0@0");
  CHECK(first.at("args") == json{{"stage", 0}, {"micro_batch", 0}, {"iteration", 0}});
  CHECK(slices.at(row_of_device(2)).back().at("name") == "O@2");
  CHECK(slices.at(row_of_device(2)).back().at("args") == json{{"stage", 2}, {"iteration", 1}});
}

TEST_CASE("slices of one row never overlap") {
  for (const auto& [row, slices] : slices_of(events_of(test::run(kRequest)))) {
    for (std::size_t i = 1; i < slices.size(); ++i) {
      CHECK(end_of(slices[i - 1]) <= slices[i].at("ts").get<double>());
    }
  }
}

TEST_CASE("every transfer has an arrow from the slice that sends, over its link, to the slice that receives") {
  const auto run = test::run(kRequest);
  const json events = events_of(run);
  const auto slices = slices_of(events);
  std::map<long, std::vector<json>> arrows;
  for (const json& event : events) {
    if (event.contains("id")) {
      arrows[event.at("id")].push_back(event);
    }
  }
  CHECK(arrows.size() == 2 * 2 * 4 * 2); // iterations, boundaries, micro-batches, there and back
  for (const auto& [id, steps] : arrows) {
    REQUIRE(steps.size() == 3);
    std::vector<json> ends;
    for (const json& step : steps) {
      const json* slice = slice_at(slices.at(row_of(step)), step.at("ts"));
      REQUIRE(slice != nullptr);
      ends.push_back(*slice);
    }
    CHECK(steps[0].at("ph") == "s");
    CHECK(steps[1].at("ph") == "t");
    CHECK(steps[2].at("ph") == "f");
    CHECK(steps[2].at("bp") == "e");
    for (const json& slice : ends) {
      CHECK(slice.at("args").at("micro_batch") == ends[0].at("args").at("micro_batch"));
      CHECK(slice.at("args").at("iteration") == ends[0].at("args").at("iteration"));
    }
    CHECK(ends[1].at("ts") == end_of(ends[0]));
    CHECK(ends[2].at("ts") >= end_of(ends[1]));
    CHECK(ends[1].at("args").at("bytes") == 3e7);
    CHECK(ends[1].at("args").at("to_stage") == ends[2].at("args").at("stage"));
    CHECK(ends[1].at("cat") == "transfer");
    CHECK(ends[0].at("cat") == ends[2].at("cat"));
  }
}

TEST_CASE("memory starts at what is fixed, returns to it, and is never negative") {
  const auto run = test::run(kRequest);
  const Metrics metrics = measure(run.graph, run.timeline, run.platform);
  std::map<std::string, std::vector<std::pair<double, double>>> memory;
  for (const json& event : events_of(run)) {
    if (event.at("ph") == "C") {
      memory[event.at("name")].emplace_back(event.at("ts"), event.at("args").at("bytes"));
    }
  }
  REQUIRE(memory.size() == 3);
  for (std::size_t device = 0; device < 3; ++device) {
    const auto& steps = memory.at("memory " + run.platform.devices[device].name);
    double peak = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(steps[i].second >= 0);
      CHECK((i == 0 || steps[i].first > steps[i - 1].first));
      peak = std::max(peak, steps[i].second);
    }
    CHECK(steps.back().second == run.graph.fixed_memory[device].total().value);
    CHECK(peak == metrics.peak_memory[device].value);
  }
}

TEST_CASE("a ring of replicas shows on the links, without arrows through its joins") {
  const auto run = test::run(
      {.schedule = "accumulate", .ranks = 1, .micro_batches = 2, .bandwidth = 1e9, .weights = 3e8, .replicas = 3});
  const json events = events_of(run);
  int ring = 0;
  for (const json& event : events) {
    CHECK(event.at("ph") != "s");
    ring += event.at("name") == "all-reduce@0" ? 1 : 0;
    if (event.at("name") == "all-reduce@0") {
      CHECK(event.at("dur") == test::near(4.0 / 3 * 3e8 / 1e9 * 1e6)); // 2 (n-1)/n S / B
    }
  }
  CHECK(ring == 3 * 2 + 3); // each replica's way has two links, and each device a row of its own
}

TEST_CASE("times keep their nanoseconds; transfers that take no time are not shown") {
  const auto run = test::run({.ranks = 2, .micro_batches = 1, .forward = 123456.000000789, .backward = 2e-9});
  const json events = events_of(run);
  const auto slices = slices_of(events);
  REQUIRE(slices.size() == 2);
  const std::string text = chrome_trace(run.graph, run.timeline, run.platform);
  CHECK(text.find("\"ts\":0,\"dur\":123456000000.789,") != std::string::npos);
  CHECK(text.find("\"ts\":123456000000.789,\"dur\":123456000000.789,") != std::string::npos);
  CHECK(text.find("\"dur\":0.002,") != std::string::npos);
  CHECK(text == chrome_trace(run.graph, run.timeline, run.platform));
}

// Of three stages the middle one has two neighbours. Sends and receipts of a device may overlap, and then have two
// rows.
TEST_CASE("a transfer stands on the pipeline tracks of the devices at its ends", "[report][trace]") {
  const auto run = test::run(kRequest);
  const json events = events_of(run);
  const auto names = row_names(events);
  std::map<std::string, std::multiset<std::string>> found; // by transfer: the devices on whose tracks it stands
  for (const json& event : events) {
    if (event.at("ph") == "X" && event.at("pid") == 1 && event.at("cat") == "transfer") {
      const std::string& name = names.at(row_of(event));
      const std::size_t at = name.find(" pipeline");
      REQUIRE(at != std::string::npos);
      found[event.at("name").get<std::string>() + " " + event.at("args").at("iteration").dump()].insert(
          name.substr(0, at));
    }
  }
  CHECK(found.size() == 2 * 2 * 4 * 2); // iterations, boundaries, micro-batches, there and back
  const auto device = [&](int n) { return run.platform.devices[n].name; };
  CHECK(found.at("activation 3@0>1 0") == std::multiset<std::string>{device(0), device(1)});
  CHECK(found.at("gradient 2@2>1 1") == std::multiset<std::string>{device(1), device(2)});
}

// As in tests/schedule/exchange_tasks_test.cpp: exchanges from 1 to 4, 8 to 14 and 14 to 17 s, of which 1.5 s run
// beside computing.
TEST_CASE("exchanges of a group stand on the tensor tracks of its devices", "[report][trace]") {
  test::Chain world(KernelKind::normalization, 2);
  const PlanCost cost = cost_plan(world.problem, test::grouped({{0, 1, 2}}, {{0, 1}}, {2}));
  const Schedule schedule = test::schedule_of("1f1b", 1, 1);
  const auto trace = [&](ExchangeTasks exchanges) {
    const TaskGraph graph =
        make_task_graph({.cost = cost, .schedule = schedule, .router = world.router, .exchanges = exchanges});
    const ReplayRequest replay{graph, world.platform, 1};
    return json::parse(chrome_trace(graph, replay_analytic({&replay, 1}).front(), world.platform)).at("traceEvents");
  };
  const json tasks = trace(ExchangeTasks::all);
  const auto slices = slices_of(tasks);
  for (const Device& device : world.platform.devices) {
    CHECK(times_of(slices.at(device_row(tasks, device.name + " tensor"))) == Times{{1, 4}, {8, 14}, {14, 17}});
    CHECK(times_of(slices.at(device_row(tasks, device.name))).front() == std::pair(0.0, 1.0));
  }
  const json parts = trace(ExchangeTasks::none);
  for (const auto& [row, name] : row_names(parts)) {
    CHECK(name.find(" tensor") == std::string::npos);
  }
  const std::vector<json> computations = slices_of(parts).at(device_row(parts, world.platform.devices[0].name));
  CHECK(computations.at(0).at("args").at("exposed_exchange_us") == 3e6);
  CHECK_FALSE(computations.at(0).at("args").contains("hidden_exchange_us"));
  CHECK(computations.at(1).at("args").at("exposed_exchange_us") == 7.5e6); // 6 + 3 - 1.5
  CHECK(computations.at(1).at("args").at("hidden_exchange_us") == 1.5e6);
}

TEST_CASE("a reduction stands on the data track of each replica, or of all together where they are many",
          "[report][trace]") {
  const auto rows_of = [](int replicas) {
    const auto run =
        test::run({.schedule = "accumulate", .ranks = 1, .bandwidth = 1e9, .weights = 3e8, .replicas = replicas});
    const json events = events_of(run);
    const auto slices = slices_of(events);
    std::vector<std::string> names;
    for (const auto& [row, name] : row_names(events)) {
      if (name.ends_with(" data")) {
        REQUIRE(slices.at(row).size() == 1);
        CHECK(slices.at(row).front().at("name") == "all-reduce@0");
        names.push_back(name);
      }
    }
    return names;
  };
  CHECK(rows_of(2) == std::vector<std::string>{"node/x-0 data", "node/x-1 data"});
  CHECK(rows_of(64).size() == 64);
  CHECK(rows_of(65) == std::vector<std::string>{"node/x-0, node/x-1 … node/x-64 (65) data"});
}
