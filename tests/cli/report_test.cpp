// stagecraft report: results as an HTML page and as figures.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

const std::string kRun = "replay " + kChain +
                         " --devices 2 --bandwidth '1 GB/s' --strategy uniform --schedule 1f1b "
                         "--set training.global_batch=4 --set training.micro_batches=4 ";

TEST_CASE("report makes one page of a run, and the same bytes again", "[cli][report]") {
  const Workshop shop;
  shop.succeed(kRun + "--timeline --format json -o run.json");
  shop.succeed("report run.json -o a.html");
  shop.succeed("report run.json -o b.html");
  const std::string page = shop.read("a.html");
  CHECK(page == shop.read("b.html"));
  CHECK_THAT(page, Catch::StartsWith("<!doctype html>"));
  CHECK_THAT(page, Catch::Contains("<h1>uniform, 1f1b, M 4 of chain on 2 x profiled</h1>"));
  CHECK_THAT(page,
             Catch::Contains("<p class=\"headline\">Training chain on 2 devices as a pipeline of 2 stages takes"));
  CHECK_THAT(page, Catch::Contains("<a href=\"./run.json\">run.json</a>"));
  CHECK(page.find("http-equiv=\"Content-Security-Policy\"") != std::string::npos);
}

TEST_CASE("the results in a folder share a page, and other files are skipped", "[cli][report]") {
  const Workshop shop;
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2, bandwidth: 1 GB/s}\n"
                               "training: {global_batch: 4, micro_batches: [2, 4]}\n"
                               "compare: {strategies: [uniform, single], schedules: [gpipe, 1f1b]}\n"
                               "sweep: {platform.bandwidth: [1 GB/s, 2 GB/s]}\n");
  shop.succeed("sweep study.yaml --quiet --results results");
  shop.succeed("compare study.yaml --timeline 1 --quiet -o results/compare.json");
  shop.write("results/other.json", "{\"neither\": 1}");
  const Outcome told = shop.succeed("report results -o page.html --title 'Two results'");
  CHECK_THAT(told.err, Catch::Contains("passed over: results/other.json: not a result that a report shows"));
  const std::string page = shop.read("page.html");
  CHECK_THAT(page, Catch::Contains("<h1>Two results</h1>"));
  CHECK_THAT(page, Catch::Contains(": Along each axis</h2>"));
  CHECK_THAT(page, Catch::Contains("<h2>Timelines side by side</h2>"));
  CHECK_THAT(page, Catch::Contains("<summary>study.yaml</summary>\n<pre tabindex=\"0\">model: "));
}

TEST_CASE("runs of several files stand on one axis", "[cli][report]") {
  const Workshop shop;
  shop.succeed(kRun + "--timeline --format json -o one.json");
  shop.succeed(kRun + "--set training.micro_batches=2 --timeline --format json -o other.json");
  shop.succeed("report one.json other.json -o page.html");
  const std::string page = shop.read("page.html");
  const std::size_t begin = page.find("id=\"data\">") + 10;
  const Json data = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const Json& last = data.back().at("timelines");
  REQUIRE(last.size() == 2);
  CHECK(last[0].at("title") == "uniform, 1f1b, M 4 of chain on 2 x profiled");
  CHECK(last[1].at("title") == "uniform, 1f1b, M 2 of chain on 2 x profiled");
  CHECK(data.front().at("timelines").empty());
  CHECK_THAT(page, Catch::Contains("<h1>one.json and other.json</h1>"));
}

TEST_CASE("report draws figures for papers, with script and data beside them", "[cli][report]") {
  const Workshop shop;
  shop.succeed(kRun + "--format json -o run.json");
  const Outcome told = shop.succeed("report run.json --figures figures");
  CHECK_THAT(told.err, Catch::Contains("figures/utilization.svg"));
  CHECK_THAT(shop.read("figures/utilization.gp"), Catch::Contains("set output 'utilization.pdf'"));
  CHECK(shop.read("figures/utilization.dat").find('\n') != std::string::npos);
  CHECK_THAT(shop.read("figures/utilization.csv"), Catch::StartsWith("share of the iteration [%],name\n"));
  if (told.err.find("drawn: figures/utilization.svg") != std::string::npos) {
    CHECK_THAT(shop.read("figures/utilization.svg"), Catch::Contains("</svg>"));
    CHECK_THAT(shop.read("figures/utilization.pdf"), Catch::StartsWith("%PDF"));
  }
}

TEST_CASE("figures of several results have the names of their files in front", "[cli][report]") {
  const Workshop shop;
  shop.succeed(kRun + "--format json -o one.json");
  shop.succeed(kRun + "--set training.micro_batches=2 --format json -o other.json");
  shop.succeed("report one.json other.json --figures figures");
  for (const char* file : {"one-utilization.csv", "other-utilization.csv", "difference.csv"}) {
    CHECK(std::filesystem::exists(shop.folder() / "figures" / file));
  }
  CHECK_FALSE(std::filesystem::exists(shop.folder() / "figures" / "utilization-2.csv"));
  CHECK_THAT(shop.read("figures/difference.csv"), Catch::StartsWith("value [s],name\n"));
}

TEST_CASE("report says that results have no charts to draw", "[cli][report]") {
  const Workshop shop;
  shop.write("trace.json", R"({"traceEvents": [{"ph": "X", "ts": 0, "dur": 1, "name": "F"}]})");
  const Outcome told = shop.succeed("report trace.json --figures figures");
  CHECK_THAT(told.err, Catch::Contains("no figures: A trace has no charts"));
  CHECK_FALSE(std::filesystem::exists(shop.folder() / "figures"));
}

TEST_CASE("the page of an explanation links study, model and platform", "[cli][report]") {
  const Workshop shop;
  shop.write("study.yaml", "model: {file: " + kChain +
                               ", device: v100-sxm2-16gb}\nplatform: mine.yaml\n"
                               "training: {global_batch: 4, micro_batches: 4}\n"
                               "compare: {strategies: [uniform], schedules: [1f1b]}\n");
  shop.write("mine.yaml",
             "name: mine\nnodes:\n  - name: n\n    host: {cores: 4, core_speed: 32 GFLOP/s, memory: 64 GiB,\n"
             "           memory_bandwidth: 100 GB/s, disk_bandwidth: 2 GB/s,\n"
             "           power: {idle: 200 W, core_busy: 6 W, core_spin: 3 W}}\n"
             "    devices: [{type: v100-sxm2-16gb, count: 2}]\n"
             "    links: [{kind: pcie-switch, devices: all, bandwidth: 12 GB/s, latency: 2.5 us}]\n");
  shop.succeed("explain study.yaml --quiet --format json -o why.json");
  const Json inputs = Json::parse(shop.read("why.json")).at("inputs");
  shop.succeed("report why.json -o page.html");
  const std::string page = shop.read("page.html");
  for (const std::string file : {"study.yaml", "mine.yaml", "tests/study/chain.yaml"}) { // texts are in the page
    CHECK_THAT(page, Catch::Contains("<summary>" + file + "</summary>"));
  }
  CHECK_THAT(page, Catch::Contains("power: {idle: 200 W"));
  CHECK_THAT(page, Catch::Contains("<a href=\"./why.json\">why.json</a>"));

  shop.succeed("plan " + kChain + " --devices 2 --bandwidth '1 GB/s' --strategy uniform -o plan.yaml");
  shop.succeed("explain " + kChain + " --devices 2 --bandwidth '1 GB/s' --plan plan.yaml --format json -o flags.json");
  CHECK(Json::parse(shop.read("flags.json")).at("inputs") == Json{"tests/study/chain.yaml", "plan.yaml"});
}

TEST_CASE("pages of adapt, judge, validate and calibrate link what they were made from", "[cli][report]") {
  const Workshop shop;
  const std::string study = "platform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4}\n";
  shop.write("adapt.yaml",
             "model: " + kChain + "\n" + study + "adapt: {iterations: 10, round_iterations: 5, events: []}\n");
  shop.write("judge.yaml", "judge: {models: [" + kChain +
                               "], platforms: [{devices: 2}], planners: [uniform], schedule: 1f1b}\n" +
                               "training: {global_batch: 4, micro_batches: 4}\n");
  shop.write("gemm.csv", "m,n,k,dtype,latency_ms\n1024,1024,1024,fp16,1\n");
  const std::string runs = (kRoot / "reports/reality-cores/runs").string();
  const std::string device = "platforms/devices/v100-pcie-16gb.yaml";
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"adapt adapt.yaml", {"adapt.yaml", "tests/study/chain.yaml"}},
      {"judge judge.yaml", {"judge.yaml", "tests/study/chain.yaml"}},
      {"validate " + runs, {"reports/reality-cores/runs/elementwise-128-2-1f1b.json"}},
      {"calibrate show v100-pcie-16gb", {device}},
      {"calibrate predict v100-pcie-16gb --gemm gemm.csv", {device, "gemm.csv"}},
  };
  for (const auto& [command, files] : commands) {
    shop.succeed(command + " --format json --quiet -o result.json");
    shop.succeed("report result.json -o page.html");
    const std::string page = shop.read("page.html");
    for (const std::string& file : files) {
      INFO(command);
      const bool is_result = file.ends_with(".json");
      CHECK_THAT(page, Catch::Contains(is_result ? file + "\">" + file + "</a>" : "<summary>" + file + "</summary>"));
    }
  }
}

// A result of a stranger may name any file of this machine.
TEST_CASE("a page has no copies of files beyond the shipped folder and the current one, nor of large ones",
          "[cli][report]") {
  const Workshop shop, elsewhere;
  elsewhere.write("secret.yaml", "password: hunter2\n");
  shop.write("mine.yaml", "fits: here\n");
  shop.write("large.yaml", "# " + std::string(64 * 1024, 'x') + "\nfits: nowhere\n");
  std::filesystem::create_symlink(elsewhere.folder() / "secret.yaml", shop.folder() / "link.yaml");
  const std::string outside = (elsewhere.folder() / "secret.yaml").string();
  shop.write("result.json", Json{{"explanation", {{"summary", {"why"}}}},
                                 {"strategy", "s"},
                                 {"inputs", {outside, "link.yaml", "mine.yaml", "large.yaml"}}}
                                .dump());
  shop.succeed("report result.json -o page.html");
  const std::string page = shop.read("page.html");
  CHECK(page.find("hunter2") == std::string::npos);
  CHECK(page.find("fits: here") != std::string::npos);
  CHECK(page.find("fits: nowhere") == std::string::npos);
  CHECK(page.find("large.yaml</a> <span>(no copy: 64.02 KiB)</span>") != std::string::npos);
}

TEST_CASE("of two results the page says what changed", "[cli][report]") {
  const Workshop shop;
  shop.succeed(kRun + "--format json -o a.json");
  shop.succeed(kRun + "--set training.optimizer=adam --format json -o b.json");
  shop.succeed("report a.json b.json -o page.html");
  const std::string page = shop.read("page.html");
  CHECK_THAT(page, Catch::Contains("What changed from a.json to b.json"));
  CHECK_THAT(page, Catch::Contains("training optimizer from momentum to adam"));
}

TEST_CASE("report says what it cannot show", "[cli][report]") {
  const Workshop shop;
  shop.write("not.json", "nothing");
  CHECK(shop.run("report not.json -o a.html").status == 2);
  CHECK_THAT(shop.run("report not.json -o a.html").err, Catch::Contains("not.json:1:"));
  CHECK_THAT(shop.run("report not.json").err, Catch::Contains("where does the report go?"));
  CHECK_THAT(shop.run("report absent.json -o a.html").err, Catch::Contains("absent.json"));
  CHECK_THAT(shop.run("report . -o a.html").err, Catch::Contains("holds no results"));
}

TEST_CASE("compare keeps timelines of the best runs and of the naive one", "[cli][report]") {
  const Workshop shop;
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2, bandwidth: 1 GB/s}\n"
                               "training: {global_batch: 4, micro_batches: [2, 4]}\n"
                               "compare: {strategies: [uniform, single], schedules: [gpipe, 1f1b]}\n");
  shop.succeed("compare study.yaml --quiet -o plain.json");
  shop.succeed("compare study.yaml --quiet --timeline 1 -o one.json");
  const auto timelines = [&](const std::string& file) {
    std::size_t count = 0;
    const Json document = Json::parse(shop.read(file));
    for (const Json& run : document.at("runs")) {
      count += run.contains("timeline") ? 1 : 0;
    }
    return count;
  };
  CHECK(timelines("plain.json") == 0);
  CHECK(timelines("one.json") == 1); // the best is uniform's, the naive one too
  const Json document = Json::parse(shop.read("one.json"));
  CHECK(document.at("runs").at(0).at("explanation").contains("shares"));
  CHECK(document.at("inputs").at(0) == "study.yaml");
}

} // namespace
} // namespace stagecraft::test
