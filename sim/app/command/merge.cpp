// stagecraft merge: the results of several sweeps or shards in one file.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {
namespace {

struct MergeCommand {
  std::vector<std::string> files;
  std::string output;
};

void add_flags(Flags& flags, MergeCommand& options) {
  flags.add("FILES", &options.files, "files that `sweep` wrote", {.required = true});
  flags.add("-o,--output", &options.output, "the file to add them to; it is made where it is absent",
            {.name = "FILE", .required = true, .dash = true});
}

ExitStatus run(const MergeCommand& options) {
  if (options.output.empty()) {
    throw InputError({"-o", 0, 0}, "where do the results go? allowed: -o FILE.sqlite");
  }
  keep_inputs(options.output, options.files);
  for (const std::string& file : options.files) { // throws for a wrong file before the output is made
    const SweepStore is_one_of_ours(file, SweepStore::Mode::read);
  }
  SweepStore store(options.output, SweepStore::Mode::write);
  std::uint64_t added = 0;
  for (const std::string& file : options.files) {
    added += store.merge(file);
  }
  const auto [feasible, infeasible, failed] = store.counts(0);
  print(std::to_string(feasible + infeasible + failed) + " points, " + std::to_string(added) + " of them new, " +
        std::to_string(failed) + " failed\n");
  return failed > 0 ? kSomeFailed : kDone;
}

} // namespace

Job command_merge(Flags& flags) { return make_job<MergeCommand>(flags, add_flags, run); }

} // namespace stagecraft
