// Own schedules in sweeps: conditions name them, and the results keep their files for a replay elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/schedule/format/schedule_file.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "tests/base/folder.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using test::error_of;

// A study's folder with two schedule files of one stem, which are those of 1f1b and gpipe on two devices.
struct Fixture {
  Fixture() {
    fs::create_directories(study() / "other");
    fs::copy(test::kRoot / "tests/study/chain.yaml", study() / "chain.yaml");
    for (const auto& [file, schedule] : {std::pair{"mine.csv", "1f1b"}, {"other/mine.csv", "gpipe"}}) {
      const auto& row = find_by_name(schedules(), schedule, "schedule", {});
      write_file(study() / file, to_csv(std::get<Schedule>(make_schedule(row, {.ranks = 2, .micro_batches = 4}))));
    }
  }

  fs::path study() const { return folder / "study"; }
  fs::path results() const { return folder / "a.sqlite"; }

  std::vector<PointRow> run(const std::string& more, const std::string& schedules) const {
    InputFiles files;
    const SweepInputs inputs{load_sweep(yaml::parse("model: chain.yaml\nplatform: {devices: 2}\n"
                                                    "training: {global_batch: 4, micro_batches: 4}\n"
                                                    "compare: {strategies: uniform, schedules: " +
                                                        schedules + "}\n" + more,
                                                    "study.yaml"),
                                        {}),
                             {},
                             {study(), test::kRoot, &files}};
    SweepPoints points(inputs, "test");
    SweepStore store(results(), SweepStore::Mode::write);
    run_sweep(points, store, {});
    std::vector<PointRow> rows;
    store.for_each([&](const PointRow& row) { rows.push_back(row); });
    return rows;
  }

  test::Folder folder;
};

// Whether all figures are the same; one that neither has is NaN.
bool same(const Figures& one, const Figures& other) {
  return std::equal(one.begin(), one.end(), other.begin(),
                    [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

TEST_CASE("a point under an own schedule is replayed from what the results keep", "[study][sweep]") {
  const Fixture fixture;
  const std::string at_axis = GENERATE("", "  compare.schedules: [mine.csv, other/mine.csv, 1f1b]\n");
  const std::vector<PointRow> rows =
      fixture.run("sweep:\n  platform.latency: [1 ms]\n" + at_axis, "[mine.csv, other/mine.csv, 1f1b]");
  REQUIRE(rows.size() == 3);
  fs::rename(fixture.study(), fixture.folder / "gone"); // another machine
  SweepStore store(fixture.results(), SweepStore::Mode::read);
  for (const PointRow& row : rows) {
    INFO(row.schedule);
    REQUIRE(row.status == PointStatus::feasible);
    const fs::path folder = fixture.folder / to_text(row.key);
    fs::create_directories(folder);
    const ReplayedPoint again = replay_point(store.find(to_text(row.key)), folder);
    CHECK(same(again.result.figures, row.figures));
    CHECK(again.prepared.run.schedule == row.schedule);
  }
  CHECK(rows[0].schedule == "mine");
  CHECK(same(rows[0].figures, rows[2].figures)); // it has the orders of 1f1b
  CHECK(rows[1].schedule == (at_axis.empty() ? "mine (mine.csv)" : "mine"));
}

TEST_CASE("other bytes of an own schedule make other points", "[study][sweep]") {
  const Fixture fixture;
  const std::string sweep = "sweep: {platform.latency: [1 ms]}\n";
  CHECK(fixture.run(sweep, "mine.csv").size() == 1);
  CHECK(fixture.run(sweep, "mine.csv").size() == 1);
  fs::copy(fixture.study() / "other/mine.csv", fixture.study() / "mine.csv", fs::copy_options::overwrite_existing);
  CHECK(fixture.run(sweep, "mine.csv").size() == 2);
}

TEST_CASE("a condition names own schedules where a study has some", "[study][sweep]") {
  const Fixture fixture;
  const auto where = [&](const std::string& name, const std::string& schedules) {
    return fixture.run("sweep: {platform.latency: [1 ms], where: [\"schedule == '" + name + "'\"]}\n", schedules);
  };
  CHECK_THAT(error_of([&] { where("mine", "[1f1b, gpipe]"); }), Catch::Contains("unknown schedule 'mine'"));
  const std::vector<PointRow> rows = where("mine", "[1f1b, mine.csv]");
  REQUIRE(rows.size() == 1);
  CHECK(rows.front().schedule == "mine");
}

} // namespace
} // namespace stagecraft
