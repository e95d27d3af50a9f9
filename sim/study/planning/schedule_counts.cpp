// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/schedule_counts.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/bytes.hpp"

namespace stagecraft {
namespace {

const ScheduleCounts::Assumed& assumed(ScheduleCounts& counts, const ScheduleRow& row, int ranks, int chunks,
                                       int micro_batches, double kept) {
  const ScheduleRow& planned = planned_row(row);
  const auto [slot, is_new] = counts.known.try_emplace({&planned, ranks, chunks, micro_batches, kept});
  if (is_new) {
    counts.made.push_back(slot->first);
    ScheduleResult made = make_schedule(planned, {ranks, micro_batches, chunks});
    if (const Schedule* schedule = std::get_if<Schedule>(&made)) {
      slot->second = {in_flight(*schedule, kept), schedule->versions};
    }
  }
  return slot->second;
}

// The share of a micro-batch's activations that weight gradients need, over the whole model, for planners. It is 1
// where operators have several configurations, and where something is recomputed: stages then keep less than their
// activations.
double kept_for_weights(const Problem& problem) {
  Bytes all;
  Bytes needed;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    all += problem.stash_bytes(op);
    needed += problem.weight_bytes(op);
  }
  const bool known = problem.model.configurations.empty() && problem.training.recompute.what == Recompute::none;
  return known && needed < all ? needed / all : 1;
}

// Those of one fill of the pipeline.
int micro_batches_at_once(const Problem& problem) {
  return std::max(1, problem.micro_batches / problem.training.pipeline_fills);
}

} // namespace

std::string ScheduleCounts::made_since(std::size_t count) const {
  std::string bytes;
  for (std::size_t at = count; at < made.size(); ++at) {
    const auto& [row, ranks, chunks, micro_batches, kept] = made[at];
    put(bytes, row - schedules().data()); // its place in the table
    put(bytes, ranks);
    put(bytes, chunks);
    put(bytes, micro_batches);
    put(bytes, kept);
    const Assumed& assumed = known.at(made[at]);
    put_list(bytes, assumed.in_flight);
    put_list(bytes, assumed.versions);
  }
  return bytes;
}

void ScheduleCounts::take(std::string_view bytes) {
  ByteReader reader(bytes);
  while (!reader.done()) {
    Key key;
    auto& [row, ranks, chunks, micro_batches, kept] = key;
    row = schedules().data() + reader.take<std::ptrdiff_t>();
    ranks = reader.take<int>();
    chunks = reader.take<int>();
    micro_batches = reader.take<int>();
    kept = reader.take<double>();
    Assumed assumed{reader.take_list<double>(), reader.take_list<int>()};
    if (known.try_emplace(key, std::move(assumed)).second) {
      made.push_back(key);
    }
  }
}

InFlight in_flight_of(ScheduleCounts& counts, const ScheduleRow& row, int chunks, const Problem& problem) {
  const double kept = kept_for_weights(problem);
  return [&counts, &row, chunks, kept, micro_batches = micro_batches_at_once(problem)](int stage, int stages) {
    const int ranks = std::max(1, stages / chunks);
    // A schedule that cannot run so many stages says so itself later; a memory error must not come first.
    const std::vector<double>& held = assumed(counts, row, ranks, chunks, micro_batches, kept).in_flight;
    return stage < static_cast<int>(held.size()) ? held[stage] : 1.0;
  };
}

InFlight in_flight_of(const Schedule& orders, const Problem& problem) {
  return [held = in_flight(orders, kept_for_weights(problem))](int stage, int) {
    return stage < static_cast<int>(held.size()) ? held[stage] : 1.0;
  };
}

int versions_of(ScheduleCounts& counts, const ScheduleRow& row, int ranks, int chunks, const Problem& problem) {
  const double share = kept_for_weights(problem); // it tells nothing of versions, but is asked about next
  const std::vector<int>& kept = assumed(counts, row, ranks, chunks, micro_batches_at_once(problem), share).versions;
  return kept.empty() ? 1 : *std::min_element(kept.begin(), kept.end());
}

} // namespace stagecraft
