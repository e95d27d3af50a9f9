// stagecraft adapt: training over time in a world that changes, with and without dynamic balancing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"
#include "sim/study/adapt.hpp"

namespace stagecraft {

int command_adapt(const Options& options) {
  const Study study = study_from(options);
  if (!study.adapt) {
    throw InputError({options.study, 0, 0}, "the study has no key 'adapt'; docs/formats/study.md has an example");
  }
  Simulator simulator(study);
  const Adaptation result = adapt(study, simulator);
  if (!options.output.empty()) { // the file holds the full result; the terminal still shows the table
    write_file(options.output, options.format == "csv" ? to_csv(result) : to_json(result));
  }
  if (options.format == "table") {
    print(to_text(result, use_color()));
  } else if (options.output.empty()) {
    print(options.format == "csv" ? to_csv(result) : to_json(result));
  }
  const bool ran = std::any_of(result.policies.begin(), result.policies.end(),
                               [](const AdaptPolicy& policy) { return policy.why_not.empty(); });
  return ran ? kDone : kNothingFeasible;
}

} // namespace stagecraft
