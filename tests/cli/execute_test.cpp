// stagecraft execute as users start it; on this machine it only sleeps.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

const std::string kTwo = "execute " + kChain + " --devices 2 --bandwidth '1 GB/s' --set training.global_batch=4 " +
                         "--micro-batches 4 --strategy uniform --schedule 1f1b ";

// The chain takes seconds; a run of it milliseconds.
const std::string kShort = "--time-scale 0.001 --iterations 2 ";

TEST_CASE("execute writes what happened and shows it beside its prediction", "[cli][execute]") {
  const Workshop shop;
  const Outcome run = shop.succeed(kTwo + kShort + "--backend sleeping -o run.json --trace run.trace.json");
  CHECK_THAT(run.out, Catch::Contains("its own durations retold"));
  CHECK_THAT(run.out, Catch::Contains("F= forward"));
  const Json record = Json::parse(shop.read("run.json"));
  CHECK(record["executed"]["backend"] == "sleeping");
  CHECK(record["executed"]["iterations"] == 2);
  // F and B of 4 micro-batches on 2 devices, as many transfers each way, two steps and the barrier
  CHECK(record["graph"]["work"].size() == 16 + 8 + 3);
  CHECK(record["start_nanoseconds"].size() == 2 * record["graph"]["work"].size());
  CHECK(Json::parse(shop.read("run.trace.json"))["traceEvents"].size() > 50);
}

TEST_CASE("explain says what holds back a run that execute wrote", "[cli][execute]") {
  const Workshop shop;
  shop.succeed(kTwo + kShort + "--backend sleeping -o run.json");
  const Json why = shop.run("explain run.json --format json").json();
  std::set<std::string> parts;
  for (const Json& one : why["explanation"]["sensitivities"]) {
    parts.insert(one["part"].get<std::string>());
  }
  CHECK(parts.count("all devices") == 1); // a record knows no types of devices and no places of links
  CHECK(parts.count("all links") == 1);
}

TEST_CASE("validate reports on the runs that execute wrote, together and one by one", "[cli][execute]") {
  const Workshop shop;
  shop.succeed(kTwo + kShort + "--backend sleeping -o run.json");
  const Json all = shop.run("validate run.json --format json").json();
  CHECK(all["rows"].size() + all["skipped"].size() == 1); // skipped where this machine disturbed it
  const Json one = shop.succeed("validate run.json --timeline --format json --trace both.json").json();
  CHECK(one["devices"].size() == 2);
  CHECK(one["measured_seconds"].get<double>() > 0);
  std::set<std::string> processes;
  const Json trace = Json::parse(shop.read("both.json"));
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes.insert(event["args"]["name"].get<std::string>());
    }
  }
  CHECK(processes ==
        std::set<std::string>{"measured: devices", "measured: links", "predicted: devices", "predicted: links"});
  CHECK(shop.run("validate run.json --trace x.json").status == 2);
  CHECK(shop.run("validate run.json --timeline --format csv").status == 2);
}

TEST_CASE("report shows a run that execute wrote, beside its prediction", "[cli][execute]") {
  const Workshop shop;
  shop.succeed(kTwo + kShort + "--backend sleeping -o run.json");
  shop.succeed("report run.json -o run.html");
  const Json all = shop.run("validate run.json --format json").json();
  const std::string page = shop.read("run.html");
  // What else this machine does may disturb the run: then the page says so in place of its figures.
  const char* figures = all["rows"].empty() ? "disturbed" : "iteration_seconds";
  for (const char* words : {figures, "measured", "predicted"}) {
    CHECK_THAT(page, Catch::Contains(words));
  }
}

TEST_CASE("validate draws runs, together and one by one", "[cli][execute][figures]") {
  const Workshop shop;
  shop.succeed(kTwo + kShort + "--backend sleeping -o run.json");
  const Outcome one = shop.succeed("validate run.json --timeline --figures one --quiet");
  const bool drawn = one.err.find("drawn: one/timelines.svg") != std::string::npos;
  if (!drawn) { // where gnuplot is not installed, the scripts are there
    CHECK_THAT(one.err, Catch::Contains("no picture one/timelines.svg: gnuplot: "));
  }
  for (const char* name : {"one/timelines", "one/errors"}) {
    CHECK_THAT(shop.read(std::string(name) + ".gp"), Catch::Contains("set terminal svg"));
    CHECK(!shop.read(std::string(name) + ".dat").empty());
    CHECK((!drawn || shop.read(std::string(name) + ".svg").find("</svg>") != std::string::npos));
  }
}

// Two equal devices that planners believe to be equal: the result tells about the rounds, not about this machine.
TEST_CASE("dynamic balances by real runs", "[cli][execute]") {
  const Workshop shop;
  const std::string two = "execute " + kChain + " --devices 2 --bandwidth '1 GB/s' --set training.global_batch=4 " +
                          "--micro-batches 4 --schedule 1f1b --backend sleeping --measured " + kShort;
  const Outcome run = shop.succeed(two + "--strategy dynamic -o run.json --format table");
  CHECK_THAT(run.out, Catch::Contains("largest waiting"));
  CHECK_THAT(run.err, Catch::Contains("a plan measured"));
  const Json record = Json::parse(shop.read("run.json"));
  REQUIRE(!record["rounds"].empty());
  for (const Json& round : record["rounds"]) {
    CHECK(round["iteration_seconds"] > 0);
    CHECK(round["waiting_seconds"].size() == 2);
  }
  CHECK_THAT(record["rounds"].back()["action"].get<std::string>(), Catch::Contains("hold"));
  const Outcome never = shop.run(two + "--strategy uniform");
  CHECK(never.status == 2);
  CHECK_THAT(never.err, Catch::Contains("dynamic"));
}

TEST_CASE("execute refuses what cannot be carried out", "[cli][execute]") {
  const Workshop shop;
  CHECK(shop.run(kTwo + kShort + "--backend gp").status == 2);
  CHECK(shop.run(kTwo + "--backend sleeping --time-scale 0").status == 2);
  CHECK(shop.run(kTwo + "--backend sleeping --plan x.yaml").status == 2);
  CHECK(shop.run(kTwo + "--backend cpu --time-scale 2").status == 2);
  const Outcome numbers = shop.run(kTwo + "--backend cpu --set training.precision=fp32");
  CHECK(numbers.status == 2);
  CHECK_THAT(numbers.err, Catch::Contains("says nothing of shapes"));
  shop.write("broken.csv", "F0@0,B0@0\nB0@1,F0@1\n");
  const Outcome broken =
      shop.run("execute " + kChain + " --devices 2 --strategy uniform --backend sleeping --schedule broken.csv");
  CHECK(broken.status == 2);
  CHECK_THAT(broken.err, Catch::Contains("the schedule cannot run"));
  for (const std::string key : {"clip_gradients=true", "parallel.zero=2", "parallel.zero=3"}) {
    const Outcome beyond = shop.run(kTwo + kShort + "--backend sleeping --set training." + key);
    CHECK(beyond.status == 2);
    CHECK_THAT(beyond.err, Catch::Contains("a real run") && Catch::Contains("allowed: "));
  }
  const Outcome infeasible = shop.run(kTwo + kShort + "--backend sleeping --memory '1 B'");
  CHECK(infeasible.status == 1);
  CHECK_THAT(infeasible.err, Catch::Contains("infeasible"));
  CHECK(shop.files() == 1);
}

} // namespace
} // namespace stagecraft::test
