// Samples of an iteration and of a micro-batch.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/count_of.hpp"
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// Where a row states none: one in a pipeline; else four, or as many as the batch is a multiple of, and of no more
// tokens than four sequences of 4,096 have.
int usual_micro_batch(const RunTraining& run, int batch) {
  constexpr int kUsual = 4, kTokens = 4 * 4096;
  if (run.pipeline > 1 && run.framework.name == "torchtitan-2024" && batch % (run.pipeline * run.replicas) == 0) {
    return batch / (run.pipeline * run.replicas);
  }
  int size = run.pipeline > 1 ? 1 : kUsual;
  while (size > 1 && (batch % (size * run.replicas) != 0 || 1LL * size * run.row.sizes.sequence > kTokens)) {
    size /= 2;
  }
  return size;
}

// More samples than a study takes, which it refuses, where the product is too large for one.
int most_batch(long long samples) {
  return static_cast<int>(std::min<long long>(samples, std::numeric_limits<int>::max()));
}

// Of a table that gives batches of a device: what replicas accumulate, in whole micro-batches.
int batch_of_replicas(RunTraining& run) {
  int each = static_cast<int>(run.row.micro_batch);
  if (each == 0 && run.images) {
    constexpr int kUsual = 128;
    each = kUsual;
    run.assume("128 images of each device");
  }
  return most_batch(1LL * each * std::max(1, each > 0 ? run.row.accumulated / each : 0) * run.replicas);
}

// What a device holds at most does not depend on how many micro-batches follow once its pipeline is full.
int batch_that_fills(RunTraining& run) {
  constexpr int kTurns = 4;
  const int size = std::max(1, static_cast<int>(run.row.micro_batch));
  run.assume(std::to_string(kTurns * run.pipeline) + " micro-batches, which fill the pipeline");
  return most_batch(1LL * kTurns * run.pipeline * size * run.replicas);
}

int stated_batch(RunTraining& run) {
  if (run.row.global_batch > 0) {
    return run.row.global_batch;
  }
  return run.row.metric.starts_with("layer_")                  ? static_cast<int>(run.row.micro_batch)
         : run.row.metric == "throughput"                      ? batch_of_replicas(run)
         : run.row.metric == "peak_memory" && run.pipeline > 1 ? batch_that_fills(run)
                                                               : 0;
}

// PyTorch's pipelines run once for each local batch, of which the notes of TorchTitan and NeMo Automodel say how many
// an iteration has, or how many samples it is.
void write_fills(RunTraining& run, int micro_batches) {
  const std::string_view name = run.framework.name;
  if (run.pipeline == 1 || !(name.starts_with("torchtitan") || name.starts_with("automodel"))) {
    return;
  }
  const int stated = number_after(run.row.note, "GA="), local = number_after(run.row.note, "local batch=");
  const int in_local = local / std::max(1, static_cast<int>(run.row.micro_batch));
  const int fills = stated > 0 ? stated : in_local > 0 ? micro_batches / in_local : 1;
  if (fills > 1 && micro_batches % fills == 0) {
    run.line("  pipeline_fills: " + std::to_string(fills));
  }
}

} // namespace

std::string write_batch(RunTraining& run) {
  int stated = stated_batch(run);
  if (stated == 0) {
    return "the row states no global batch";
  }
  int size = static_cast<int>(run.row.micro_batch);
  if (const int launched = number_after(run.row.flag("micro_batch_size"), "");
      launched > 0 && run.row.micro_batch == 0) {
    size = launched;
    run.assume(count_of(size, "sample") + " in a micro-batch, as the script says that ran it");
  }
  if (const int launched = number_after(run.row.flag("micro_batches"), ""); launched > 0) {
    size = std::max(1, stated / (run.replicas * launched));
    run.assume(count_of(launched, "micro-batch") + ", as the script says that ran it");
  }
  const long long chunks = run.row.micro_batch > 0 ? std::llround(stated / (run.row.micro_batch * run.replicas)) : 0;
  if (chunks > 0 && size < run.row.micro_batch) { // the mean of what torch.chunk makes: the last is smaller
    ++size;
    stated = most_batch(chunks * size * run.replicas);
    run.assume(count_of(chunks, "micro-batch") + " of " + count_of(size, "sample"));
  } else if (size == 0 && (run.images || run.is_maxtext())) { // one pass an iteration, unless a configuration says more
    size = std::max(1, stated / run.replicas);
  } else if (size == 0) {
    size = usual_micro_batch(run, stated);
    run.assume(count_of(size, "sample") + " in a micro-batch");
  }
  if (stated % (1LL * size * run.replicas) != 0) {
    return "global_batch " + std::to_string(stated) + " is no multiple of micro_batch " + std::to_string(size) + " x " +
           count_of(run.replicas, "replica");
  }
  run.line("  global_batch: " + std::to_string(stated));
  run.line("  micro_batch_size: " + std::to_string(size));
  write_fills(run, stated / (size * run.replicas));
  return "";
}

} // namespace stagecraft
