// Pipelines as files, the order of their steps, and dry runs.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "sim/base/system/file.hpp"
#include "tests/calibrate/fresh_file.hpp"
#include "tests/calibrate/pipelines.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/pipelines/host_lane.hpp"
#include "calibrate/gpu/pipelines/pipelines.hpp"

namespace stagecraft::gpu {
namespace {

using stagecraft::test::fresh_file;
using stagecraft::test::two_stages;

const std::atomic<bool> kGoOn{false};

std::string refusal(const std::string& text) {
  try {
    parse_pipeline(text, "p");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a pipeline's file says all of it", "[gpu][pipeline]") {
  Pipeline pipeline = two_stages();
  pipeline.devices.push_back({"cpu", 0, 4});
  pipeline.devices.push_back({"whole", 0, 0});
  pipeline.programs.resize(4);
  pipeline.works[4].route = CopyRoute::shaped;
  pipeline.works[4].latency = 1e-5;
  pipeline.works[4].bandwidth = 2.5e10 / 3;
  const std::string text = to_text(pipeline);
  const Pipeline read = parse_pipeline(text, "p");
  CHECK(to_text(read) == text);
  CHECK(read.name == "two stages");
  CHECK(read.works[4].bandwidth == 2.5e10 / 3); // to the last bit
  CHECK(read.works[1].kernels[0].times == 8);
  CHECK(read.devices[2].on_host());
  CHECK((read.ties.size() == 2 && read.programs == pipeline.programs && read.after == pipeline.after));
  CHECK(parse_pipeline("# a remark\n\n" + replaced(text, "end\n", "end # of it\n"), "p").tasks() == 13);
}

TEST_CASE("an error in a pipeline's file is told with its place and what is allowed", "[gpu][pipeline]") {
  const std::string text = to_text(two_stages());
  CHECK(refusal("") == "p:1:1: an empty file; allowed: 'stagecraft-pipeline 1' and what follows");
  CHECK(refusal("stagecraft-times 1\n") == "p:1:1: begins with 'stagecraft-times'; allowed: stagecraft-pipeline");
  CHECK(refusal("stagecraft-pipeline 2\n") == "p:1:21: version '2'; allowed: 1");
  CHECK_THAT(refusal(text.substr(0, text.size() - 4)), Catch::Contains("cut off; allowed: a last line 'end'"));
  CHECK(refusal(replaced(text, "count=2", "count=0")) == "p:3:18: '0'; allowed: 1 to 1000");
  CHECK(refusal(replaced(text, "count=2", "count=02")) == "p:3:18: '02'; allowed: 1 to 1000");
  CHECK(refusal(replaced(text, "count=2", "")) == "p:3:12: 'count=' is missing");
  CHECK(refusal(replaced(text, "count=2", "count=2 count=2")) == "p:3:20: 'count' stands twice");
  CHECK(refusal(replaced(text, "count=2", "count=2 often=2")) == "p:3:20: unknown key 'often'; allowed here: count");
  CHECK(refusal(replaced(text, "processors=64", "processors=-8")) == "p:4:30: '-8'; allowed: 1 to 1048576");
  CHECK(
      refusal(replaced(text, "kernel 4 gemm", "kernel 4 gemn")).find("p:7:10: unknown kernel 'gemn'; allowed: gemm") ==
      0);
  CHECK(refusal(replaced(text, "kernel 4", "kernel 0")).find("p:7:8: '0'; allowed: how often") == 0);
  CHECK_THAT(refusal(replaced(text, "way=device", "way=devise")), Catch::Contains("allowed: device, host, shaped"));
  CHECK_THAT(refusal(replaced(text, "latency=0", "latency=-1")),
             Catch::Contains("'-1'; allowed: a number of 0 or more"));
  CHECK_THAT(refusal(replaced(text, "to=1", "to=2")), Catch::Contains("'2'; allowed: 0 to 1"));
  CHECK_THAT(refusal(replaced(text, "then=8", "then=13")), Catch::Contains("there is no task 13; allowed: 0 to 12"));
  CHECK_THAT(refusal(replaced(text, "tasks=0,1,2,3", "tasks=0,1,2")),
             Catch::Contains("task 3 computes and stands in no program"));
  CHECK_THAT(refusal(replaced(text, "tasks=0,1,2,3", "tasks=0,1,2,4")),
             Catch::Contains("task 4 is no computation of this device"));
  CHECK_THAT(refusal(replaced(text, "tasks=0,1,2,3", "tasks=0,1,2,2")), Catch::Contains("task 2 is no computation"));
  CHECK_THAT(refusal(replaced(text, "tasks=0,1,2,3", "tasks=0,1,2,3,")), Catch::Contains("''; allowed: 0 to 12"));
  CHECK_THAT(refusal(replaced(text, "end\n", "end\nend\n")), Catch::Contains("nothing may follow 'end'"));
  CHECK_THAT(refusal(replaced(text, "work join", "wok join")), Catch::Contains("unknown line 'wok'; allowed: name,"));
}

// Whatever is removed or inserted, the reader throws its error or returns a pipeline, nothing else.
TEST_CASE("a damaged file is refused or read, wherever it is damaged", "[gpu][pipeline]") {
  const std::string text = to_text(two_stages());
  for (std::size_t at = 0; at < text.size(); at += 3) {
    for (const char* patch : {"", "=", "\n", "999999999999999999999"}) {
      std::string damaged = text;
      damaged.replace(at, 1, patch);
      try {
        order_steps(parse_pipeline(damaged, "p"));
      } catch (const std::invalid_argument& error) {
        CHECK(std::string(error.what()).size() > 5);
      }
    }
  }
}

TEST_CASE("tasks that wait for each other are refused before anything runs", "[gpu][pipeline]") {
  Pipeline pipeline = two_stages();
  pipeline.after[3].push_back(0); // B0 before F0, which comes first on its device
  CHECK_THROWS_WITH(order_steps(pipeline), Catch::Contains("tasks wait for each other"));
}

TEST_CASE("partitions must fit, with a unit to spare for copies", "[gpu][pipeline]") {
  Pipeline pipeline = two_stages();
  CHECK(why_no_partitions(pipeline, 132, 8).empty());
  pipeline.devices[0].processors = 88; // 88 + 32 = 120 = 16 units less one
  CHECK(why_no_partitions(pipeline, 132, 8).empty());
  pipeline.devices[0].processors = 96;
  CHECK(why_no_partitions(pipeline, 132, 8) ==
        "the partitions have 128 multiprocessors together; allowed: 120, as copies have a unit of their own");
  pipeline.devices[0].processors = 60;
  CHECK(why_no_partitions(pipeline, 132, 8) == "gpu/0 has 60 multiprocessors; allowed: multiples of 8");
  pipeline.devices[0].processors = 0;
  CHECK_THAT(why_no_partitions(pipeline, 132, 8), Catch::Contains("one device has the whole GPU"));
  pipeline.devices[1] = {"cpu", 0, 4}; // the whole GPU beside its host
  CHECK(why_no_partitions(pipeline, 132, 8).empty());
  pipeline.devices[0].processors = 132; // it as well
  CHECK(why_no_partitions(pipeline, 132, 8).empty());
  pipeline.devices[0].processors = 131;
  CHECK_FALSE(why_no_partitions(pipeline, 132, 8).empty());
}

TEST_CASE("a dry run keeps the order, and its parts are those that it was made of", "[gpu][pipeline]") {
  const Pipeline pipeline = two_stages();
  const std::unique_ptr<Lanes> lanes = make_dry_lanes(pipeline);
  const CarriedOut carried = carry_out(pipeline, *lanes, 3);
  CHECK(test::broken_order(pipeline, carried.spans).empty());
  // a product takes as much longer on 32 multiprocessors as 64 are more, but for 3 us to launch
  const double once = (carried.parts.alone[0] / 4 - 3e-6), other = (carried.parts.alone[2] / 4 - 3e-6);
  CHECK(other / once == Approx(2).epsilon(1e-3));
  CHECK(carried.parts.alone[1] == Approx(2 * carried.parts.alone[0]).epsilon(1e-4));
  CHECK(carried.parts.slowdowns == std::vector<double>{1, 1});
  CHECK(carried.parts.gap == 0);
  // 1 MiB at 200 GB/s, 3 us to launch, two hand-overs of 4 us
  REQUIRE(carried.parts.hops.size() == 7);
  CHECK(carried.parts.hops[4].front() == Approx(1048576 / 2e11 + 3e-6 + 2 * 4e-6).epsilon(1e-3));
  CHECK(carried.parts.hops[0].empty());
  // GPipe of 2 stages and 2 micro-batches, twice: the slower device computes all the time but for F0 forth and B back
  const double busy = 2 * (carried.parts.alone[2] + carried.parts.alone[3]);
  const double hop = carried.parts.hops[4].front();
  const double iteration = carried.parts.alone[0] + hop + busy + hop + carried.parts.alone[1];
  CHECK(1e-9 * static_cast<double>(carried.spans.back().finish) == Approx(2 * iteration).epsilon(0.02));
}

// Lanes on which device 1 takes twice as long while device 0 does its work 1; nothing else slows anything.
class CompanyLanes : public Lanes {
public:
  explicit CompanyLanes(const Pipeline& pipeline) : dry_(make_dry_lanes(pipeline)) {}

  std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) override {
    std::vector<LaneSpan> spans = dry_->run(steps);
    const bool beside = std::any_of(steps.begin(), steps.end(), [](const LaneStep& step) { return step.work == 1; });
    std::int64_t late = 0;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      if (steps[step].lane == 1 && beside) {
        const std::int64_t more = spans[step].finish - spans[step].start;
        spans[step].start += late;
        spans[step].finish += late += more;
      }
    }
    return spans;
  }
  Facts conditions() const override { return {}; }

private:
  std::unique_ptr<Lanes> dry_;
};

// Lanes that note which device runs by itself.
class NotingLanes : public Lanes {
public:
  NotingLanes(const Pipeline& pipeline, std::vector<int>& alone) : dry_(make_dry_lanes(pipeline)), alone_(alone) {}

  std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) override {
    const int lane = steps.front().lane;
    if (std::all_of(steps.begin(), steps.end(), [&](const LaneStep& step) { return step.lane == lane; })) {
      alone_.push_back(lane);
    }
    return dry_->run(steps);
  }
  Facts conditions() const override { return {}; }

private:
  std::unique_ptr<Lanes> dry_;
  std::vector<int>& alone_;
};

TEST_CASE("rounds of measuring begin with another device each", "[gpu][pipeline]") {
  const Pipeline pipeline = two_stages();
  std::vector<int> alone;
  NotingLanes lanes(pipeline, alone);
  for (const std::size_t round : {0, 1, 2}) {
    measure_parts(pipeline, lanes, round);
  }
  CHECK(alone == std::vector<int>{0, 1, 1, 0, 0, 1});
}

TEST_CASE("the slowdown of one device by another is told pair by pair", "[gpu][pipeline]") {
  const Pipeline pipeline = two_stages();
  CompanyLanes lanes(pipeline);
  // work 0, 38 us, is too short to slow others; 1 slows both works of device 1; nothing slows device 0
  const std::vector<double> contention = measure_contention(pipeline, measure_parts(pipeline, lanes, 0).alone, lanes);
  REQUIRE(contention.size() == 49);
  CHECK(contention[2 * 7 + 0] == 1);
  CHECK(contention[2 * 7 + 1] == Approx(2).epsilon(1e-3));
  CHECK(contention[3 * 7 + 1] == Approx(2).epsilon(1e-3));
  CHECK(contention[0 * 7 + 3] == Approx(1).epsilon(1e-3));
  CarriedOut carried = carry_out(pipeline, *make_dry_lanes(pipeline), 1);
  carried.parts.contention = contention;
  CHECK(parse_times(to_text(carried), "t").parts.contention == contention);
}

TEST_CASE("a step that fails is named with device and cause, and the next pipeline runs", "[gpu][pipeline]") {
  const Pipeline pipeline = two_stages();
  for (int failing : {0, 3, 11}) {
    const std::unique_ptr<Lanes> lanes = make_dry_lanes(pipeline, failing);
    CHECK_THROWS_WITH(carry_out(pipeline, *lanes, 1),
                      Catch::Contains(" of iteration 0 on gpu/") && Catch::Contains(": was told to fail"));
  }
  const CarriedOut failed =
      carry_out_text(to_text(pipeline), "p", 1, [](const Pipeline& one) { return make_dry_lanes(one, 0); });
  CHECK(failed.failure == "F0@0 of iteration 0 on gpu/0: was told to fail");
  const CarriedOut read = parse_times(to_text(failed), "t");
  CHECK(read.failure == failed.failure);
  CHECK(read.spans.empty());
}

TEST_CASE("times come back from their file to the last bit", "[gpu][pipeline]") {
  const Pipeline pipeline = two_stages();
  const std::unique_ptr<Lanes> lanes = make_dry_lanes(pipeline);
  const CarriedOut carried = carry_out(pipeline, *lanes, 1);
  const std::string text = to_text(carried);
  const CarriedOut read = parse_times(text, "t");
  CHECK(to_text(read) == text);
  CHECK(read.pipeline == digest_of(to_text(pipeline)));
  CHECK(read.parts.alone == carried.parts.alone);
  CHECK(read.conditions == carried.conditions);
  CHECK_THROWS_WITH(parse_times(text.substr(0, text.size() - 4), "t"), Catch::Contains("cut off"));
  CHECK_THROWS_WITH(parse_times(replaced(text, "span start=0", "span start=x"), "t"),
                    Catch::Contains("'x'; allowed: 0 to"));
  CHECK_THROWS_WITH(parse_times(replaced(text, "alone work=0", "alone work=1"), "t"),
                    Catch::Contains("'1'; allowed: 0 to 0"));
}

// A line names only works that the lines before it have, or it would ask for memory by a number alone.
TEST_CASE("times of works that are not there are refused", "[gpu][pipeline][bad-input]") {
  const std::string head = "stagecraft-times 1\npipeline 0123456789abcdef\n", one = "alone work=0 seconds=1\n";
  const auto refused = [&](const std::string& lines, const std::string& why) {
    CHECK_THROWS_WITH(parse_times(head + lines + "end\n", "t"), Catch::Contains(why));
  };
  CHECK_NOTHROW(parse_times(head + one + "beside work=0 other=0 factor=2\nhop work=0 seconds=1,2\nend\n", "t"));
  refused("hop work=0 seconds=1\n", "t:3:1: 'hop' without a line 'alone' of its work");
  refused(one + "hop work=1000000000 seconds=1\n", "'1000000000'; allowed: 0 to 0");
  refused("beside work=0 other=0 factor=2\n", "'beside' after 0 lines 'alone'; allowed: after 1 to 4096");
  refused(one + "beside work=0 other=0 factor=2\nalone work=1 seconds=1\n", "'alone' after 'beside'");
  std::string many;
  for (int work = 0; work < 4097; ++work) {
    many += "alone work=" + std::to_string(work) + " seconds=1\n";
  }
  refused(many + "beside work=0 other=0 factor=2\n", "'beside' after 4097 lines 'alone'");
}

TEST_CASE("files of pipelines are carried out once each", "[gpu][pipeline]") {
  const std::string first = fresh_file("first.pipeline"), second = fresh_file("second.pipeline");
  Options options;
  options.pipelines = {first, second};
  options.runs = 1;
  std::ofstream(first) << to_text(two_stages());
  std::ofstream(second) << to_text(two_stages(1));
  for (const std::string& one : options.pipelines) {
    std::filesystem::remove(times_path(one, ""));
  }
  int made = 0;
  const MakeLanes make = [&](const Pipeline& pipeline) { return make_dry_lanes(pipeline, ++made == 1 ? 0 : -1); };
  std::string told;
  const auto tell = [&](const std::string& text) { told += text + "\n"; };
  PipelinesEnd end = carry_out_files(options, make, kGoOn, tell);
  CHECK((end.done == 1 && end.failed == 1 && end.left == 0));
  CHECK_THAT(told, Catch::Contains("first.pipeline: F0@0 of iteration 0 on gpu/0: was told to fail"));
  end = carry_out_files(options, make, kGoOn, tell); // the failed one runs again, the other has its times
  CHECK((end.done == 2 && end.failed == 0 && made == 3));
  CHECK(parse_times(read_file(times_path(first, "")), "t").failure.empty());
  std::ofstream(second) << to_text(two_stages(3)); // another pipeline
  end = carry_out_files(options, make, kGoOn, tell);
  CHECK((end.done == 2 && made == 4));
  CHECK(times_path("a/b.pipeline", "") == "a/b.times");
  CHECK(times_path("a/b.pipeline", "out") == "out/b.times");
  options.pipelines.push_back("nowhere.pipeline");
  CHECK_THROWS_WITH(carry_out_files(options, make, kGoOn, tell), "cannot read nowhere.pipeline");
}

TEST_CASE("threads of the host really multiply, each its share", "[gpu][pipeline]") {
  HostTeam team(3);
  const HostKernel product(parse_kernel("gemm forward fp32 batch=2 m=7 n=600 k=70"));
  team.run([&](int part, int parts) { product.run(part, parts); });
  for (const std::size_t row : {0, 6, 7, 13}) {
    for (const std::size_t column : {0, 511, 512, 599}) {
      double sum = 0;
      for (std::size_t p = 0; p < 70; ++p) {
        sum += static_cast<double>(product.first()[row * 70 + p]) *
               static_cast<double>(product.second()[(row / 7 * 70 + p) * 600 + column]);
      }
      CHECK(static_cast<double>(product.result()[row * 600 + column]) == Approx(sum));
    }
  }
  const HostKernel pass(parse_kernel("gelu forward bf16 rows=10 columns=33"));
  team.run([&](int part, int parts) { pass.run(part, parts); });
  CHECK(static_cast<double>(pass.result()[329]) ==
        Approx(0.5 * static_cast<double>(pass.first()[329]) + static_cast<double>(pass.second()[329])));
}

// A host lane waits for times that another thread writes, here instead of a GPU.
TEST_CASE("a lane of the host waits for what it follows, and stops when the run does", "[gpu][pipeline]") {
  const std::vector<LaneStep> steps = {{0, -1, {}}, {1, 0, {0}}, {1, 1, {}}};
  std::vector<long long> start(3, 0), finish(3, 0);
  HostRun run;
  run.times = {start.data(), finish.data()};
  std::vector<int> did;
  const HostAction action = [&](const LaneStep& step) { did.push_back(step.work); };
  std::thread lane([&] { serve_host_lane(steps, 1, action, run); });
  run.released = true;
  static_cast<volatile long long&>(finish[0]) = run.now() + 2'000'000; // the future of a clock that is ahead
  lane.join();
  CHECK(did == std::vector<int>{0, 1});
  CHECK(start[1] >= finish[0]);
  CHECK(start[2] >= finish[1]);

  finish = {0, 0, 0};
  std::thread waiting([&] { serve_host_lane(steps, 1, action, run); });
  run.fail(0, "out of paper");
  waiting.join();
  CHECK(did.size() == 2);
  CHECK((run.failed_step() == 0 && run.cause() == "out of paper"));
  run.fail(1, "later");
  CHECK(run.cause() == "out of paper");
}

} // namespace
} // namespace stagecraft::gpu
