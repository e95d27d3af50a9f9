// SPDX-License-Identifier: Apache-2.0
#include "sim/result/plan_line.hpp"

#include <array>
#include <cmath>
#include <set>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

// "8", or "2 to 8" where stages differ.
template <class Degree> std::string degree_of(const Run& run, const Degree& degree) {
  int least = degree(run.stages.front()), most = least;
  for (const RunStage& stage : run.stages) {
    least = std::min(least, degree(stage));
    most = std::max(most, degree(stage));
  }
  return std::to_string(least) + (most > least ? " to " + std::to_string(most) : "");
}

// What replicas share, in the words of DeepSpeed and PyTorch; "" for one replica.
std::string sharing_of(const RunStage& stage) {
  static constexpr std::array kWords = {", no ZeRO", ", ZeRO 1", ", ZeRO 2", ", ZeRO 3 (FSDP)"};
  const int replicas = stage.data_parallel * stage.context.ranks;
  if (replicas == 1) {
    return "";
  }
  return kWords.at(static_cast<std::size_t>(stage.zero)) +
         (stage.zero > 0 && stage.shard < replicas ? " among " + std::to_string(stage.shard) : std::string());
}

std::string recomputation_of(const RunRecompute& recompute) {
  return recompute.what == "none"   ? "no recomputation"
         : recompute.what == "full" ? "full recomputation"
         : recompute.blocks > 0     ? "recomputation " + to_text(recompute)
                                    : to_text(recompute).insert(recompute.what.size(), " recomputation");
}

// Whether micro-batches go through the same devices from both ends, and not to replicas of each stage in turn.
bool goes_both_ways(const Run& run) {
  const auto devices_of = [](const RunStage& stage) {
    return std::set<std::string>(stage.devices.begin(), stage.devices.end());
  };
  return run.stages.size() > 1 && run.stages.front().turns > 1 &&
         devices_of(run.stages.front()) == devices_of(run.stages.back());
}

// "8 micro-batches of 2 sequences a replica": what a replica computes at once.
std::string micro_batches_of(const Run& run) {
  const double batch = run.samples_per_second * run.metrics.iteration.value;
  const RunStage& first = run.stages.front();
  const double each = batch / run.micro_batches / first.data_parallel * first.turns;
  const bool whole = std::abs(each - std::round(each)) < 1e-6 * each;
  const std::string thing = run.tokens_per_second > 0 ? "sequence" : "sample";
  return std::to_string(run.micro_batches) + (run.micro_batches == 1 ? " micro-batch of " : " micro-batches of ") +
         to_text(each, whole ? 0 : 2) + " " + thing + (std::abs(each - 1) < 1e-6 ? "" : "s") +
         (first.data_parallel > first.turns ? " a replica" : "");
}

} // namespace

int pipeline_ranks(const Run& run) {
  std::set<std::vector<std::string>> places;
  for (const RunStage& stage : run.stages) {
    places.insert(stage.devices);
  }
  return static_cast<int>(places.size());
}

std::string plan_line(const Run& run) {
  if (!run.feasible || run.stages.empty()) {
    return "";
  }
  const int ranks = pipeline_ranks(run);
  const auto chunks = run.stages.size() / static_cast<std::size_t>(ranks);
  const RunStage& first = run.stages.front();
  const bool both_ways = goes_both_ways(run);
  const auto data = [&](const RunStage& stage) { return stage.data_parallel / (both_ways ? stage.turns : 1); };
  std::string words = "data " + degree_of(run, data) + ", tensor " +
                      degree_of(run, [](const RunStage& stage) { return stage.tensor_parallel; }) +
                      (first.sequence_parallel ? " with sequence parallelism" : "");
  if (first.context.ranks > 1) {
    words += ", context " + degree_of(run, [](const RunStage& stage) { return stage.context.ranks; });
  }
  words += ", pipeline " + std::to_string(ranks) +
           (ranks > 1 && chunks > 1 ? " of " + std::to_string(chunks) + " stages each" : "") +
           (both_ways ? " both ways" : "");
  for (const RunStage& stage : run.stages) {
    if (stage.experts.ranks > 1) {
      words += ", expert " + std::to_string(stage.experts.ranks);
      break;
    }
  }
  return words + sharing_of(first) + ", " + recomputation_of(run.recompute) + ", " + micro_batches_of(run);
}

} // namespace stagecraft
