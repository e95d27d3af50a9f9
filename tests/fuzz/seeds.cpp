// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seeds.hpp"

#include <glob.h>

#include "sim/base/system/file.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/workload/onnx_builder.hpp"

namespace stagecraft::fuzz {
namespace {

namespace fs = std::filesystem;
using test::OnnxBuilder;

std::vector<fs::path> files_like(const fs::path& pattern) {
  glob_t found{};
  std::vector<fs::path> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

// Four operators on two devices, so that everything is quick.
constexpr const char* kChain = "model: {file: chain.yaml, device: v100-sxm2-16gb}\n"
                               "platform: {devices: 2, bandwidth: 4 MB/s}\n"
                               "training: {global_batch: 4, micro_batches: [2, 4]}\n"
                               "compare: {strategies: [single, uniform], schedules: [gpipe, 1f1b]}\n"
                               "engine: analytic\n";

std::string results_of(const std::string& sweep) {
  const Folder folder;
  InputFiles files;
  const Folders folders{kRoot / "tests/study", kRoot, &files};
  const SweepInputs inputs{load_sweep(yaml::parse(kChain + sweep, "study"), {}), {}, folders};
  SweepPoints points(inputs, "seed");
  const fs::path file = folder.path() / "results.sqlite";
  {
    SweepStore store(file, SweepStore::Mode::write);
    run_sweep(points, store, {});
  }
  return read_file(file);
}

} // namespace

std::vector<std::string> onnx_seeds() {
  OnnxBuilder image;
  image.input("x", {2, 3, 8, 8}).weight("w", {4, 3, 3, 3}).weight("b", {4}).weight("v", {5, 4}).weight("c", {5});
  image.node("Conv", {"x", "w", "b"}, "conv").attribute("pads", {1, 1, 1, 1}).attribute("kernel_shape", {3, 3});
  image.node("Relu", {"conv"}, "relu").node("Add", {"conv", "relu"}, "sum").node("GlobalAveragePool", {"sum"}, "pool");
  image.node("Flatten", {"pool"}, "flat").node("Gemm", {"flat", "v", "c"}, "y").attribute("transB", 1);
  OnnxBuilder text(17); // the first with LayerNormalization
  text.input("x", {-1, -2}, onnx::TensorProto::INT64).weight("table", {32, 8}).weight("w", {8, 8});
  text.weight("scale", {8}).weight("bias", {8}).integers("shape", {0, 0, 2, 4});
  text.node("Gather", {"table", "x"}, "e").node("MatMul", {"e", "w"}, "q").node("Reshape", {"q", "shape"}, "heads");
  text.node("Transpose", {"heads"}, "t").attribute("perm", {0, 2, 1, 3}).node("Softmax", {"t"}, "s");
  text.node("Dropout", {"s"}, "d").node("LayerNormalization", {"e", "scale", "bias"}, "n").node("Erf", {"n"}, "g");
  OnnxBuilder pools;
  pools.input("x", {1, 3, 16, 16}).weight("s", {3}).weight("b", {3}).weight("m", {3}).weight("v", {3});
  pools.node("BatchNormalization", {"x", "s", "b", "m", "v"}, "bn").node("MaxPool", {"bn"}, "p");
  pools.attribute("kernel_shape", {2, 2}).attribute("strides", {2, 2}).node("AveragePool", {"p"}, "a");
  pools.attribute("kernel_shape", {3, 3}).node("Concat", {"a", "a"}, "c").attribute("axis", 1);
  pools.node("LRN", {"c"}, "l").attribute("size", 5);
  return {image.bytes(), text.bytes(), pools.bytes()};
}

std::vector<std::string> sweep_seeds() {
  return {results_of("sweep: {platform.bandwidth: [1 MB/s, 1 GB/s]}\n"),
          results_of("sweep: {platform.latency: [1 us, 1 ms], screen: {by: estimate, keep: 3}, "
                     "objective: {name: training-time, samples: 1000}, constraints: {training-time: 1 h}}\n"),
          results_of("sweep: {platform.memory: [1 kB, 1 GiB]}\n")};
}

std::vector<std::string> document_seeds() {
  const Study study = load_study(yaml::parse(kChain, "study"), {kRoot / "tests/study", kRoot}, {});
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const ComparisonResult result = compare(memo);
  const Prepared& first = result.prepared[result.of_run.front()];
  const std::string trace = chrome_trace(*first.graph, first.timeline, study.platform);
  return {
      trace,
      to_json(result.comparison, false),
      to_json(first.run, {"m", "p", {"s.yaml"}}, false, {{"timeline", trace}}),
      R"({"strategy": "s", "schedule": "t", "explanation": {"summary": ["why"], "shares": [{"cause": "forward",
        "seconds": 1}], "path": [{"what": "F", "seconds": 1, "steps": 2}], "sensitivities": [{"part": "link",
        "seconds": 1}]}, "inputs": ["a.yaml"]})",
      R"({"source": "s", "rows": [{"case": "c", "metric": "iteration_seconds", "contest": "x", "measured": 1,
        "predicted": 2}], "skipped": [{"case": "d", "reason": "cold"}], "notes": ["n"], "baselines": {}})",
      R"({"device": "d", "rows": [{"kernel": "k", "source": "fit", "measured": 1, "predicted": 2}]})",
      R"({"device": "d", "measured": 1, "rows": [], "fits": [{"fit": "f", "form": "g", "points": 3,
        "median_ape": 0.1}]})",
      R"({"name": "j", "planners": [{"planner": "a", "plans": 1}], "plans": [{"planner": "a", "model": "m",
        "platform": "p", "feasible": true, "iteration_seconds": 2, "regret": 0.5}]})",
      R"({"model": "m", "platform": "p", "answer": "a", "verdict": ["a", "b", "c"], "choices": [{"offer": "o",
        "devices": 8, "days": 3, "usd": 5, "kwh": 7, "goodput": 0.9, "interval": {"low_days": 2, "high_days": 4,
        "low_usd": 3, "high_usd": 6}}], "runs": [{"strategy": "s", "schedule": "t", "iteration_seconds": 1}]})",
      R"({"model": "m", "platform": "p", "phases": [], "policies": [{"policy": "never", "iterations": 4,
        "total_seconds": 8, "rounds": [{"first_iteration": 0, "iterations": 4, "iteration_seconds": 2}]}]})",
  };
}

std::vector<std::string> seeds_of(const Reader& reader) {
  constexpr std::uintmax_t kMostBytes = 200'000;
  std::vector<std::string> seeds = reader.made != nullptr ? reader.made() : std::vector<std::string>{};
  for (const std::string_view pattern : reader.seeds) {
    for (const fs::path& file : files_like(kRoot / pattern)) {
      if (!pattern.empty() && fs::is_regular_file(file) && fs::file_size(file) <= kMostBytes) {
        seeds.push_back(read_file(file));
      }
    }
  }
  return seeds;
}

} // namespace stagecraft::fuzz
