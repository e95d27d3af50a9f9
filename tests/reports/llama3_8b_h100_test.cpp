// The headline numbers of reports/llama3-8b-h100, from the study itself.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/study/compare/compare.hpp"
#include "tests/reports/reports.hpp"

namespace stagecraft {
namespace {

std::string in_words(const Run& run) {
  const Bytes peak = *std::max_element(run.metrics.peak_memory.begin(), run.metrics.peak_memory.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.3f s, %.1f %%, %.1f GiB", run.metrics.iteration.value, 100 * run.mfu,
                peak.value / (1 << 30));
  return text;
}

// Each schedule's row, as far as the page has it.
TEST_CASE("reports/llama3-8b-h100 says what its study gives", "[reports]") {
  const Study study =
      load_study(yaml::load(test::kReports / "llama3-8b-h100/study.yaml"), test::folders_of("llama3-8b-h100"),
                 {{"compare", "{strategies: [mesh, optimal, dapple], schedules: [1f1b, zb-h1]}"}}, Purpose::comparison);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const Comparison comparison = compare(memo).comparison;
  for (const std::string schedule : {"1f1b", "zb-h1"}) {
    std::string row = "| `" + schedule + "` |";
    for (const std::string strategy : {"mesh", "optimal", "dapple"}) {
      const auto run = std::find_if(comparison.runs.begin(), comparison.runs.end(), [&](const Run& one) {
        return one.schedule == schedule && one.strategy == strategy;
      });
      REQUIRE(run != comparison.runs.end());
      REQUIRE(run->feasible);
      row += " " + in_words(*run) + " |";
    }
    test::check_says("llama3-8b-h100", row);
  }
}

} // namespace
} // namespace stagecraft
