// stagecraft compare and replay: results in every format, files, settings, exit statuses.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "sim/report/terminal.hpp"
#include "tests/cli/program.hpp"
#include "tests/result/run_keys.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

void check_run(const Json& run) {
  for (const char* key : kRunKeys) {
    INFO(key);
    CHECK(run.contains(key));
  }
  REQUIRE(run.contains("timing"));
  CHECK(run.at("timing").contains("planning_seconds"));
  CHECK(run.at("timing").contains("replay_seconds"));
  if (!run.at("feasible").get<bool>()) {
    CHECK(run.at("iteration_seconds").is_null());
    CHECK(run.at("why_not").is_string());
    return;
  }
  CHECK(run.at("why_not").is_null());
  const std::size_t devices = run.at("devices").size();
  for (const char* key : {"utilization", "waiting_seconds", "exposed_communication_seconds", "peak_memory_bytes"}) {
    CHECK(run.at(key).size() == devices);
  }
  for (const char* part : {"devices", "hosts", "links"}) {
    CHECK(run.at("energy").at(part).contains("idle"));
    CHECK(run.at("energy").at(part).contains("dynamic"));
  }
  for (const Json& stage : run.at("stages")) {
    for (const char* key : {"operators", "devices", "tensor_parallel", "recompute", "chunk", "seconds"}) {
      CHECK(stage.contains(key));
    }
  }
}

TEST_CASE("compare gives JSON with every key, ranked, the infeasible rows last", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const Outcome outcome = shop.succeed("compare study.yaml --format json");
  CHECK(outcome.err.empty());
  const Json json = outcome.json();
  CHECK(json.at("schema") == "stagecraft/1");
  CHECK(json.at("model") == "chain");
  CHECK(json.at("platform").is_string());
  REQUIRE(json.at("runs").size() == 12);
  double last = 0;
  bool feasible = true;
  for (const Json& run : json.at("runs")) {
    check_run(run);
    CHECK((feasible || !run.at("feasible").get<bool>()));
    feasible = run.at("feasible");
    if (feasible) {
      CHECK(run.at("iteration_seconds").get<double>() >= last);
      last = run.at("iteration_seconds");
    }
  }
  CHECK_FALSE(feasible); // accumulate runs one stage only
}

TEST_CASE("compare shows asynchronous runs in a table of their own, unless throughput is asked for", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const std::string compare = "compare study.yaml --set compare.schedules='[1f1b, pipedream-2bw]' --set "
                              "platform.bandwidth='1 GB/s' ";
  const std::string exact = shop.succeed(compare).out;
  const std::size_t second = exact.find("\nAsynchronous, so ranked apart as throughput only");
  REQUIRE(second != std::string::npos);
  CHECK(exact.find("uniform under 1f1b") < exact.find("uniform under pipedream-2bw"));
  CHECK(exact.find("  staleness  ") > second);                 // a column of the second table alone
  CHECK(exact.find("steps old", second) == std::string::npos); // the column says it
  CHECK_THAT(exact.substr(second), Contains(" pipedream-2bw ") && !Contains(" 1f1b "));
  const std::string all = shop.succeed(compare + "--set compare.rank=throughput").out;
  CHECK_THAT(all, StartsWith("chain on ") && Contains("uniform under pipedream-2bw with 2 micro-batches wins"));
  CHECK(all.find("ranked apart") == std::string::npos);
}

TEST_CASE("the same study gives the same bytes, except for timing", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const std::string arguments = "compare study.yaml --format json";
  const Json first = without_timing(shop.succeed(arguments).json());
  CHECK(first.dump() == without_timing(shop.succeed(arguments).json()).dump());
  for (const char* format : {"table", "csv"}) {
    const std::string other = std::string("compare study.yaml --format ") + format;
    CHECK(shop.succeed(other).out == shop.succeed(other).out);
  }
}

// As below: device 0 keeps 4 MB of each of four micro-batches from the start of its F, at 0, 2, 4 and 6 s, on.
TEST_CASE("a model on a platform is compared as the study of both, and takes no flags beside a study", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2, bandwidth: 1 GB/s}\ntraining: {global_batch: 4, "
                               "micro_batches: 4}\ncompare: {strategies: [uniform, optimal], schedules: all}\n");
  const Json study = without_timing(shop.succeed("compare study.yaml --format json --quiet").json());
  const Json model =
      without_timing(shop.succeed("compare " + kChain +
                                  " --devices 2 --bandwidth '1 GB/s' --set training.global_batch=4 --micro-batches 4 "
                                  "--set compare.strategies='[uniform, optimal]' --format json --quiet")
                         .json());
  CHECK(model["runs"].size() > 40);
  CHECK(model["runs"] == study["runs"]);
  const Outcome both = shop.run("compare study.yaml --devices 2");
  CHECK(both.status == 2);
  CHECK_THAT(both.err, Contains("--devices: 'study.yaml' is a study, which names its model and platform"));
  CHECK(shop.run("compare " + kChain).status == 2); // on which platform?
}

TEST_CASE("a study that is saved runs to the same numbers", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  fs::create_directory(shop.folder() / "hf");
  shop.write("hf/config.json",
             R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
                 "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 4,
                 "vocab_size": 1000, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
                 "tie_word_embeddings": false})");
  fs::create_directory(shop.folder() / "kept");
  const std::string call =
      GENERATE(as<std::string>(), "compare study.yaml --strategies uniform --set training.global_batch=8",
               "compare hf/config.json --platform '2 x dgx-h100' --strategies uniform --schedules 1f1b,gpipe "
               "--set platform.network.bandwidth='5 GB/s'",
               "compare vgg16 --platform pcie-v100 --strategies uniform --micro-batches 4,8 "
               "--set platform.nodes.0.links.0.bandwidth='6 GB/s'",
               "compare hf/config.json --seq 64 --platform dgx-h100 --strategies data-parallel --confidence 10");
  const Json asked = without_timing(shop.succeed(call + " --quiet --format json --save-study kept/mine.yaml").json());
  const Json again = without_timing(shop.succeed("compare kept/mine.yaml --quiet --format json").json());
  CHECK_FALSE(asked.at("runs").empty());
  CHECK(asked.at("runs") == again.at("runs"));
  CHECK(asked.at("verdict") == again.at("verdict"));
}

TEST_CASE("what nobody says of a model is assumed, said, and gives way to what is said", "[cli]") {
  const Workshop shop;
  const std::string call = "compare gpt2 --platform pcie-v100 --strategies uniform --schedules gpipe ";
  const std::string text = shop.succeed(call).out;
  // Four V100 without bf16: 64 sequences, sixteen bits.
  CHECK_THAT(text, Contains("Assumed, since nobody says otherwise: training.global_batch=64, training.optimizer=adam, "
                            "training.precision=fp16. --set"));
  CHECK_THAT(text, Contains("per iteration of 64 samples"));
  const std::string said = shop.succeed(call + "--set training.global_batch=8 --set training.precision=fp32").out;
  CHECK_THAT(said, Contains("otherwise: training.optimizer=adam. --set"));
  CHECK_THAT(said, Contains("per iteration of 8 samples"));
  const std::string all = shop.succeed(call + "--set training='{global_batch: 4}'").out;
  CHECK_THAT(all, !Contains("Assumed") && Contains("per iteration of 4 samples"));
  // 48 is the least multiple of 24 that is no less than the batch of 64 would be: 72.
  CHECK_THAT(shop.succeed(call + "--micro-batches 24").out, Contains("training.global_batch=72"));
}

TEST_CASE("rows that are left out are marked, counted, and come with --all", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const std::string compare = "compare study.yaml --strategies all --schedules all ";
  const Json runs = shop.succeed(compare + "--format json").json().at("runs");
  const std::string text = shop.succeed(compare).out;
  const auto lines_with = [](const std::string& out, const std::string& what) {
    std::istringstream lines(out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      count += line.find(what) != std::string::npos ? 1U : 0U;
    }
    return count;
  };
  const auto infeasible = static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const Json& run) { return run.at("feasible") == false; }));
  REQUIRE(infeasible > 10);
  CHECK(lines_with(text, "  infeasible") == 10);
  CHECK_THAT(text, Contains("\n… " + std::to_string(infeasible - 10) + " more that do not fit\n"));
  CHECK_THAT(text, Contains(" of " + std::to_string(runs.size()) + " runs have a row; --all gives each one\n"));
  const std::string all = shop.succeed(compare + "--all").out;
  CHECK(lines_with(all, "  infeasible") == infeasible);
  CHECK_THAT(all, !Contains("more that"));
}

TEST_CASE("a table fits the terminal, or has the columns and the order asked for", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const std::string narrow = shop.run("compare study.yaml", "COLUMNS=80").out;
  CHECK_THAT(narrow, Contains("(to fit 80 columns without ") && Contains("; --columns all shows everything)"));
  const std::size_t table = narrow.find("\nrank  strategy");
  REQUIRE(table != std::string::npos);
  std::istringstream lines(narrow.substr(table));
  for (std::string line; std::getline(lines, line);) {
    CHECK(display_width(line) <= 80);
  }
  CHECK_THAT(shop.succeed("compare study.yaml").out, !Contains("to fit")); // no terminal: the whole table
  const std::string sorted = shop.succeed("compare study.yaml --columns schedule,Peak-memory --sort=-peak-memory").out;
  CHECK_THAT(sorted, Contains("\nschedule    peak memory\n"));
  const std::string least = shop.succeed("compare study.yaml --columns schedule,peak-memory --sort peak-memory").out;
  CHECK(sorted != least);
}

TEST_CASE("columns that a table lacks are found before anything runs", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  CHECK_THAT(shop.run("compare study.yaml --columns rank,exposed -o r.json").err,
             StartsWith("error: --columns: unknown column 'exposed'"));
  CHECK_THAT(shop.run("compare study.yaml --sort=-exposed -o r.json").err, Contains("unknown column 'exposed'"));
  CHECK_THAT(shop.run("compare study.yaml --columns rank --format csv").err, Contains("allowed: --format table or md"));
  CHECK_FALSE(shop.has("r.json"));
  // What this table has nothing to say of is empty.
  CHECK_THAT(shop.succeed("compare study.yaml --columns rank,staleness").out, Contains("\nrank  staleness\n"));
}

TEST_CASE("the ending of a file names the form of the result, and --format overrules it", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  for (const auto& [file, begin] : {std::pair<std::string, std::string>{"r.json", "{"},
                                    {"r.csv", "strategy,"},
                                    {"r.html", "<!doctype html>"},
                                    {"r.md", "### chain on "}}) {
    CHECK_THAT(shop.succeed("compare study.yaml -o " + file).out, Contains(" wins: ")); // beside the file
    CHECK_THAT(shop.read(file), StartsWith(begin));
  }
  CHECK(shop.succeed("compare study.yaml -o r.txt --format csv").out.empty());
  CHECK_THAT(shop.read("r.txt"), StartsWith("strategy,"));
  CHECK_THAT(shop.read("r.md"), Contains("| rank | strategy |") && Contains("stagecraft compare study.yaml -o r.md"));
  const std::string run = " --set training.global_batch=4 --micro-batches 4 --strategy uniform --schedule gpipe -o ";
  shop.write("study.yaml", small_study());
  for (const std::string command : {"replay ", "explain "}) {
    for (const auto& [file, begin] :
         {std::pair<std::string, std::string>{"o.json", "{"}, {"o.html", "<!doctype html>"}, {"o.md", "```text\n"}}) {
      shop.succeed(command + kChain + " --devices 2 --bandwidth '4 MB/s'" + run + file);
      CHECK_THAT(shop.read(file), StartsWith(begin));
    }
  }
}

TEST_CASE("a page that a command writes itself has the answer on top and its inputs with it", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  shop.succeed("compare study.yaml -o compared.html --quiet");
  shop.write("printed.html", shop.succeed("compare study.yaml --format html --quiet").out);
  const std::string run =
      " --devices 2 --bandwidth '4 MB/s' --set training.global_batch=4 --micro-batches 4 --strategy "
      "uniform --schedule gpipe --quiet -o ";
  shop.succeed("replay " + kChain + run + "replayed.html");
  for (const std::string page : {"compared.html", "printed.html", "replayed.html"}) {
    CAPTURE(page);
    const std::string html = shop.read(page);
    CHECK_THAT(html, Contains("<section class=\"answer\"") && Contains("per step"));
  }
  CHECK_THAT(shop.read("compared.html"), Contains("strategies: [") && Contains("<pre tabindex"));
}

TEST_CASE("replay tells memory over time, and shows as many iterations as asked for", "[cli]") {
  const Workshop shop;
  const std::string common = "replay " + kChain +
                             " --devices 2 --bandwidth '4 MB/s' --strategy uniform --schedule gpipe "
                             "--set training.global_batch=4 --micro-batches 4 ";
  const Json brief = shop.succeed(common + "--format json").json().at("memory").at(0);
  CHECK(brief.at("weights").get<double>() == near(8e3));
  CHECK(brief.at("gradients").get<double>() == near(8e3));
  CHECK(brief.at("optimizer").get<double>() == near(8e3));
  CHECK(brief.at("buffers").get<double>() == near(8e6));
  CHECK(brief.at("peak").at("task") == "F3@0");
  CHECK(brief.at("peak").at("seconds").get<double>() == near(6));
  CHECK(brief.at("peak").at("bytes").get<double>() == near(16e6 + 8e6 + 24e3));
  CHECK_FALSE(brief.contains("series"));
  const Json three = shop.succeed(common + "--format json --timeline --iterations 3 --memory-series memory.csv").json();
  CHECK(three.at("iteration_seconds").get<double>() == near(32)); // figures stay
  CHECK(three.at("tasks") == 4 * (2 + 2 + 2) + 2);
  const Json full = three.at("memory").at(0);
  CHECK(full.at("series").size() == 1 + 3 * (4 + 4)); // F takes and B frees
  CHECK(full.at("stashes").size() == 3 * 4);
  CHECK(full.at("series").at(4).at("in_flight") == 4);
  CHECK(full.at("series").back().at("bytes").get<double>() == near(8e6 + 24e3));
  int last = 0;
  for (const Json& event : three.at("timeline").at("traceEvents")) {
    last = event.contains("args") && event.at("args").contains("iteration")
               ? std::max(last, event.at("args").at("iteration").get<int>())
               : last;
  }
  CHECK(last == 2);
  const std::string csv = shop.read("memory.csv");
  CHECK_THAT(csv, StartsWith("device,seconds,bytes,weights,gradients,optimizer,buffers,stashed,recompute,in_flight\n"
                             "node/profiled-0,0,8024000,8000,8000,8000,8e+06,0,0,0\n"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 2 * (1 + 3 * (4 + 4)));
  const std::string table = shop.succeed(common + "--iterations 2").out;
  // The second device keeps the inputs of both its operators, 8 MB a micro-batch; its fourth F starts at 3 + 3 * 2 s.
  CHECK_THAT(table, Contains("Most memory: 'node/profiled-1' holds 38.17 MiB at F3@1, 9.000 s from the start"));
  CHECK(shop.run(common + "--iterations 0").status == 2);
}

// Two stages of two operators: F 2 s, B 4 s a micro-batch of one sample, 4 MB over 4 MB/s between them. GPipe on device
// 1: its first F starts at 3 s, four F and four B last 24 s; the last gradient takes 1 s, the last B 4 s: 3 + 24 + 1
// + 4.
TEST_CASE("replay gives one run with hand-made numbers", "[cli]") {
  const Workshop shop;
  const std::string common = "replay " + kChain +
                             " --devices 2 --bandwidth '4 MB/s' --strategy uniform --schedule gpipe "
                             "--set training.global_batch=4 --micro-batches 4 ";
  const Json run = shop.succeed(common + "--format json").json();
  check_run(run);
  CHECK_THAT(shop.succeed(common).out, Contains("No plan whose kernels and iterations overlap no more can take less"));
  CHECK(run.at("schema") == "stagecraft/1");
  CHECK_FALSE(run.contains("timeline"));
  CHECK(run.at("iteration_seconds").get<double>() == near(32));
  CHECK(run.at("samples_per_second").get<double>() == near(4.0 / 32));
  CHECK(run.at("speedup").get<double>() == near(48.0 / 32)); // alone: 4 samples of 12 s
  CHECK(run.at("bubble_fraction").get<double>() == near(1 - 48.0 / 64));
  CHECK(run.at("waiting_seconds").at(0).get<double>() == near(8));
  CHECK(run.at("exposed_communication_seconds").at(0).get<double>() == near(1));
  CHECK(run.at("bottleneck_seconds").get<double>() == near(6));
  CHECK(run.at("lower_bound_seconds").get<double>() == near(24));
  CHECK(run.at("tasks") == 4 * (2 + 2 + 2) + 2); // F, B and two transfers a micro-batch, two optimiser steps
  // Device 0 keeps b's input, 4 MB, of four micro-batches, 8 MB of buffers for what it sends, 12 B a parameter.
  CHECK(run.at("peak_memory_bytes").at(0).get<double>() == near(16e6 + 8e6 + 24e3));
  CHECK(shop.succeed(common + "--format json --timeline").json().at("timeline").contains("traceEvents"));
  CHECK(shop.succeed(common + "--engine analytic --format json").json().at("iteration_seconds").get<double>() ==
        near(32));
  const Outcome table = shop.succeed(common);
  CHECK_THAT(table.out, StartsWith("uniform under gpipe with 4 micro-batches takes 32.00 s per iteration"));
  CHECK_THAT(table.out, Contains("node/profiled-1"));
}

TEST_CASE("CSV has one line per run with as many cells as the header", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  std::istringstream csv(shop.succeed("compare study.yaml --format csv").out);
  std::string line;
  std::getline(csv, line);
  const auto commas = [](const std::string& text) {
    bool quoted = false;
    return std::count_if(text.begin(), text.end(), [&](char c) {
      quoted = c == '"' ? !quoted : quoted;
      return c == ',' && !quoted;
    });
  };
  const long cells = commas(line);
  CHECK_THAT(line, StartsWith("strategy,schedule,"));
  int rows = 0;
  for (; std::getline(csv, line); ++rows) {
    CHECK(commas(line) == cells);
  }
  CHECK(rows == 12);
}

TEST_CASE("a study is replayed and explained as its comparison has it: the best, or what flags leave of it", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const Json runs = shop.succeed("compare study.yaml --format json --quiet").json().at("runs");
  REQUIRE(runs.size() > 4);
  const auto time = [](const Json& run) { return run.at("iteration_seconds").get<double>(); };
  CHECK(time(shop.succeed("replay study.yaml --quiet --format json").json()) == near(time(runs.at(0))));
  int replayed = 0;
  for (const Json& run : runs) {
    const std::string asked =
        "study.yaml --quiet --format json --micro-batches " + std::to_string(run.at("micro_batches").get<int>()) +
        " --strategy " + run.at("strategy").get<std::string>() + " --schedule " + run.at("schedule").get<std::string>();
    if (run.at("feasible").get<bool>()) {
      CHECK(time(shop.succeed("replay " + asked).json()) == near(time(run)));
      CHECK(time(shop.succeed("explain " + asked).json().at("explanation")) == near(time(run)));
      ++replayed;
    } else {
      CHECK(shop.run("replay " + asked).status == 1);
    }
  }
  CHECK(replayed > 4);
  const Outcome other = shop.run("replay study.yaml --quiet --format json --strategy capability"); // not in the study
  CHECK(other.json().at("strategy") == "capability");
  CHECK_THAT(shop.run("replay study.yaml --platform dgx-h100").err, Contains("names its model and platform"));
  CHECK_THAT(shop.run("replay study.yaml --strategy uniform --plan p.yaml").err,
             Contains("--plan: given beside --strategy; allowed: one of them"));
}

TEST_CASE("a plan's file is replayed in a study's setting", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  shop.succeed("plan " + kChain +
               " --devices 2 --bandwidth '4 MB/s' --strategy uniform --set training.global_batch=4 " +
               "--micro-batches 4 -o plan.yaml");
  const std::string gpipe = "replay study.yaml --schedule gpipe --micro-batches 4 --quiet --format json ";
  const Json planned = shop.succeed(gpipe + "--strategy uniform").json();
  const Json given = shop.succeed(gpipe + "--plan plan.yaml").json();
  CHECK(given.at("iteration_seconds") == planned.at("iteration_seconds"));
  CHECK(shop.succeed(gpipe + "--plan plan.yaml --plan-format stagecraft").json().at("iteration_seconds") ==
        given.at("iteration_seconds"));
  CHECK_THAT(shop.run("compare study.yaml --set compare.strategies=[]").err, Contains("'strategies' is an empty list"));
}

TEST_CASE("the flag --set changes keys of the study, the model and the platform", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const auto best = [&](const std::string& more) {
    return shop.succeed("compare study.yaml --format json " + more).json().at("runs").at(0);
  };
  CHECK(best("").at("iteration_seconds").get<double>() == near(32));
  CHECK(best("--set platform.bandwidth='4 GB/s'").at("iteration_seconds").get<double>() == Approx(30).epsilon(1e-3));
  CHECK(best("--set training.micro_batches=1 --set compare.strategies=single").at("strategy") == "single");
  CHECK(best("--set model.layers.0.forward_time='2 s' --set compare.strategies=single")
            .at("iteration_seconds")
            .get<double>() == near(52));
  CHECK(best("--engine analytic").at("engine") == "analytic");
}

TEST_CASE("where nothing is feasible the rows are the result and the status is 1", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const Outcome outcome = shop.run("compare study.yaml --format json --set platform.memory='1 kB'");
  CHECK(outcome.status == 1);
  const Json json = outcome.json();
  REQUIRE(json.at("runs").size() == 12);
  for (const Json& run : json.at("runs")) {
    check_run(run);
    CHECK_FALSE(run.at("feasible").get<bool>());
  }
  CHECK_THAT(shop.run("compare study.yaml --set platform.memory='1 kB'").out, Contains("Nothing is feasible here."));
  const std::string replay =
      "replay " + kChain + " --devices 2 --memory '1 kB' --strategy uniform --schedule gpipe --format ";
  const Outcome alone = shop.run(replay + "json");
  CHECK(alone.status == 1);
  check_run(alone.json());
  CHECK(alone.json().at("schedule") == "gpipe");
  const Outcome told = shop.run(replay + "table");
  CHECK(told.status == 1);
  CHECK(told.out.empty());
  CHECK_THAT(told.err, StartsWith("uniform is infeasible: "));
}

TEST_CASE("a study names what of a framework's configuration is not taken over, a line each", "[cli]") {
  const Workshop shop;
  shop.write("ds.json",
             R"({"train_batch_size": 4, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "nvme"}},
                           "compression_training": {}})");
  shop.write("study.yaml", "model: " + kChain +
                               "\nplatform: {devices: 2}\ntraining: {config: ds.json}\n"
                               "compare: {strategies: [mesh], schedules: [1f1b]}\n");
  const Outcome outcome = shop.succeed("compare study.yaml");
  CHECK_THAT(outcome.err,
             Contains("note: ds.json asks for zero_optimization.offload_optimizer, which is not taken over\n") &&
                 Contains("note: ds.json asks for compression_training, which is not taken over\n"));
}

TEST_CASE("the flag -o writes the whole result and nothing when the input is bad", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const Outcome outcome = shop.succeed("compare study.yaml -o result.json --trace trace.json");
  CHECK_THAT(outcome.out, Contains("wins: "));
  CHECK(Json::parse(shop.read("result.json")).at("runs").size() == 12);
  CHECK(Json::parse(shop.read("trace.json")).contains("traceEvents"));
  CHECK(shop.files() == 3); // no partial file is left

  shop.write("bad.yaml", small_study() + "sed: 3\n");
  const std::string before = shop.read("result.json");
  CHECK(shop.run("compare bad.yaml -o result.json").status == 2);
  CHECK(shop.read("result.json") == before);
  CHECK(shop.run("compare bad.yaml -o new.json").status == 2);
  CHECK(shop.run("compare study.yaml -o nowhere/result.json").status == 2);
  CHECK(shop.files() == 4);
}

TEST_CASE("no colour reaches a pipe, with or without NO_COLOR", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  CHECK_THAT(shop.succeed("compare study.yaml --pictures").out, !Contains("\x1b"));
  CHECK_THAT(shop.run("compare study.yaml --pictures", "NO_COLOR=1").out, !Contains("\x1b"));
}

TEST_CASE("files that a study names are looked for in the study's folder first", "[cli]") {
  const Workshop shop;
  CHECK(shop.succeed("compare " + (kRoot / "tests/study/small.yaml").string() + " --format json").json().at("model") ==
        "chain");
}

TEST_CASE("days and money of a training stand in every form of its result", "[cli]") {
  const Workshop shop;
  const std::string call =
      "compare gpt2 --platform pcie-v100 --strategies data-parallel --schedules 1f1b --engine analytic "
      "--tokens 10B --price '1 USD/h' ";
  const Json whole = shop.succeed(call + "--format json").json().at("runs").at(0).at("whole_training");
  CHECK(whole.at("tokens") == 10e9);
  CHECK(whole.at("usd").get<double>() == near(whole.at("seconds").get<double>() / 3600 * 4)); // four devices
  const std::string words = whole.at("in_words");
  CHECK_THAT(words, Catch::StartsWith("10 billion tokens take "));
  for (const char* format : {"table", "md", "html"}) {
    CHECK_THAT(shop.succeed(call + "--format " + format).out, Catch::Contains(words));
  }
  CHECK_THAT(shop.succeed(call).out, Catch::Contains("v100-sxm2-16gb 1.00 USD/h (as given)") ||
                                         Catch::Contains("1.00 USD/h (as given). --price '2.49 USD/h' changes them."));
}

} // namespace
} // namespace stagecraft::test
