// Points of a sweep as a worker does them, for the instruction counter and the clock: 8 stages x 32 micro-batches by
// the engine analytic, 4 x 8 on SimGrid.
//   bench_sweep ENGINE POINTS STUDY     prints the points and the milliseconds of processor time that each took
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "sim/study/compare/compare.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "tests/source_dir.hpp"

namespace {

using namespace stagecraft;

double processor_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) { // SimGrid runs in children
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& part : {usage.ru_utime, usage.ru_stime}) {
      constexpr double kMicro = 1e-6;
      seconds += static_cast<double>(part.tv_sec) + kMicro * static_cast<double>(part.tv_usec);
    }
  }
  return seconds;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: bench_sweep ENGINE POINTS STUDY\n");
    return 2;
  }
  const auto points = static_cast<std::size_t>(std::atol(arguments[2]));
  const std::filesystem::path study = arguments[3];
  InputFiles files;
  const SweepInputs inputs{load_sweep(yaml::load(study), {}), {}, {study.parent_path(), test::source_dir(), &files}};
  std::vector<std::uint32_t> runs(scenarios_of(study_of(inputs, *combination(inputs.sweep, 0))).size());
  std::iota(runs.begin(), runs.end(), 0U);
  const double start = processor_seconds();
  std::size_t done = 0;
  ScheduleCounts counts;
  for (std::uint64_t number = 0; done < points;) {
    std::vector<CombinationRuns> batch;
    for (; batch.size() * runs.size() < 200 && number < combinations(inputs.sweep); ++number) {
      batch.push_back({*combination(inputs.sweep, number), runs});
    }
    done += evaluate(inputs, arguments[1], batch, counts).size();
    number = number == combinations(inputs.sweep) ? 0 : number;
  }
  constexpr double kMilli = 1e3;
  std::printf("%zu %.4f\n", done, kMilli * (processor_seconds() - start) / static_cast<double>(done));
  return 0;
}
