// Validation on measured pipelines: a small folder whose every number follows from a law, and the real data where it
// is.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/validate/validators.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("stagecraft-perseus-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

// Two stages, one micro-batch: F0, exchange, F1, B1, exchange, B0. Times at c GHz: F = 1/c and 2/c, B = 2/c and 4/c s;
// 0.5 s of loading and 0.25 s for an exchange at every clock: T = 9/c + 1. A GPU draws 300 c^1.5 W busy and 100 W
// blocked.
struct Law {
  double clock;
  double busy(int rank) const { return (rank == 0 ? 3 : 6) / clock; }
  double seconds() const { return 9 / clock + 1; }
  double joules(int rank) const { return 300 * std::pow(clock, 1.5) * busy(rank) + 100 * (seconds() - busy(rank)); }
};

std::string run_line(const std::string& plan, const std::string& kind, double clock) {
  const Law law{clock};
  const auto text = [](double value) { return std::to_string(value); };
  return "two,G,2,1,2,1,1," + plan + "," + kind + ",10," + text(law.seconds()) + "," +
         text(law.joules(0) + law.joules(1)) + "," + text(law.joules(0)) + ";" + text(law.joules(1)) + "," +
         text(law.busy(0)) + ";" + text(law.busy(1)) + "\n";
}

struct Files {
  std::string runs = "config,gpu,n_gpus,dp,pp,tp,num_micro_batches,plan,kind,n_iterations,iter_time_mean_s,"
                     "energy_total_mean_j,energy_per_rank_j,compute_per_rank_s\n";
  std::string stages = "config,stage,instruction,freq_mhz,scope,n,time_mean_s\n";
  std::string plans = "config,plan,stage,instruction,knob,runs\n";

  Files() {
    for (const int stage : {0, 1}) {
      for (const int clock : {400, 500, 800, 1000}) {
        for (const int backward : {0, 1}) {
          const double seconds = (backward + 1) * (stage + 1) * 1000.0 / clock;
          stages += "two," + std::to_string(stage) + (backward != 0 ? ",backward," : ",forward,") +
                    std::to_string(clock) + (clock == 1000 ? ",baseline,10," : ",all_plans,10,") +
                    std::to_string(seconds) + "\n";
        }
      }
      stages += "two," + std::to_string(stage) + ",load,,baseline,10," + (stage == 0 ? "0.5\n" : "0\n");
    }
    add("perseus:1", "baseline_maxfreq", 1000);
    add("envpipe:1", "baseline_maxfreq", 1000);
    add("perseus:2", "plan_perseus", 500);
    add("perseus:3", "plan_perseus", 800);
    add("perseus:4", "plan_perseus", 400);
  }

  void add(const std::string& plan, const std::string& kind, int clock) {
    runs += run_line(plan, kind, clock / 1000.0);
    for (const char* stage : {"0", "1"}) {
      for (const char* instruction : {"forward", "backward"}) {
        plans += "two," + plan + "," + stage + "," + instruction + ",freq_mhz," + std::to_string(clock) + "x1\n";
      }
    }
  }

  Validation validate() const {
    const Folder folder;
    write_file(folder.path / "runs.csv", runs);
    write_file(folder.path / "stages.csv", stages);
    write_file(folder.path / "plans.csv", plans);
    return stagecraft::validate(folder.path);
  }
};

TEST_CASE("runs that follow the law are predicted as the law says", "[study][validate]") {
  const Validation validation = Files().validate();
  constexpr double kFitted = 1e-4; // a search on grids, figures of six decimals
  REQUIRE(validation.rows.size() == 8);
  for (const ValidationRow& row : validation.rows) {
    INFO(row.case_name << " " << row.metric);
    CHECK(std::abs(row.error()) < kFitted);
  }
  CHECK(validation.rows[0].case_name == "two/envpipe:1");
  CHECK(validation.rows[0].group == "full clock");
  CHECK(validation.rows[1].metric == "energy_joules");
  CHECK(validation.rows[1].measured == Approx(300 * 9 + 100 * (2 * 10 - 9)));
  CHECK(validation.rows[2].group == "reduced clocks");
  REQUIRE(validation.skipped.size() == 1);
  CHECK(validation.skipped[0].case_name == "two/perseus:1");
  CHECK(validation.baselines.size() == 2);
}

// The same law on other GPUs of the type, whose rows have the reference's clocks and instruction times.
std::string of_configuration(std::string rows, const std::string& name) {
  for (std::size_t at = rows.find("\ntwo,"); at != std::string::npos; at = rows.find("\ntwo,", at + 1)) {
    rows.replace(at + 1, 3, name);
  }
  return rows.substr(rows.find('\n') + 1);
}

TEST_CASE("each configuration takes its power from its own reference, or from the nearest one with its spread",
          "[study][validate]") {
  Files files;
  const Files one;
  files.runs += of_configuration(one.runs, "own");
  files.stages += of_configuration(one.stages, "own");
  files.plans += of_configuration(one.plans, "own");
  std::string without = of_configuration(one.runs, "lone");
  const std::size_t reference = without.find("lone,G,2,1,2,1,1,perseus:1,");
  without.erase(reference, without.find('\n', reference) + 1 - reference);
  files.runs += without;
  files.stages += of_configuration(one.stages, "lone");
  files.plans += of_configuration(one.plans, "lone");
  const Validation validation = files.validate();
  constexpr double kFitted = 1e-4;
  int borrowed = 0;
  for (const ValidationRow& row : validation.rows) {
    INFO(row.case_name << " " << row.metric << " " << row.group);
    CHECK(std::abs(row.error()) < kFitted); // the law is the same everywhere
    const bool lone = row.case_name.starts_with("lone/") && row.metric == "energy_joules";
    CHECK(lone == row.group.ends_with(", power of another configuration"));
    borrowed += lone ? 1 : 0;
  }
  CHECK(borrowed == 4); // none is skipped
  CHECK_THAT(
      join(validation.notes, "\n"),
      Catch::Contains("own: 300.0 W busy and 100.0 W blocked, from own/perseus:1.") &&
          Catch::Contains("lone: 300.0 W busy and 100.0 W blocked, from two/perseus:1, as it has no reference of "
                          "its own: energies may be off by 3.0 %."));
}

TEST_CASE("a GPU type without any reference takes what is stated of it, or is skipped with the reason",
          "[study][validate]") {
  const auto validated = [](const std::string& gpu) {
    Files files;
    files.runs.erase(files.runs.find("two,G,"),
                     files.runs.find('\n', files.runs.find("two,G,")) + 1 - files.runs.find("two,G,")); // perseus:1
    for (std::size_t at = files.runs.find("two,G,"); at != std::string::npos; at = files.runs.find("two,G,", at)) {
      files.runs.replace(at, 6, "two," + gpu + ",");
    }
    return files.validate();
  };
  const Validation stated = validated("A40");
  CHECK_THAT(join(stated.notes, "\n"),
             Catch::Contains("two: 297.0 W busy and 124.0 W blocked, from what is stated of A40"));
  CHECK(stated.skipped.empty());
  const Validation unknown = validated("H");
  REQUIRE(unknown.skipped.size() == 4);
  CHECK_THAT(unknown.skipped[0].why,
             Catch::Contains("no run 'perseus:1' on H to take powers from, and none is stated"));
}

TEST_CASE("a run's own time does not enter its prediction", "[study][validate]") {
  const auto prediction = [](const Files& files) { return files.validate().rows[2].predicted; };
  Files files;
  const double before = prediction(files);
  const std::string line = run_line("perseus:2", "plan_perseus", 0.5);
  std::string slower = line;
  slower.replace(slower.find(",19.000000,"), 11, ",29.000000,");
  files.runs.replace(files.runs.find(line), line.size(), slower);
  CHECK(prediction(files) == before);
}

TEST_CASE("figures that the data cannot give are skipped with a reason", "[study][validate]") {
  Files files;
  files.runs += run_line("perseus:9", "plan_perseus", 0.5); // no clocks
  const Validation validation = files.validate();
  CHECK(validation.rows.size() == 8);
  REQUIRE(validation.skipped.size() == 2);
  CHECK(validation.skipped[1].case_name == "two/perseus:9");
  CHECK_THAT(validation.skipped[1].why, Catch::Contains("plans.csv has no clock for the forward of stage 0"));
}

TEST_CASE("malformed measurements are refused with their place", "[study][validate][bad-input]") {
  const auto refused = [](const std::function<void(Files&)>& spoil, const std::string& why) {
    Files files;
    spoil(files);
    CHECK_THROWS_WITH(files.validate(), Catch::Contains(why));
  };
  const auto replace = [](std::string& text, const std::string& old, const std::string& with) {
    text.replace(text.find(old), old.size(), with);
  };
  refused([](Files& f) { f.runs = ""; }, "runs.csv:1:1: an empty file");
  refused([&](Files& f) { replace(f.runs, "n_gpus", "gpus"); }, "runs.csv:1:1: no column 'n_gpus'");
  refused([&](Files& f) { replace(f.runs, "two,G,2,1", "two,G,3,1"); }, "runs.csv:2:7: 'n_gpus' is not dp x pp x tp");
  refused([&](Files& f) { replace(f.runs, "10.000000", "0"); }, "is not above 0");
  refused([&](Files& f) { replace(f.runs, "3.000000;6.000000", "3.000000"); },
          "1 values; allowed: one for each of 2 GPUs");
  refused([](Files& f) { f.runs += run_line("perseus:4", "plan_perseus", 0.4); }, "a second run of 'two/perseus:4'");
  refused([&](Files& f) { replace(f.stages, "forward", "sideward"); }, "stages.csv:2:7: 'sideward' is no instruction");
  refused([&](Files& f) { replace(f.stages, "all_plans", "some"); }, "'some' is no scope");
  refused([&](Files& f) { replace(f.plans, "1000x1", "1000"); },
          "plans.csv:2:34: '1000' is not of the form VALUExCOUNT");
  refused([&](Files& f) { replace(f.plans, "1000x1", "1000x2"); }, "2 micro-batches; allowed: 1");
  refused([&](Files& f) { replace(f.plans, "freq_mhz", "volts"); }, "'volts' is no knob");
  refused([](Files& f) { f.stages += "two,7,load,,baseline,10,1\n"; },
          "stages.csv: 'two' has times of stage 7, but none of stage 2");
}

// Each of these would ask for gigabytes in a few thousand letters.
TEST_CASE("measurements that would take much memory are refused before they do", "[study][validate][bad-input]") {
  Files repeated;
  for (int part = 0; part < 100'000; ++part) {
    repeated.plans += part == 0 ? "two,perseus:1,0,forward,freq_mhz,1x65536" : ";1x65536";
  }
  repeated.plans += "\n";
  CHECK_THROWS_WITH(repeated.validate(), Catch::Contains("65536 micro-batches; allowed: 1, as the run has"));
  Files large;
  const std::string one = run_line("p", "plan", 0.5), begin = "two,G,2,1,2,1,";
  REQUIRE(one.starts_with(begin + "1,"));
  for (int run = 0; run < 128; ++run) { // of 2 * 65536 each: 2^24, and 10 of the others
    large.runs += begin + "65536," + std::to_string(run) + one.substr(begin.size() + 2);
  }
  CHECK_THROWS_WITH(large.validate(), Catch::Contains("the runs up to here have 16777226 micro-batches on all stages; "
                                                      "allowed: at most 16777216"));
}

TEST_CASE("a path without measured runs is refused", "[study][validate][bad-input]") {
  CHECK_THROWS_WITH(validate("/nonexistent"), Catch::Contains("no such file or folder"));
  CHECK_THROWS_WITH(validate(test::source_dir()), Catch::Contains("no measured runs of a known kind"));
}

TEST_CASE("measured pipelines are predicted within the limits", "[study][validate]") {
  const fs::path folder = test::source_dir() / "../shared/data/perseus";
  if (!fs::exists(folder)) {
    std::cout << "skipped: no " << folder << "\n";
    return;
  }
  const Validation validation = validate(folder);
  int slow = 0;
  std::vector<ValidationRow> times;
  for (const ValidationRow& row : validation.rows) {
    const bool full = row.group == "full clock";
    INFO(row.case_name << " " << row.metric << " " << row.error());
    if (row.metric == "energy_joules") {
      CHECK(std::abs(row.error()) <= (full ? 0.04 : 0.08));
    } else {
      times.push_back(row);
      CHECK((!full || std::abs(row.error()) <= 0.05));
      slow += std::abs(row.error()) > 0.05 ? 1 : 0;
    }
  }
  CHECK(times.size() >= 36);
  CHECK(slow <= 1); // EnvPipe's plan on eight A40: docs/validation/clocks.md
  CHECK(accuracy_of(times).mape <= 0.01);
  for (const auto& [name, rows] : validation.baselines) {
    INFO(name);
    CHECK(accuracy_of(rows).mape > 4 * accuracy_of(validation.rows).mape);
  }
}

} // namespace
} // namespace stagecraft
