// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/convergence.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/count_of.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

// A batch at which the reference was trained twenty times.
struct ReferencePoint {
  int batch = 0;
  double samples = 0; ///< to converge: the mean without the least and the most, as MLPerf's checker takes it
};

// A benchmark of MLPerf Training: its rules of evaluation, table "Evaluation frequency" of training_rules.adoc
// (mlcommons/training_policies), and its reference convergence points, rcps_*.json of mlperf_logging/rcp_checker
// (mlcommons/logging, Apache-2.0) of the newest round that has them. How many samples an evaluation has is said by the
// READMEs of mlcommons/training, of Llama 2 70B by eval_samples in the logs of its results.
struct Benchmark {
  std::string_view model; ///< how a row's begins
  int interval;           ///< samples between evaluations; made up to whole iterations
  double skipped_each;    ///< evaluations left out at first, for each sample of the batch …
  int skipped;            ///< … and beside those
  int evaluated;          ///< samples of an evaluation
  std::array<ReferencePoint, 6> points;
  std::string_view round{}; ///< in which alone it was so; empty: in all others
};
// GPT-3's points are tokens, of which a sample has so many.
constexpr double kTokens = 2048;
constexpr std::array kBenchmarks = {
    Benchmark{"llama2 70b lora", 384, 0.125, 2, 173, {{{8, 28608. / 9}, {16, 4032}, {32, 18112. / 3}, {128, 11264}}}},
    Benchmark{"llama3.1 8b",
              12288,
              0,
              0,
              1024,
              {{{16, 483328. / 3}, {32, 536576. / 3}, {64, 679936. / 3}, {96, 278640}, {128, 1034240. / 3}}}},
    Benchmark{"llama3.1 405b",
              46080,
              0,
              0,
              5760,
              {{{1008, 324576}, {1152, 322560}, {2304, 380160}, {4608, 495360}, {6912, 604800}, {9216, 691200}}},
              "v5.0"},
    Benchmark{"llama3.1 405b", 18432, 0.0026, 12, 5760, {{{1152, 313344}, {2304, 368640}, {4608, 493056}}}},
    Benchmark{"gpt-3 175b",
              24576,
              0,
              0,
              5660, // 11,590,004 tokens
              {{{1536, 1195376640 / kTokens},
                {2048, 1177760563.2 / kTokens},
                {3072, 1218025881.6 / kTokens},
                {4096, 1258291200 / kTokens},
                {6144, 1409286144 / kTokens},
                {8192, 1623195648 / kTokens}}}},
    Benchmark{"gpt-oss 20b", 12288, 0, 0, 1024, {{{16, 194560}, {32, 704512. / 3}, {64, 301056}}}},
    Benchmark{"deepseek-v3 671b", 1, 0, 0, 1024, {{{15360, 725760}, {16384, 765952}, {18432, 861696}}}},
};

// Samples to converge at a batch: linear between the points beside it, NaN beyond them.
double samples_at(const Benchmark& benchmark, double batch) {
  const ReferencePoint* below = nullptr;
  for (const ReferencePoint& point : benchmark.points) {
    if (point.batch == batch) {
      return point.samples;
    }
    if (below != nullptr && below->batch < batch && batch < point.batch) {
      return below->samples + (point.samples - below->samples) * (batch - below->batch) / (point.batch - below->batch);
    }
    below = &point;
  }
  return std::nan("");
}

} // namespace

std::variant<TrainingLength, Infeasible> training_length(const TruthRow& row) {
  const std::string model = plain_words(row.model);
  const auto found = std::find_if(kBenchmarks.begin(), kBenchmarks.end(), [&](const Benchmark& one) {
    return model.starts_with(one.model) && (one.round.empty() || row.mentions(one.round));
  });
  if (found == kBenchmarks.end() || !row.mentions("mlperf")) {
    return Infeasible{"after how many samples it converges is not published"};
  }
  const double batch = row.global_batch;
  const double samples = samples_at(*found, batch);
  if (std::isnan(samples)) {
    return Infeasible{"after how many samples it converges is not published for a batch of " +
                      std::to_string(row.global_batch)};
  }
  const double interval = std::ceil(found->interval / batch) * batch;
  const double skipped = std::floor(found->skipped_each * batch + found->skipped);
  return TrainingLength{.samples = samples,
                        .evaluations = std::max(1.0, samples / interval - skipped),
                        .evaluated = static_cast<double>(found->evaluated),
                        .batch = batch,
                        .assumed = "that it converges after " +
                                   count_of(static_cast<int>(std::lround(samples)), "sample") +
                                   ", as MLPerf's reference does"};
}

double seconds_to_train(const TrainingLength& length, const PredictedRun& run) {
  const double passes = run.forward + run.backward + run.weight;
  const double forward = passes > 0 ? (run.iteration - run.update) * run.forward / passes : 0;
  return length.samples / length.batch * run.iteration +
         length.evaluations * std::ceil(length.evaluated / length.batch) * forward;
}

} // namespace stagecraft
