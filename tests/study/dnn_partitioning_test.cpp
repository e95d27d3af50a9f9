// Problems of dnn-partitioning from file to plan: the max-loads that its authors' program prints.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// 1 -> {2, 3} -> 4 of 1, 2, 2 and 1 ms, every output 0.5 ms on the wire; a CPU takes ten times as long.
const std::string kDiamond = R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
  {"id": 1, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1, "isBackwardNode": 0, "size": 10},
  {"id": 2, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "size": 10},
  {"id": 3, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "size": 10},
  {"id": 4, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1, "isBackwardNode": 0, "size": 10}], "edges": [
  {"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 1, "destId": 3, "cost": 0.5},
  {"sourceId": 2, "destId": 4, "cost": 0.5}, {"sourceId": 3, "destId": 4, "cost": 0.5}]})";

// A file in a temporary folder.
class File {
public:
  explicit File(const std::string& text) {
    std::string name = (fs::temp_directory_path() / "stagecraft-study-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    write_file(path(), text);
  }
  ~File() { fs::remove_all(folder_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  fs::path path() const { return folder_ / "problem.json"; }

private:
  fs::path folder_;
};

double max_load_ms(const Study& read, std::string_view strategy) {
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const PlanResult result = plan_scenario(memo, {.strategy = &find_by_name(strategies(), strategy, "strategy", {}),
                                                 .schedule = &find_by_name(schedules(), "1f1b", "schedule", {}),
                                                 .micro_batches = 1})
                                .result;
  REQUIRE(std::holds_alternative<Plan>(result));
  REQUIRE(std::get<Plan>(result).objective.has_value());
  CHECK(std::get<Plan>(result).objective->name == "max-load");
  return std::get<Plan>(result).objective->value.value * 1e3;
}

Study problem(const fs::path& file, const std::string& more = "") {
  return study("model: " + (more.empty() ? file.string() : "{file: " + file.string() + ", " + more + "}") + "\n");
}

TEST_CASE("a problem needs no platform: it brings its devices", "[study][dnn-partitioning]") {
  // {1, 2} | {3, 4}: 3 ms and two tensors of 0.5 ms on either side. With costs ten times as high nothing is gained by a
  // second device: 6 ms.
  const File file(kDiamond);
  const Study read = problem(file.path());
  CHECK(read.platform.name == "2 x fpga");
  CHECK(max_load_ms(read, "ideal") == near(4));
  CHECK(max_load_ms(read, "ideal-linear") == near(4));
  CHECK(max_load_ms(problem(file.path(), "cost_scale: 10"), "ideal") == near(6));
  CHECK(max_load_ms(problem(file.path(), "cost_scale: 0.1"), "ideal") == near(3.1));
}

TEST_CASE("memory of a problem is the sum of sizes", "[study][dnn-partitioning]") {
  // Ten bytes a node, and tensors of 5 ms that make every cut dear: all on one device where it has room, else
  // {1} | {2, 3, 4}, 5 ms and one tensor; where two are the most {1, 2} | {3, 4}, 3 ms and two tensors.
  const auto load = [](const std::string& memory, const std::string& cost) {
    std::string text = kDiamond;
    text.replace(text.find("100"), 3, memory);
    for (std::size_t at = text.find(": 0.5"); at != std::string::npos; at = text.find(": 0.5")) {
      text.replace(at, 5, ": " + cost);
    }
    const File file(text);
    return max_load_ms(problem(file.path()), "ideal");
  };
  CHECK(load("40", "5") == near(6));
  CHECK(load("39", "5") == near(5 + 5));
  CHECK(load("30", "5") == near(5 + 5));
  CHECK(load("29", "5") == near(3 + 10));
}

TEST_CASE("all strategies and the replay run on a problem", "[study][dnn-partitioning]") {
  const File file(kDiamond);
  const ComparisonResult result =
      compare_text("model: " + file.path().string() + "\ncompare: {strategies: all, schedules: [1f1b, gpipe]}\n");
  for (const Run& run : result.comparison.runs) {
    CAPTURE(run.strategy, run.why_not);
    const bool without_work = run.strategy == "capability" || run.strategy == "capability-refined";
    CHECK((run.feasible || without_work)); // they split by FLOPs, of which a profile knows none
  }
}

TEST_CASE("a device name is refused where the model's file names the devices", "[study][dnn-partitioning]") {
  const File file(kDiamond);
  CHECK_THAT(error_of([&] { problem(file.path(), "device: a100"); }),
             Catch::Contains("the file itself names the devices"));
}

TEST_CASE("max-loads of dnn-partitioning's problems are those of its authors' program", "[study][dnn-partitioning]") {
  const fs::path folder = kRoot / "../shared/data/dnn-partitioning";
  if (!fs::exists(folder)) {
    WARN("skipped: " << folder.string() << " is absent");
    return;
  }
  const auto expected = nlohmann::json::parse(read_file(folder / "expected_maxload.json")).at("results");
  int checked = 0;
  for (const char* kind : {"LayerGraphs", "OperatorGraphs"}) {
    for (const auto& entry : fs::directory_iterator(folder / "throughput-inputs" / kind)) {
      const std::string name = kind + ("_" + entry.path().stem().string());
      INFO(name);
      REQUIRE(expected.contains(name));
      const auto& figures = expected.at(name);
      const Study read = problem(entry.path());
      for (const auto& [strategy, key] : {std::pair("ideal", "dp"), std::pair("ideal-linear", "linearize")}) {
        CHECK(max_load_ms(read, strategy) == near(figures.at(key).get<double>()));
        ++checked;
      }
    }
  }
  CHECK(checked == 16);
}

} // namespace
} // namespace stagecraft::test
