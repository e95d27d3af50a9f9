// Results that a stranger made or changed: nothing is written or read elsewhere, and whatever is no file of ours is
// refused with file, table and row.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/base/system/file.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "sim/sweep/store/read_sweep_results.hpp"
#include "sim/sweep/store/sweep_tables.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using test::error_of;

// A sweep of one point whose model lies beside its study, and its results.
struct Fixture {
  Fixture() {
    std::string name = (fs::temp_directory_path() / "stagecraft-foreign-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    file = folder / "a.sqlite";
    fs::create_directories(folder / "study");
    fs::copy(test::kRoot / "tests/study/chain.yaml", folder / "study" / "mine.yaml");
    InputFiles files;
    const SweepInputs inputs{load_sweep(yaml::parse("model: {file: mine.yaml, device: v100-sxm2-16gb}\n"
                                                    "platform: mixed-v100-p100\n"
                                                    "training: {global_batch: 4, micro_batches: 4}\n"
                                                    "compare: {strategies: uniform, schedules: 1f1b}\n"
                                                    "sweep: {platform.network.bandwidth: [1 GB/s]}\n",
                                                    "study.yaml"),
                                        {}),
                             {},
                             {folder / "study", test::kRoot, &files}};
    SweepPoints points(inputs, "test");
    SweepStore store(file, SweepStore::Mode::write);
    run_sweep(points, store, {});
    store.for_each([&](const PointRow& row) { key = to_text(row.key); });
  }
  ~Fixture() { fs::remove_all(folder); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  SweepStore::Found found() const { return SweepStore(file, SweepStore::Mode::read).find(key); }

  void change(const std::string& words) const {
    SqliteFile own(file, SqliteFile::Mode::write, sweep_format());
    own.execute(words);
  }

  // All files below the folder, by their paths.
  std::set<std::string> files() const {
    std::set<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      paths.insert(entry.path().lexically_relative(folder).string());
    }
    return paths;
  }

  fs::path folder, file;
  std::string key;
};

TEST_CASE("a path in foreign results leads nowhere but into the folder of its replay", "[study][sweep]") {
  const Fixture fixture;
  const SweepStore::Found good = fixture.found();
  const std::string shipped = good.sweep.shipped_folder;
  int number = 0;
  for (const std::string& path : {shipped + "/a/../../../escape",
                                  shipped + "/../escape",
                                  shipped + "/./../escape",
                                  std::string("../escape"),
                                  std::string("escape"),
                                  std::string("../../escape"),
                                  std::string("/"),
                                  std::string(""),
                                  std::string("."),
                                  std::string(".."),
                                  shipped,
                                  shipped + "/",
                                  shipped + "/platforms/",
                                  shipped + "/platforms/..",
                                  shipped + "/platforms/../../../../../escape",
                                  fixture.folder.string() + "/study/../../escape",
                                  fixture.folder.string() + "/escape",
                                  std::string("/etc/escape"),
                                  std::string("//etc//escape"),
                                  std::string("/a\0b/escape", 11),
                                  std::string("/tmp/a\nb"),
                                  std::string("C:\\escape")}) {
    INFO(path);
    SweepStore::Found bad = good;
    bad.files.push_back({path, {}, "stranger"});
    const fs::path folder = fixture.folder / "replays" / std::to_string(number++);
    fs::create_directories(folder);
    const std::set<std::string> before = fixture.files();
    const std::string why = error_of([&] { replay_point(bad, folder); });
    CHECK((why.empty() || why.starts_with(fixture.file.string() + ": table files: the path '")));
    for (const std::string& after : fixture.files()) {
      CHECK((before.contains(after) || after.starts_with("replays/" + std::to_string(number - 1) + "/")));
    }
    CHECK_FALSE(fs::exists("/etc/escape"));
    CHECK_FALSE(fs::exists(fs::path(shipped).parent_path() / "escape"));
  }
}

TEST_CASE("a study in foreign results reads no file that the results do not hold", "[study][sweep]") {
  const Fixture fixture;
  SweepStore::Found found = fixture.found();
  write_file(fixture.folder / "secret.yaml", read_file(test::kRoot / "tests/study/chain.yaml"));
  const auto replayed = [&](const std::string& model) {
    found.sweep.document = "{model: {file: '" + model +
                           "', device: v100-sxm2-16gb}, platform: mixed-v100-p100, training: "
                           "{global_batch: 4, micro_batches: 4}, compare: {strategies: uniform, schedules: 1f1b}}";
    const fs::path folder = fixture.folder / "replay";
    fs::remove_all(folder);
    fs::create_directories(folder);
    return error_of([&] { replay_point(found, folder); });
  };
  CHECK(replayed("mine.yaml").empty());
  CHECK_THAT(replayed((fixture.folder / "secret.yaml").string()), Catch::Contains("no such file"));
  CHECK_THAT(replayed("../secret.yaml"), Catch::Contains("no such file"));
}

TEST_CASE("foreign results are refused with table and row where a value is not what sweeps write", "[study][sweep]") {
  const auto why = [](const std::string& words) {
    const Fixture fixture;
    fixture.change(words);
    return error_of([&] {
      SweepStore store(fixture.file, SweepStore::Mode::read);
      read_sweep_results(store);
      store.find(fixture.key);
    });
  };
  CHECK(why("select 1").empty());
  const auto in_points = Catch::Contains("a.sqlite: table points, row 1");
  // These are read from the points of the sweep and those of others together, of which SQLite names the last table.
  CHECK_THAT(why("update points set number = 'many'"),
             Catch::Contains("a.sqlite: table ") && Catch::Contains("row 1 of those read, column number"));
  CHECK_THAT(why("update points set run = -1"),
             Catch::Contains("column run: ") && Catch::Contains("allowed: 0 to 4294967295"));
  CHECK_THAT(why("update points set strategy = x'ff'"), in_points && Catch::Contains("allowed: a text"));
  CHECK_THAT(why("update points set strategy = cast(x'ff' as text)"), in_points && Catch::Contains("UTF-8"));
  CHECK_THAT(why("update points set status = 'great'"), in_points && Catch::Contains("feasible, infeasible, failed"));
  CHECK_THAT(why("update points set iteration_seconds = 'soon'"), in_points && Catch::Contains("allowed: a number"));
  CHECK_THAT(why("update points set key = x'01'"), in_points && Catch::Contains("digest"));
  CHECK_THAT(why("update points set settings = '{'"), in_points && Catch::Contains("JSON object of texts"));
  CHECK_THAT(why("update points set settings = '{\"a\": 1}'"), in_points && Catch::Contains("JSON object of texts"));
  CHECK_THAT(why("update sweeps set keys = '[1]'"), Catch::Contains("table sweeps, row 1, column keys"));
  CHECK_THAT(why("update sweeps set settings = '[]'"), Catch::Contains("table sweeps, row 1, column settings"));
  CHECK_THAT(why("update sweeps set goal = '{a: [}'"), Catch::Contains("a.sqlite, table sweeps, column goal:1:"));
  CHECK_THAT(why("create trigger t after insert on points begin delete from points; end"),
             Catch::Contains("its tables are not those that `sweep` makes"));
  CHECK_THAT(why("create table more (a)"), Catch::Contains("its tables are not those"));
}

TEST_CASE("a damaged file of results is refused", "[study][sweep]") {
  const Fixture fixture;
  std::string bytes = read_file(fixture.file);
  constexpr std::size_t kPage = 16384;
  REQUIRE(bytes.size() > 3 * kPage);
  for (std::size_t page = 1; page * kPage < bytes.size(); ++page) {
    std::string spoilt = bytes;
    spoilt.replace(page * kPage, 64, std::string(64, '\xa5'));
    write_file(fixture.folder / "spoilt.sqlite", spoilt);
    INFO("page " << page);
    CHECK_THAT(error_of([&] { SweepStore(fixture.folder / "spoilt.sqlite", SweepStore::Mode::read); }),
               Catch::Contains("spoilt.sqlite: "));
  }
}

} // namespace
} // namespace stagecraft
