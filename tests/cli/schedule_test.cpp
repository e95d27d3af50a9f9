// stagecraft schedule against numbers made by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

Json drawn(const std::string& arguments) {
  const Workshop shop;
  return shop.succeed("schedule " + arguments + " --format json").json();
}

TEST_CASE("schedule gives JSON with every key", "[cli]") {
  const Json json = drawn("1f1b --stages 2 --micro-batches 2");
  for (const char* key : {"schema", "schedule", "stages", "micro_batches", "makespan", "period", "bubble_fraction",
                          "in_flight", "orders"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  CHECK(json.at("orders") == Json({{"F0@0", "F1@0", "B0@0", "B1@0"}, {"F0@1", "B0@1", "F1@1", "B1@1"}}));
  CHECK(json.at("in_flight") == Json({2, 1}));
}

// P stages of f + b each, M micro-batches: GPipe and 1F1B last (M + P - 1)(f + b), of which a share of
// (P - 1)/(M + P - 1) is bubble.
TEST_CASE("gpipe and 1f1b last (M + P - 1)(f + b)", "[cli]") {
  for (const std::string name : {"gpipe", "1f1b"}) {
    const Json json = drawn(name + " --stages 4 --micro-batches 8 --forward 1 --backward 2");
    CHECK(json.at("makespan").get<double>() == near((8 + 4 - 1) * 3));
    CHECK(json.at("bubble_fraction").get<double>() == near(3.0 / 11));
  }
}

TEST_CASE("naive lasts as long as all work in a row", "[cli]") {
  CHECK(drawn("naive --stages 3 --micro-batches 2").at("makespan").get<double>() == near(2 * 3 * 3));
}

// The bubble (P - 1)(f + b) is divided by the number of chunks: 4 * 3 + 3/2.
TEST_CASE("interleaved divides the bubble by the number of chunks", "[cli]") {
  CHECK(drawn("interleaved --stages 2 --micro-batches 4").at("makespan").get<double>() == near(13.5));
}

// ZB-H1 with f = b = w = 1: a bubble of (P - 1)(f + b - w) instead of (P - 1)(f + b + w).
TEST_CASE("zb-h1 fills two thirds of the bubble with weight gradients", "[cli]") {
  const Json json = drawn("zb-h1 --stages 4 --micro-batches 8 --forward 1 --backward-input 1 --backward-weight 1");
  CHECK(json.at("makespan").get<double>() == near(8 * 3 + 3 * 1));
}

// F 1, hop 1/2, F 1, B 2, hop 1/2, B 2.
TEST_CASE("latency is paid on every hop", "[cli]") {
  CHECK(drawn("gpipe --stages 2 --micro-batches 1 --latency 0.5").at("makespan").get<double>() == near(7));
}

// Stage 1 of F 2, B 4 is never idle once it starts at 1: 3 * 6; then B 2 on stage 0.
TEST_CASE("times may differ from device to device", "[cli]") {
  CHECK(drawn("1f1b --stages 2 --micro-batches 3 --forward 1,2").at("makespan").get<double>() == near(1 + 18 + 2));
}

// One stage: F, R, B of each micro-batch in a row.
TEST_CASE("recompute runs forward again before backward", "[cli]") {
  const Json json = drawn("1f1b --stages 1 --micro-batches 2 --recompute lazy");
  CHECK(json.at("makespan").get<double>() == near(2 * (1 + 1 + 2)));
  CHECK(json.at("orders") == Json({{"F0@0", "R0@0", "B0@0", "F1@0", "R1@0", "B1@0"}}));
}

TEST_CASE("every schedule is drawn in every format", "[cli]") {
  const Workshop shop;
  for (const ScheduleRow& row : schedules()) {
    const std::string stages = row.name == "accumulate" ? "1" : "2";
    const std::string arguments = "schedule " + std::string(row.name) + " --stages " + stages + " --micro-batches 4";
    const std::string picture = shop.succeed(arguments).out;
    CHECK_THAT(picture, Catch::StartsWith("device 0 "));
    CHECK_THAT(picture, Catch::Contains("makespan "));
    const std::string csv = shop.succeed(arguments + " --format csv").out;
    CHECK_THAT(csv, Catch::StartsWith("F0@0,"));
    CHECK(std::count(csv.begin(), csv.end(), '\n') == std::stoi(stages));
  }
}

TEST_CASE("numbers of the command line are as strict as those of files", "[cli]") {
  const Workshop shop;
  const std::string two = "schedule 1f1b --stages 2 --micro-batches ";
  for (const char* bad : {"010", "4x", "0", "-1", "99999999999"}) {
    INFO(bad);
    CHECK(shop.run(two + bad).status == 2);
  }
  for (const char* bad : {"nan", "inf", "1e308", "-1", "1s"}) {
    INFO(bad);
    CHECK(shop.run(two + "2 --latency " + bad).status == 2);
    CHECK(shop.run(two + "2 --forward " + bad).status == 2);
  }
}

TEST_CASE("a result that cannot be written is an error", "[cli]") {
  const Workshop shop;
  CHECK(shop.run("list engines -o /dev/full").status == 2);
  CHECK(shop.run("plan " + kChain + " --devices 2 --strategy uniform -o none/plan.yaml").status == 2);
}

// Four devices, F = B = W = 1, 12 micro-batches: 36 of work. ZB-2p has twice the memory of 1F1B and no bubble but while
// the pipeline fills.
TEST_CASE("a schedule is asked for under a limit on activations", "[cli]") {
  const Workshop shop;
  const auto period = [&](const std::string& name, const std::string& more) {
    const std::string times = " --stages 4 --micro-batches 12 --backward-input 1 --backward-weight 1 ";
    return shop.succeed("schedule " + name + times + "--format json " + more).json()["period"].get<double>();
  };
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = shop.run("schedule " + arguments);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Contains(why));
  };
  CHECK(period("zb-auto", "--memory 8") == Approx(36));
  CHECK(period("zb-auto", "--memory 4") > 36.5);
  CHECK(period("zb-auto", "--memory 4 --forward 2 --kept 0") < period("zb-auto", "--memory 4 --forward 2"));
  CHECK(period("1f1b", "--memory 4") > 36);
  CHECK(period("zb-v", "--memory 4") > 0); // two stages of half a device's activations each
  refused("1f1b --stages 4 --micro-batches 12 --memory 3.9",
          "1f1b holds the activations of 4 micro-batches on device 0, more than 3.9");
  refused("zb-h2 --stages 4 --micro-batches 12 --format csv --memory 6", "zb-h2 holds the activations of 7");
  refused("zb-auto --stages 4 --micro-batches 12 --memory 0.5", "has no room for the activations");
  refused("1f1b --stages 4 --micro-batches 12 --memory 0", "the memory must be");
  refused("1f1b --stages 4 --micro-batches 12 --kept 1.1", "the share must be 0 to 1");
}

TEST_CASE("replay and schedule write a document to the file of -o, and their picture to the terminal", "[cli]") {
  const Workshop shop;
  const std::string replay = "replay " + kChain + " --devices 2 --bandwidth '4 MB/s' --set training.global_batch=4 " +
                             "--micro-batches 4 --strategy uniform --schedule gpipe ";
  CHECK_THAT(shop.succeed(replay + "-o run.json").out, Catch::Contains("F= forward"));
  CHECK(Json::parse(shop.read("run.json"))["schedule"] == "gpipe");
  shop.succeed("report run.json -o run.html");
  CHECK(shop.succeed(replay + "--format csv -o run.csv").out.empty());
  CHECK_THAT(shop.read("run.csv"), Catch::StartsWith("strategy,"));
  CHECK_THAT(shop.succeed("schedule 1f1b --stages 2 --micro-batches 4 -o order.json").out, Catch::Contains("makespan"));
  CHECK(Json::parse(shop.read("order.json"))["stages"] == 2);
}

// What a replay says but for its timing and its files, of which a schedule in one is another.
Json replayed(const Workshop& shop, const std::string& command) {
  Json run = answer_of(shop.succeed(command).json());
  run.erase("inputs");
  return run;
}

TEST_CASE("a schedule file is drawn, checked and replayed", "[cli]") {
  const Workshop shop;
  const std::string on = kChain + " --devices 2 --bandwidth '4 MB/s' --set training.global_batch=4 --micro-batches 4 ";
  shop.succeed("plan --strategy uniform -o plan.yaml " + on);
  for (const std::string name : {"gpipe", "1f1b", "zb-h1", "naive"}) {
    shop.succeed("schedule " + name + " --stages 2 --micro-batches 4 --format csv -o " + name + ".csv");
    CHECK(shop.succeed("check " + name + ".csv").out == name + ".csv: a valid schedule\n");
    for (const std::string split : {"--strategy uniform", "--plan plan.yaml"}) {
      const std::string replay = "replay --format json " + on + split + " --schedule " + name;
      CHECK(replayed(shop, replay + ".csv") == replayed(shop, replay));
    }
  }
}

TEST_CASE("a schedule goes to PyTorch and comes back, drawn, checked, replayed", "[cli]") {
  const Workshop shop;
  const std::string replay = "replay --format json " + kChain +
                             " --devices 2 --bandwidth '4 MB/s' --set training.global_batch=4 --micro-batches 4 "
                             "--strategy uniform --schedule ";
  for (const std::string name : {"1f1b", "zb-h1"}) {
    const Json named = replayed(shop, replay + name);
    const std::string drawing = "schedule " + name + " --stages 2 --micro-batches 4 --format csv";
    const std::string ours = shop.succeed(drawing).out;
    for (const std::string flags : {" --dialect pytorch", " --dialect pytorch-old --messages"}) {
      shop.succeed(drawing + flags + " -o " + name + ".csv");
      CHECK_THAT(shop.succeed("check " + name + ".csv").out,
                 Catch::StartsWith(name + ".csv: a valid schedule, read as 'pytorch"));
      CHECK(shop.succeed("import schedule " + name + ".csv").out == ours);
      CHECK(replayed(shop, replay + name + ".csv") == named);
    }
  }
  const std::string back = "import schedule 1f1b.csv --dialect pytorch";
  CHECK(shop.succeed(back).out == shop.succeed("schedule 1f1b --stages 2 --micro-batches 4 --format csv --dialect "
                                               "pytorch")
                                      .out);
  CHECK(shop.run("schedule 1f1b --stages 2 --micro-batches 4 --format csv --dialect torch").status == 2);
}

TEST_CASE("messages of a schedule file that cannot run keep it from being replayed", "[cli]") {
  const Workshop shop;
  shop.write("circle.csv", "0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  const Outcome checked = shop.run("check circle.csv --format json");
  CHECK(checked.status == 1);
  CHECK(checked.json().at("dialect") == "pytorch");
  CHECK(checked.json().at("defects").size() == 1);
  const Outcome replayed = shop.run("replay " + kChain + " --devices 2 --strategy uniform --schedule circle.csv");
  CHECK(replayed.status == 1);
  CHECK_THAT(replayed.err, Catch::Contains("deadlock: 0RECV_B0 on rank 0 waits for 1SEND_B0"));
  CHECK(shop.run("import schedule circle.csv").status == 2);
}

TEST_CASE("a schedule file that cannot run is refused with the reason", "[cli]") {
  const Workshop shop;
  shop.write("twice.csv", "F0@0,F0@0,B0@0\n");
  const Outcome twice = shop.run("check twice.csv");
  CHECK(twice.status == 1);
  CHECK(twice.out == "twice.csv:1:1: F0@0 appears more than once, again on rank 0\n");
  shop.write("deadlock.csv", "F0@0,B0@0\n\nB0@1,F0@1\n");
  CHECK(shop.run("check deadlock.csv").out == "deadlock.csv:3:1: deadlock: B0@1 on rank 1 waits for F0@1\n");
  shop.write("missing.csv", "F0@0,B0@0\nF0@1\n");
  CHECK(shop.run("check missing.csv").out == "missing.csv:2:1: B0@1 is missing\n");
  CHECK_THAT(shop.run("import schedule missing.csv").err, Catch::Contains("missing.csv:2:1: B0@1 is missing"));
  shop.write("token.csv", "F0@0,\nF0@1,G0@1\n");
  const Outcome token = shop.run("check token.csv");
  CHECK(token.status == 2);
  CHECK_THAT(token.err, Catch::StartsWith("error: token.csv:2:6: 'G0@1' is no task"));
  shop.write("three.csv", "F0@0,B0@0\nF0@1,B0@1\nF0@2,B0@2\n");
  const Outcome three = shop.run("replay " + kChain + " --devices 2 --strategy uniform --schedule three.csv");
  CHECK(three.status == 1);
  CHECK_THAT(three.err, Catch::Contains("the schedule is for 3 stages and 1 micro-batches, the plan has 2 stages"));
  CHECK(shop.run("check " + shop.write("plan.yaml", "stages: []\n")).status == 2);
}

TEST_CASE("a schedule file ranks beside the named ones, with its own number of micro-batches", "[cli]") {
  const Workshop shop;
  shop.write("mine.csv", shop.run("schedule 1f1b --stages 2 --micro-batches 4 --format csv").out);
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: [1, 4]}\n"
                               "compare: {strategies: uniform}\n");
  const Outcome csv = shop.run("compare study.yaml --set compare.schedules='[1f1b, mine.csv]' --format csv");
  CHECK(csv.status == 0);
  CHECK_THAT(csv.out, Catch::Contains("uniform,mine,") && Catch::Contains("uniform,1f1b,"));
  const Outcome json = shop.run("compare study.yaml --set compare.schedules=mine.csv --format json");
  CHECK_THAT(json.out, Catch::Contains("mine.csv\"") && Catch::Contains("\"schedule\": \"mine\"")); // an input, a run
  const Outcome missing = shop.run("compare study.yaml --set compare.schedules=mien.csv");
  CHECK(missing.status == 2);
  CHECK_THAT(missing.err, Catch::Contains("no such schedule file 'mien.csv'") && Catch::Contains("'mine.csv'?"));
  const Outcome replay = shop.run("replay " + kChain + " --devices 2 --strategy uniform --schedule mine.csv " +
                                  "--set training.global_batch=4 --set training.micro_batches='[1, 2, 4]'");
  CHECK(replay.status == 0); // of the study's numbers the one that the file is for
  CHECK_THAT(replay.out + replay.err, Catch::Contains("4 micro-batches takes 30.00 s"));
}

TEST_CASE("a schedule that is impossible for these numbers is refused with the nearest possible numbers", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.run("schedule hanayo --stages 3 --micro-batches 4 --chunks 3");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Catch::Contains("nearest: 2 or 4"));
  CHECK(shop.run("schedule gpipe --stages 2 --micro-batches 2 --chunks 2").status == 2);
  CHECK(shop.run("schedule gpipe --stages 2 --micro-batches 2 --forward 1,2,3").status == 2);
  CHECK(shop.run("schedule gpipe --stages 2 --micro-batches 2 --forward -1").status == 2);
  CHECK(shop.run("schedule gpipe --stages 2 --micro-batches 2 --backward 1 --backward-input 1").status == 2);
  CHECK(shop.run("schedule gpipe --stages 2 --micro-batches 2 --backward-input 1").status == 2);
}

} // namespace
} // namespace stagecraft::test
