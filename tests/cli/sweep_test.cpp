// Sweeps as users run them, and as machines end them: killed workers, a killed program, a full disk, two at once.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

// 2 x 3 x 12 points in a moment.
std::string quick_sweep() {
  return small_study() + "sweep:\n  platform.devices: [2, 4]\n  platform.bandwidth: [1 MB/s, 4 MB/s, 1 GB/s]\n";
}

// Many points, some seconds of work for one worker.
std::string long_sweep() {
  return small_study() +
         "engine: analytic\nsweep:\n  platform.bandwidth: {from: 1 MB/s, to: 1000 MB/s, step: 0.25 MB/s}\n";
}
constexpr std::size_t kLong = 3997 * 12;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

// The number of different points in a file.
std::size_t distinct_points(const Workshop& shop, const std::string& file) {
  std::set<std::string> keys;
  const std::vector<std::string> lines = lines_of(shop.succeed("points " + file + " --format jsonl").out);
  for (const std::string& line : lines) {
    keys.insert(Json::parse(line).at("key").get<std::string>());
  }
  CHECK(keys.size() == lines.size());
  return lines.size();
}

// Starts the program in the background; gives its process.
pid_t start(const Workshop& shop, const std::string& arguments) {
  shop.write(".pid", "");
  const std::string command = "sh -c 'echo $$ >.pid; exec \"" STAGECRAFT_PROGRAM "\" " + arguments + "' >.log 2>&1 &";
  REQUIRE(shop.shell(command) == 0);
  for (int i = 0; i < 500; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (shop.has(".pid") && !shop.read(".pid").empty()) {
      return std::stoi(shop.read(".pid"));
    }
  }
  FAIL("the program did not start");
  return 0;
}

// Workers lead process groups of their own. Other children do not, such as a leak checker's tracer, which must not be
// killed.
std::vector<pid_t> workers_of(pid_t process) {
  std::vector<pid_t> workers;
  std::ifstream in("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
  for (pid_t child = 0; in >> child;) {
    if (getpgid(child) == child) {
      workers.push_back(child);
    }
  }
  return workers;
}

bool alive(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string word;
  in >> word >> word >> word;
  return in && word != "Z";
}

template <class Condition> bool wait_until(const Condition& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

TEST_CASE("sweep counts, runs, shows the best, and has nothing to do the second time", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", quick_sweep());
  CHECK(shop.succeed("sweep study.yaml --count").out ==
        "2 platform.devices x 3 platform.bandwidth x 12 runs = 72 points\n");
  const Outcome first = shop.succeed("sweep study.yaml -o a.sqlite --workers 2");
  CHECK(first.err == "2 platform.devices x 3 platform.bandwidth x 12 runs = 72 points\n");
  CHECK(first.out.find("72 computed now, 0 were there") != std::string::npos);
  const Outcome again = shop.succeed("sweep study.yaml -o a.sqlite --format json");
  const Json json = again.json();
  CHECK(json["points"]["feasible"].get<int>() + json["points"]["infeasible"].get<int>() == 72);
  CHECK(json["runs"].size() == 10);
  CHECK(json["runs"][0]["iteration_seconds"] <= json["runs"][1]["iteration_seconds"]);
  const std::string key = json["runs"][0]["key"];
  const Json alone = Json::parse(shop.succeed("points a.sqlite --format jsonl --replay " + key.substr(0, 10)).out);
  CHECK(alone["iteration_seconds"].get<double>() ==
        Approx(json["runs"][0]["iteration_seconds"].get<double>()).epsilon(1e-9));
  CHECK(alone["lower_bound_seconds"].is_number());
  CHECK(alone["model"] == "chain");
  CHECK(alone["inputs"].size() >= 2); // the study and the model
}

TEST_CASE("a sweep says which points come more than once, and how many a second pass gets", "[cli][sweep]") {
  const Workshop shop;
  // 12 draws of 6 combinations, each value of both axes as often: 12 runs each.
  shop.write("draws.yaml", quick_sweep() + "  sample: {method: latin-hypercube, points: 12}\nengine: analytic\n");
  const Outcome drawn = shop.succeed("sweep draws.yaml -o a.sqlite");
  CHECK(drawn.err == "12 drawn of 2 platform.devices x 3 platform.bandwidth x 12 runs = 144 points\n");
  const std::size_t points = distinct_points(shop, "a.sqlite");
  CHECK(points <= 72);
  const std::string again = std::to_string(144 - points) + " came more than once";
  CHECK(drawn.out.find(std::to_string(points) + " computed now, 0 were there; " + again) != std::string::npos);
  CHECK(shop.succeed("sweep draws.yaml -o a.sqlite")
            .out.find("0 computed now, " + std::to_string(points) + " were there; " + again) != std::string::npos);
  shop.write("screen.yaml", quick_sweep() + "  screen: {by: analytic, keep: 5}\n");
  CHECK(shop.succeed("sweep screen.yaml --count").out == "2 platform.devices x 3 platform.bandwidth x 12 runs = 72 "
                                                         "points by analytic, then the best 5 of them by simgrid\n");
  shop.write("own.yaml", quick_sweep() + "  screen: {by: analytic, keep: 5}\nengine: analytic\n");
  CHECK(shop.succeed("sweep own.yaml -o own.sqlite").err.find("then the best") == std::string::npos); // one pass
  CHECK(shop.succeed("sweep own.yaml -o own.sqlite").out.find("more than once") == std::string::npos);
  shop.write("share.yaml", quick_sweep() + "  screen: {by: analytic, keep: 12.5 %}\n");
  CHECK(shop.succeed("sweep share.yaml --count").out.find("then the best 12.5 % of the feasible ones by simgrid") !=
        std::string::npos);
}

// One run in three is asynchronous: 4 of 12 points.
TEST_CASE("a sweep says how many points are set aside, and ranks them where it is asked to", "[cli][sweep]") {
  const Workshop shop;
  shop.write("s.yaml", small_study() + "engine: analytic\nsweep:\n  platform.bandwidth: [4 MB/s, 1 GB/s]\n");
  const std::string sweep = "sweep s.yaml -o a.sqlite --set compare.strategies=uniform --set "
                            "compare.schedules='[gpipe, 1f1b, pipedream-2bw]' ";
  const std::string told = shop.succeed(sweep).out;
  CHECK_THAT(told, Catch::Contains("4 points are set aside: feasible, but of asynchronous schedules") &&
                       !Catch::Contains(" pipedream-2bw "));
  CHECK(shop.succeed(sweep + "--format json").json().at("points").at("set_aside") == 4);
  const std::string all = shop.succeed(sweep + "--set compare.rank=throughput").out;
  CHECK_THAT(all, Catch::Contains("0 computed now, 12 were there") && !Catch::Contains("set aside") &&
                      Catch::Contains(" pipedream-2bw "));
  const std::string alone = "sweep s.yaml -o b.sqlite --set compare.schedules=pipedream-2bw";
  CHECK_THAT(shop.succeed(alone).out, Catch::Contains("No feasible point is of exact training"));
}

TEST_CASE("points do not depend on the number of workers or their order", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", quick_sweep() + "engine: analytic\n");
  shop.succeed("sweep study.yaml -o one.sqlite --workers 1");
  shop.succeed("sweep study.yaml -o three.sqlite --workers 3");
  for (const std::string format : {"csv", "jsonl"}) {
    CHECK(shop.succeed("points one.sqlite --format " + format).out ==
          shop.succeed("points three.sqlite --format " + format).out);
  }
  shop.succeed("points one.sqlite -o one.csv");
  const std::vector<std::string> lines = lines_of(shop.read("one.csv"));
  CHECK(lines.size() == 73);
  CHECK(lines.front().starts_with("key,platform.devices,platform.bandwidth,strategy,schedule,micro_batches,"));
}

TEST_CASE("sweep draws the cost model's errors where it is told to", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", "model: bert-large\nplatform: nvlink-v100\nengine: analytic\n"
                           "training: {global_batch: 16, micro_batches: 8}\n"
                           "compare: {strategies: uniform, schedules: [gpipe, 1f1b]}\n"
                           "sweep: {training.global_batch: [16, 32]}\n");
  shop.succeed("sweep study.yaml --confidence 10 -o a.sqlite --workers 2");
  CHECK(
      lines_of(shop.succeed("points a.sqlite").out)
          .front()
          .ends_with(",confidence_p5_seconds,confidence_median_seconds,confidence_p95_seconds,assumed_cost_share,"
                     "tokens_per_second,tokens_per_device_second,mfu,hfu,expected_low_seconds,expected_high_seconds"));
  const std::vector<std::string> points = lines_of(shop.succeed("points a.sqlite --format jsonl").out);
  REQUIRE(points.size() == 4);
  for (const std::string& line : points) {
    const Json point = Json::parse(line);
    const std::string batch = point["settings"]["training.global_batch"];
    const Json runs =
        shop.succeed("compare study.yaml --confidence 10 --format json --set training.global_batch=" + batch).json();
    const auto run = std::find_if(runs["runs"].begin(), runs["runs"].end(),
                                  [&](const Json& one) { return one["schedule"] == point["schedule"]; });
    REQUIRE(run != runs["runs"].end());
    const Json& interval = (*run)["confidence"]["iteration_seconds"];
    CHECK(interval["p5"].get<double>() < interval["p95"].get<double>());
    for (const std::string quantile : {"p5", "median", "p95"}) {
      CHECK(point["confidence_" + quantile + "_seconds"].get<double>() ==
            Approx(interval[quantile].get<double>()).epsilon(1e-11));
    }
    for (const std::string end : {"low", "high"}) {
      CHECK(point["expected_" + end + "_seconds"].get<double>() ==
            Approx((*run)["expected"][end + "_seconds"].get<double>()).epsilon(1e-11));
    }
    CHECK(point["expected_low_seconds"].get<double>() < point["iteration_seconds"].get<double>());
    CHECK(point["expected_high_seconds"].get<double>() > point["iteration_seconds"].get<double>());
    const std::string key = point["key"];
    const Json alone = Json::parse(shop.succeed("points a.sqlite --format jsonl --replay " + key).out);
    CHECK(alone["confidence"]["iteration_seconds"] == interval);
    CHECK(alone["confidence"]["best"].is_null());
  }
}

TEST_CASE("shards make files that merge to the whole", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", quick_sweep());
  for (const std::string shard : {"1", "2"}) {
    shop.succeed("sweep study.yaml -o " + shard + ".sqlite --shard " + shard + "/2");
  }
  CHECK(shop.succeed("merge 1.sqlite 2.sqlite -o all.sqlite").out.starts_with("72 points, 72 of them new"));
  CHECK(shop.succeed("merge 2.sqlite -o all.sqlite").out.starts_with("72 points, 0 of them new"));
  CHECK(shop.run("merge all.sqlite -o all.sqlite").status == 2);
  CHECK(shop.run("sweep study.yaml -o 3.sqlite --shard 3/2").status == 2);
}

TEST_CASE("a misspelt axis is refused with its place before anything runs", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", small_study() + "sweep:\n  platform.bandwith: [1 MB/s, 2 MB/s]\n");
  const Outcome outcome = shop.run("sweep study.yaml -o a.sqlite");
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("study.yaml:7:23: unknown key 'bandwith'; did you mean 'bandwidth'? ") != std::string::npos);
  shop.write("study.yaml", small_study() + "sweep:\n  platform.bandwidth: [1 MB/s, 2 MBs]\n");
  CHECK(shop.run("sweep study.yaml --count").err.find("study.yaml:7:32: ") != std::string::npos);
}

TEST_CASE("an impossible point is a row, and the sweep ends with status 3", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2}\ncompare: {strategies: uniform, schedules: gpipe}\n"
                               "sweep: {training.global_batch: [4, 6], training.micro_batches: [2, 3, 4]}\n");
  const Outcome outcome = shop.run("sweep study.yaml -o a.sqlite");
  CHECK(outcome.status == 3);
  CHECK(outcome.out.find("4 feasible, 0 infeasible, 2 failed") != std::string::npos);
  CHECK(shop.run("sweep study.yaml -o a.sqlite").out.find("0 computed now, 6 were there") != std::string::npos);
  CHECK(shop.run("sweep study.yaml -o a.sqlite --retry").out.find("2 computed now, 4 were there") != std::string::npos);
  CHECK(distinct_points(shop, "a.sqlite") == 6);
}

TEST_CASE("workers that are killed lose nothing", "[cli][sweep][kill]") {
  const Workshop shop;
  shop.write("study.yaml", long_sweep());
  const pid_t process = start(shop, "sweep study.yaml -o a.sqlite --workers 2");
  int killed = 0;
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    for (const pid_t worker : workers_of(process)) {
      killed += kill(worker, SIGKILL) == 0 ? 1 : 0;
    }
  }
  REQUIRE(wait_until([&] { return !alive(process); }));
  INFO(shop.read(".log"));
  CHECK(killed > 0);
  CHECK(shop.read(".log").find("0 failed; " + std::to_string(kLong) + " computed now") != std::string::npos);
  CHECK(distinct_points(shop, "a.sqlite") == kLong);
}

// Kills whatever works before it can finish a point of 16 384 micro-batches, as a bug or lack of memory would.
TEST_CASE("a point that kills its process three times is a row with that reason", "[cli][sweep][kill]") {
  const Workshop shop;
  shop.write("study.yaml", "model: gpt2-xl\nplatform: mixed-v100-p100\n"
                           "training: {global_batch: 16384, micro_batches: 16384}\n"
                           "compare: {strategies: uniform, schedules: 1f1b}\n"
                           "sweep:\n  platform.network.bandwidth: [10 Gb/s, 20 Gb/s]\n");
  const pid_t process = start(shop, "sweep study.yaml -o a.sqlite --workers 1");
  REQUIRE(wait_until([&] {
    for (const pid_t worker : workers_of(process)) {
      kill(worker, SIGKILL);
    }
    return !alive(process);
  }));
  INFO(shop.read(".log"));
  CHECK(shop.read(".log").find("0 feasible, 0 infeasible, 2 failed; 2 computed now") != std::string::npos);
  CHECK(shop.read(".log").find("none is feasible") != std::string::npos);
  for (const std::string& line : lines_of(shop.succeed("points a.sqlite --format jsonl").out)) {
    const Json point = Json::parse(line);
    CHECK(point["status"] == "failed");
    CHECK(point["reason"] == "its process was ended by signal 9, 3 times");
    CHECK(point["strategy"] == "uniform");
    CHECK(point["settings"].size() == 1);
  }
}

TEST_CASE("a program that is killed loses nothing it stored, leaves no worker, and goes on", "[cli][sweep][kill]") {
  const Workshop shop;
  shop.write("study.yaml", long_sweep());
  std::size_t stored = 0;
  const auto has_grown = [&] {
    const Outcome points = shop.run("points a.sqlite --format jsonl");
    const std::size_t now = points.status == 0 ? lines_of(points.out).size() : 0;
    return now > std::exchange(stored, std::max(now, stored));
  };
  for (int i = 0; i < 3; ++i) {
    const pid_t process = start(shop, "sweep study.yaml -o a.sqlite --workers 2");
    REQUIRE(wait_until([&] { return has_grown() || !alive(process); }));
    const std::vector<pid_t> workers = workers_of(process);
    kill(process, SIGKILL);
    for (const pid_t worker : workers) {
      CHECK(wait_until([&] { return !alive(worker); }));
    }
    const std::size_t left = distinct_points(shop, "a.sqlite");
    CHECK(left >= stored);
    stored = left;
  }
  const Outcome last = shop.succeed("sweep study.yaml -o a.sqlite");
  CHECK(last.out.find(std::to_string(kLong - stored) + " computed now, " + std::to_string(stored) + " were there") !=
        std::string::npos);
  CHECK(distinct_points(shop, "a.sqlite") == kLong);
}

TEST_CASE("a sweep that is interrupted, or told to end as a batch system does, says what it keeps, and goes on",
          "[cli][sweep][kill]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Workshop shop;
  shop.write("study.yaml", long_sweep());
  const pid_t process = start(shop, "sweep study.yaml -o a.sqlite --workers 2");
  REQUIRE(wait_until([&] { return !workers_of(process).empty() || !alive(process); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const pid_t worker : workers_of(process)) { // a batch system tells each process of a job
    kill(worker, signal);
  }
  kill(process, signal);
  REQUIRE(wait_until([&] { return !alive(process); }));
  const std::string said = shop.read(".log");
  const std::size_t kept = distinct_points(shop, "a.sqlite");
  INFO(said);
  CHECK(said.find("interrupted: a.sqlite keeps " + std::to_string(kept) + " points; ") != std::string::npos);
  CHECK(kept < kLong);
  const Outcome again = shop.succeed("sweep study.yaml -o a.sqlite"); // exit 0: nothing has failed
  CHECK(again.out.find(std::to_string(kLong - kept) + " computed now") != std::string::npos);
}

TEST_CASE("two programs on one file store each point once", "[cli][sweep][kill]") {
  const Workshop shop;
  shop.write("study.yaml", long_sweep());
  const pid_t other = start(shop, "sweep study.yaml -o a.sqlite --workers 1");
  const Outcome mine = shop.succeed("sweep study.yaml -o a.sqlite --workers 1");
  REQUIRE(wait_until([&] { return !alive(other); }));
  INFO(shop.read(".log"));
  for (const std::string& text : {mine.out, shop.read(".log")}) {
    CHECK(text.find("0 failed") != std::string::npos);
  }
  CHECK(distinct_points(shop, "a.sqlite") == kLong);
}

// Workers share points by the clock, so an engine has replayed other points before. Where transfers share links, a
// different rounding could make another flow end first, and change everything after it.
TEST_CASE("stored points do not depend on which process computed them, or with which others", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", "model: gpt2-xl\nplatform: mixed-v100-p100\n"
                           "training: {global_batch: 64, micro_batches: 32}\n"
                           "compare: {strategies: block-partition, schedules: [interleaved, zb-v, dualpipe-v]}\n"
                           "sweep:\n  platform.network.bandwidth: {from: 5 Gb/s, to: 100 Gb/s, count: 60}\n");
  shop.succeed("sweep study.yaml -o a.sqlite --workers 1");
  for (const char* part : {"1/2", "2/2"}) {
    shop.succeed(std::string("sweep study.yaml -o b.sqlite --workers 3 --shard ") + part);
  }
  CHECK(lines_of(shop.succeed("points a.sqlite --format jsonl").out).size() == 180);
  CHECK(shop.succeed("points a.sqlite --format jsonl").out == shop.succeed("points b.sqlite --format jsonl").out);
}

TEST_CASE("an input is never written over", "[cli][sweep]") {
  const Workshop shop;
  shop.write("study.yaml", quick_sweep());
  shop.succeed("sweep study.yaml -o a.sqlite");
  for (const char* command :
       {"report a.sqlite -o a.sqlite", "points a.sqlite --format csv -o ./a.sqlite", "merge a.sqlite -o a.sqlite"}) {
    INFO(command);
    const Outcome refused = shop.run(command);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("is an input") != std::string::npos);
  }
  CHECK(distinct_points(shop, "a.sqlite") == 72);
}

TEST_CASE("a full disk ends a sweep with a message, and room lets it go on", "[cli][sweep][kill]") {
  const Workshop shop;
  shop.write("study.yaml", long_sweep());
  const fs::path disk = shop.folder() / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=8m") != 0) {
    WARN("no small file system can be mounted here: the full disk is not tested");
    return;
  }
  const Outcome full = shop.run("sweep study.yaml -o disk/a.sqlite");
  CHECK(full.status == 2);
  CHECK(full.err.find("disk") != std::string::npos);
  CHECK(full.err.find("every point committed so far is kept") != std::string::npos);
  CHECK(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=200m") == 0);
  const std::size_t stored = distinct_points(shop, "disk/a.sqlite");
  CHECK((stored > 0 && stored < kLong));
  shop.succeed("sweep study.yaml -o disk/a.sqlite");
  CHECK(distinct_points(shop, "disk/a.sqlite") == kLong);
  umount(disk.c_str());
}

} // namespace
} // namespace stagecraft::test
