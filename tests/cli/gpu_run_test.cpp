// A run that leaves as a file and comes back as times, as users do it; the GPU is simulated.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/cli/program.hpp"

#include "calibrate/gpu/pipelines/pipelines.hpp"

namespace stagecraft::test {
namespace {

const std::string kFlags = (kRoot / "reports/reality-gpu/mlp.yaml").string() + " --platform " +
                           (kRoot / "reports/reality-gpu/four-parts.yaml").string() +
                           " --strategy capability --micro-batches 8 --iterations 2 --set training.global_batch=2048 "
                           "--set training.precision=bf16 ";

std::string carried_out(const std::string& pipeline) {
  return gpu::to_text(
      gpu::carry_out_text(pipeline, "p", 2, [](const gpu::Pipeline& one) { return make_dry_lanes(one); }));
}

TEST_CASE("a pipeline carried out elsewhere becomes a run that its parts predict", "[cli][gpu]") {
  const Workshop shop;
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "interleaved"}) {
    for (const std::string copies : {"device", "shaped"}) {
      const std::string flags = kFlags + "--schedule " + schedule + " --copies " + copies;
      shop.succeed("export pipeline " + flags + " -o a.pipeline");
      shop.write("a.times", carried_out(shop.read("a.pipeline")));
      shop.succeed("execute " + flags + " --backend gpu --carried-out a.times --quiet -o run.json");
      const Json run = Json::parse(shop.read("run.json"));
      CHECK(run["executed"]["backend"] == "gpu");
      CHECK_THAT(run["conditions"]["device"].get<std::string>(), Catch::Contains("a dry run"));
      const Json told = shop.succeed("validate run.json --timeline --format json").json();
      INFO(schedule << ", copies " << copies);
      CHECK(told["measured_seconds"].get<double>() > 1e-3);
      // made-up lanes take what their parts take; hand-overs within the run may be waited for twice
      CHECK(std::abs(told["error"].get<double>()) < 0.01);
      CHECK(std::abs(told["retold_error"].get<double>()) < 0.01);
    }
  }
}

TEST_CASE("times of another pipeline, damaged or of a run that failed, are refused", "[cli][gpu]") {
  const Workshop shop;
  shop.succeed("export pipeline " + kFlags + "--schedule gpipe -o a.pipeline");
  const std::string pipeline = shop.read("a.pipeline"), times = carried_out(pipeline);
  shop.write("a.times", times);
  const std::string execute = "execute " + kFlags + "--backend gpu --carried-out a.times -o run.json ";
  const Outcome other = shop.run(execute + "--schedule 1f1b");
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Catch::Contains("allowed: those of "));
  shop.write("a.times", times.substr(0, times.size() - 4));
  CHECK_THAT(shop.run(execute + "--schedule gpipe").err, Catch::Contains("cut off"));
  shop.write("a.times", "stagecraft-times 1\npipeline 0123456789abcdef\nfailed F0@0 on gpu: out of paper\nend\n");
  const Outcome failed = shop.run(execute + "--schedule gpipe");
  CHECK(failed.status == 1);
  CHECK_THAT(failed.err, Catch::Contains("the run ended early: F0@0 on gpu: out of paper"));
  CHECK(shop.run("execute " + kFlags + "--backend cpu --carried-out a.times --schedule gpipe").status == 2);
  CHECK(shop.run("export pipeline " + kFlags + "--copies magic").status == 2);
}

TEST_CASE("a program that carries pipelines out is called in place, and may have no device", "[cli][gpu]") {
  const Workshop shop;
  shop.succeed("export pipeline " + kFlags + "--schedule gpipe -o a.pipeline");
  shop.write("a.times", carried_out(shop.read("a.pipeline")));
  shop.script("there", "cat >seen\ncat a.times\n");
  shop.script("absent", "echo 'calibrate_gpu: no CUDA device: none' >&2\nexit 4\n");
  const std::string execute = "execute " + kFlags + "--schedule gpipe --backend gpu -o run.json ";
  CHECK(shop.run(execute + "--gpu-binary ./nowhere").status == 2);
  shop.succeed(execute + "--quiet --gpu-binary ./there");
  CHECK(shop.read("seen") == shop.read("a.pipeline"));
  const Outcome absent = shop.run(execute + "--gpu-binary ./absent");
  CHECK(absent.status == 4);
  CHECK_THAT(absent.err, Catch::Contains("no CUDA device: none"));
}

} // namespace
} // namespace stagecraft::test
