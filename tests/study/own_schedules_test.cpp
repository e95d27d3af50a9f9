// Schedules from files beside the named ones: what they give, when they do not fit, what they are called, and which
// files are refused.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "sim/analysis/judge.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/keys/input_files.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

std::string orders_of(std::string_view schedule, int chunks = 1) {
  const auto& row = find_by_name(schedules(), schedule, "schedule", {});
  return to_csv(std::get<Schedule>(make_schedule(row, {.ranks = 2, .micro_batches = 4, .chunks = chunks})));
}

// A folder with schedule files for two devices and four micro-batches, beside which studies of the chain lie.
class OwnFolder {
public:
  OwnFolder() : path_(fs::temp_directory_path() / ("stagecraft-own-" + std::to_string(getpid()))) {
    fs::create_directories(path_ / "other");
    write("mine.csv", orders_of("1f1b"));
  }
  ~OwnFolder() { fs::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  void write(const std::string& name, const std::string& text) const { write_file(path_ / name, text); }
  fs::path file(const std::string& name) const { return path_ / name; }
  Folders folders() const { return {path_, kRoot}; }

  Study study(const std::string& compare, const std::string& micro_batches = "4") const {
    return load_study(yaml::parse("model: " + (kRoot / "tests/study/chain.yaml").string() +
                                      "\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: " +
                                      micro_batches + "}\ncompare: {" + compare + "}\n",
                                  "study.yaml"),
                      folders(), {});
  }

  std::string error_of_schedules(const std::string& schedules) const {
    return error_of([&] { study("strategies: uniform, schedules: " + schedules); });
  }

  std::vector<std::string> names(const std::string& schedules) const {
    std::vector<std::string> found;
    for (const StudySchedule& one : study("strategies: uniform, schedules: " + schedules).schedules) {
      found.emplace_back(one.name());
    }
    return found;
  }

private:
  fs::path path_;
};

Comparison compared(const Study& study) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  return compare(memo).comparison;
}

TEST_CASE("an own schedule with the orders of a named one gives exactly its figures, for every strategy", "[study]") {
  const OwnFolder folder;
  const Comparison comparison = compared(folder.study(
      "strategies: [uniform, optimal, dapple, by-hand, mcmc, dynamic, best-known], schedules: [mine.csv, 1f1b]"));
  REQUIRE(comparison.runs.size() == 14);
  for (const Run& run : comparison.runs) {
    INFO(run.strategy << " " << run.schedule << " " << run.why_not);
    const Run& named = find_run(comparison, run.strategy, "1f1b", 4);
    CHECK(run.feasible == named.feasible);
    CHECK(run.metrics.iteration == named.metrics.iteration);
    CHECK(run.estimate == named.estimate);
    CHECK(run.order == run.schedule);
  }
  // Two stages of F 2 s and B 4 s a sample, four samples, transfers without time: (4 + 2 - 1) * (2 + 4) s.
  const Run& mine = find_run(comparison, "uniform", "mine", 4);
  REQUIRE(mine.feasible);
  CHECK(mine.metrics.iteration.value == near(30));
  CHECK(comparison.runs.front().schedule == "mine"); // equal runs stand in the order of the list
}

TEST_CASE("an own schedule for other numbers of stages or micro-batches is infeasible and says so", "[study]") {
  const OwnFolder folder;
  const Comparison comparison =
      compared(folder.study("strategies: [single, uniform, eft], schedules: [1f1b, mine.csv]", "[4, 2]"));
  REQUIRE(comparison.runs.size() == 12);
  CHECK(find_run(comparison, "uniform", "mine", 4).feasible);
  CHECK(find_run(comparison, "single", "mine", 4).why_not ==
        "the schedule is for 2 stages and 4 micro-batches, the plan has 1 stages and 4 micro-batches");
  CHECK(find_run(comparison, "uniform", "mine", 2).why_not == "the schedule is for 4 micro-batches, the run has 2");
  CHECK(find_run(comparison, "uniform", "1f1b", 2).feasible);
  CHECK(find_run(comparison, "eft", "1f1b", 4).order == "list"); // never in place of orders that were given
  CHECK_THAT(find_run(comparison, "eft", "mine", 4).why_not, Contains("the plan has 4 stages"));
}

TEST_CASE("an own schedule places several stages on a device in turn or in a V, as its orders do", "[study]") {
  const OwnFolder folder;
  folder.write("turn.csv", orders_of("interleaved", 2));
  folder.write("v.csv", orders_of("hanayo", 2));
  const Comparison comparison =
      compared(folder.study("strategies: uniform, schedules: [interleaved, hanayo, turn.csv, v.csv]"));
  for (const auto& [own, named] : {std::pair{"turn", "interleaved"}, {"v", "hanayo"}}) {
    const Run& run = find_run(comparison, "uniform", own, 4);
    INFO(own << ": " << run.why_not);
    REQUIRE(run.feasible);
    CHECK(run.stages.size() == 4);
    CHECK(run.metrics.iteration == find_run(comparison, "uniform", named, 4).metrics.iteration);
  }
}

TEST_CASE("schedules that tell a planner the same share its plan, own ones too", "[study]") {
  const OwnFolder folder;
  const Study study = folder.study("strategies: [uniform], schedules: [1f1b, mine.csv]");
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  compare(memo);
  CHECK(memo.plans.plannings() == 1);
}

TEST_CASE("an own schedule is called by its file's stem, with as much of its path as makes it unique", "[study]") {
  const OwnFolder folder;
  folder.write("other/mine.csv", orders_of("gpipe"));
  folder.write("gpipe.csv", orders_of("1f1b"));
  folder.write("list.csv", orders_of("1f1b")); // `list` is what a run's order says where no schedule could run
  CHECK(folder.names("[mine.csv, other/mine.csv, gpipe, gpipe.csv, list.csv]") ==
        std::vector<std::string>{"mine", "mine (mine.csv)", "gpipe", "gpipe (gpipe.csv)", "list (list.csv)"});
  CHECK(folder.names("mine.csv") == std::vector<std::string>{"mine"});
  CHECK(folder.names("[" + folder.file("mine.csv").string() + "]") == std::vector<std::string>{"mine"}); // as given
  std::vector<std::string> all = names_of(schedules());
  all.emplace_back("mine");
  CHECK(folder.names("[all, mine.csv]") == all);
}

TEST_CASE("a schedule that is neither a name nor a file, twice there or unable to run is refused", "[study]") {
  const OwnFolder folder;
  CHECK_THAT(folder.error_of_schedules("[1f1b, gpip]"),
             StartsWith("study.yaml:4:50: unknown schedule 'gpip'; did you mean 'gpipe'?") &&
                 Contains("or a schedule file"));
  CHECK(
      folder.error_of_schedules("[mien.csv]") ==
      "study.yaml:4:44: no such schedule file 'mien.csv' in the study's folder or as given; did you mean 'mine.csv'?");
  CHECK_THAT(folder.error_of_schedules("[other]"), Contains("unknown schedule 'other'")); // a folder is no file
  CHECK_THAT(folder.error_of_schedules("[mine.csv, other/../mine.csv]"), Contains("lists 'other/../mine.csv' twice"));
  CHECK_THAT(folder.error_of_schedules("[all, gpipe]"), Contains("lists 'gpipe' twice"));
  CHECK_THAT(folder.error_of_schedules("[]"), Contains("'schedules' is an empty list"));
  folder.write("token.csv", "F0@0,\nF0@1,G0@1\n");
  CHECK_THAT(folder.error_of_schedules("token.csv"), Contains("token.csv:2:6: 'G0@1' is no task"));
  folder.write("stuck.csv", "F0@0,B0@0\n\nB0@1,F0@1\n");
  CHECK_THAT(folder.error_of_schedules("stuck.csv"),
             Contains("stuck.csv:3:1: the schedule cannot run: deadlock: B0@1 on rank 1 waits for F0@1"));
}

TEST_CASE("planners are judged under an own schedule as under the named one of the same orders", "[study][judge]") {
  const OwnFolder folder;
  const auto judged = [&](const std::string& schedule) {
    const std::string text = "judge: {models: [" + (kRoot / "tests/study/chain.yaml").string() +
                             "], platforms: [{devices: 2}], planners: [uniform, single], schedule: " + schedule +
                             "}\ntraining: {global_batch: 4, micro_batches: [2, 4]}\n";
    return judge(load_judge_study(yaml::parse(text, "judge.yaml"), folder.folders(), {}));
  };
  const Judgement own = judged("mine.csv");
  CHECK(own.schedule == "mine");
  REQUIRE(own.plans.size() == 2);
  CHECK(own.plans[0].micro_batches == 4); // the number that the schedule is for
  CHECK(own.plans[0].iteration == judged("1f1b").plans[0].iteration);
  CHECK_THAT(own.plans[1].why_not, StartsWith("the schedule is for 2 stages"));
  CHECK_THAT(error_of([&] { judged("mien.csv"); }), Contains("did you mean 'mine.csv'?"));
}

TEST_CASE("the file of an own schedule is one of those that a study read, each time it is", "[study]") {
  const OwnFolder folder;
  InputFiles files;
  Folders kept = folder.folders();
  kept.files = &files;
  const yaml::Node document =
      yaml::parse("model: " + (kRoot / "tests/study/chain.yaml").string() +
                      "\nplatform: {devices: 2}\ncompare: {strategies: uniform, schedules: mine.csv}\n",
                  "study.yaml");
  for (int time = 0; time < 2; ++time) {
    files.forget_asked();
    load_study(document, kept, {});
    CHECK(files.asked().contains(folder.file("mine.csv")));
  }
}

} // namespace
} // namespace stagecraft::test
