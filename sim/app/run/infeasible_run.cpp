// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/infeasible_run.hpp"

namespace stagecraft {

ExitStatus report_infeasible(const OutputOptions& options, const Run& run, const RunOrigin& origin) {
  const std::string reason = run.strategy + " is infeasible: " + run.why_not +
                             (run.would_fit.empty() ? "" : "; would fit with " + run.would_fit) + "\n";
  if (options.format == "csv") {
    emit(options, to_csv(Comparison{.runs = {run}}));
  } else if (options.format == "html") {
    emit(options, page_of(options, to_json(run, origin, true)));
  } else if (options.format == "md") {
    emit(options, reason + how_to_repeat(options));
  } else if (options.format == "json" || (!options.file.empty() && options.format != "yaml")) { // a plan is none
    emit(options, to_json(run, origin, true));
  }
  if (options.format == "table" || options.also_table) {
    remark(reason);
  }
  return kNothingFeasible;
}

} // namespace stagecraft
