// The points of a sweep: as lines, alone, explained, and from where nothing can be written.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>
#include <sys/stat.h>

#include <sstream>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

// Four points in a.sqlite: two engines, two bandwidths.
void sweep_four(const Workshop& shop) {
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4}\n"
                               "compare: {strategies: uniform, schedules: gpipe}\n"
                               "sweep: {platform.bandwidth: [1 MB/s, 1 GB/s], engine: [analytic, simgrid]}\n");
  shop.succeed("sweep study.yaml -o a.sqlite");
}

TEST_CASE("points go to a file as other results do", "[cli][sweep][points]") {
  const Workshop shop;
  sweep_four(shop);
  const std::string lines = shop.succeed("points a.sqlite").out;
  shop.write("target", "old");
  fs::create_symlink("target", shop.folder() / "link");
  shop.succeed("points a.sqlite -o link");
  CHECK(fs::is_symlink(shop.folder() / "link"));
  CHECK(shop.read("target") == lines);
  shop.succeed("points a.sqlite -o /dev/null");
  CHECK(fs::is_character_file("/dev/null"));
  // Where it fails, what was there stays.
  CHECK(shop.run("points a.sqlite -o none/file").status == 2);
  CHECK(shop.run("points a.sqlite -o /dev/full").err.find("cannot be written") != std::string::npos);
  // One point alone, too.
  const std::string key =
      Json::parse(shop.succeed("points a.sqlite --format jsonl --replay " + lines.substr(lines.find('\n') + 1, 8)).out)
          .at("engine");
  CHECK((key == "analytic" || key == "simgrid"));
  shop.succeed("points a.sqlite -o one --replay " + lines.substr(lines.find('\n') + 1, 8));
  CHECK(shop.read("one").find("iteration_seconds") != std::string::npos);
}

TEST_CASE("points take the form that the ending of their file names", "[cli][sweep][points]") {
  const Workshop shop;
  sweep_four(shop);
  const std::string lines = shop.succeed("points a.sqlite").out;
  shop.succeed("points a.sqlite -o p.csv");
  CHECK(shop.read("p.csv") == lines);
  shop.succeed("points a.sqlite -o p.jsonl");
  shop.succeed("points a.sqlite -o p.json");
  const Json points = Json::parse(shop.read("p.json"));
  REQUIRE(points.size() == 4);
  const std::string jsonl = shop.read("p.jsonl");
  CHECK(Json::parse(jsonl.substr(0, jsonl.find('\n'))) == points[0]);
  shop.succeed("points a.sqlite -o p.html");
  CHECK(shop.read("p.html").starts_with("<!doctype html>"));
  shop.succeed("points a.sqlite -o p.md --columns strategy,iteration-seconds");
  CHECK(shop.read("p.md").starts_with("| strategy | iteration\\_seconds |\n"));
  // Counts are whole numbers; a time is one only where it has no fraction.
  CHECK(points[0].at("devices").is_number_integer());
  CHECK(points[0].at("stages").is_number_integer());
  CHECK(lines.find(".0,") == std::string::npos);
  // Sorted by time, the slowest first: the largest number of the column stands in the first row.
  double slowest = 0;
  for (const Json& point : points) {
    slowest = std::max(slowest, point.at("iteration_seconds").get<double>());
  }
  const std::string table =
      shop.succeed("points a.sqlite --format table --columns iteration_seconds --sort=-iteration_seconds").out;
  std::istringstream rows(table.substr(table.find("-\n") + 2));
  double first = 0;
  rows >> first;
  CHECK(first == slowest);
  CHECK(shop.run("points a.sqlite -o p.xml").status == 2);
}

TEST_CASE("an axis of engines and the engine of a point are two columns", "[cli][sweep][points]") {
  const Workshop shop;
  sweep_four(shop);
  const std::string lines = shop.succeed("points a.sqlite").out;
  CHECK(lines.starts_with("key,platform.bandwidth,sweep.engine,strategy,schedule,micro_batches,recompute,engine,"));
}

TEST_CASE("a point of a sweep is explained: the best, or the one asked for", "[cli][sweep][points]") {
  const Workshop shop;
  sweep_four(shop);
  const Json best = shop.succeed("explain a.sqlite --format json").json();
  const Json point = shop.succeed("sweep study.yaml -o a.sqlite --format json").json().at("runs").at(0);
  const std::string key = point.at("key");
  CHECK(best.at("explanation").at("iteration_seconds").get<double>() ==
        Approx(point.at("iteration_seconds").get<double>()).epsilon(1e-11));
  CHECK(shop.succeed("explain a.sqlite --format json --point " + key.substr(0, 8)).json() == best);
  CHECK(shop.succeed("explain a.sqlite --quiet").out.starts_with("uniform under gpipe"));
  CHECK(shop.run("explain a.sqlite --point 0123456789").err.find("no such point") != std::string::npos);
  CHECK(shop.run("explain a.sqlite --set seed=3").err.find("have their settings") != std::string::npos);
  CHECK(shop.run("explain a.sqlite --schedule zb-v").err.find("have their settings") != std::string::npos);
  CHECK(shop.run("explain study.yaml --point " + key).err.find("has no points") != std::string::npos);
}

TEST_CASE("results are read where nothing can be written", "[cli][sweep][points]") {
  const Workshop shop;
  sweep_four(shop);
  const std::string lines = shop.succeed("points a.sqlite").out;
  const fs::path disk = shop.folder() / "disk #1";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=8m") != 0) {
    WARN("no file system can be mounted here: one that is read-only is not tested");
    return;
  }
  fs::copy(shop.folder() / "a.sqlite", disk / "a.sqlite");
  CHECK(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=8m") == 0);
  CHECK(shop.succeed("points 'disk #1/a.sqlite'").out == lines);
  shop.succeed("merge 'disk #1/a.sqlite' -o b.sqlite");
  CHECK(shop.succeed("points b.sqlite").out == lines);
  shop.succeed("report 'disk #1/a.sqlite' -o page.html");
  CHECK(shop.run("sweep study.yaml -o 'disk #1/b.sqlite'").status == 2);
  umount(disk.c_str());
}

} // namespace
} // namespace stagecraft::test
