// The table of schedules.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Declares the function of a schedule's own file and calls it, so that a schedule is one file and one row.
#define ORDER(function)                                                                                                \
  [](const ScheduleRequest& request) {                                                                                 \
    ScheduleResult function(const ScheduleRequest&);                                                                   \
    return function(request);                                                                                          \
  }

// NOLINTNEXTLINE(readability-function-size): a table
std::span<const ScheduleRow> schedules() {
  static constexpr std::array kRows = {
      ScheduleRow{.name = "accumulate",
                  .help = "one stage, gradients of all micro-batches added up",
                  .make = ORDER(make_accumulate)},
      ScheduleRow{.name = "naive", .help = "one micro-batch at a time through all stages", .make = ORDER(make_naive)},
      ScheduleRow{
          .name = "gpipe", .help = "all forwards, then all backwards (Huang et al. 2019)", .make = ORDER(make_gpipe)},
      ScheduleRow{.name = "1f1b",
                  .help = "one forward, one backward, with a flush (DAPPLE, PipeDream-Flush)",
                  .make = ORDER(make_one_f_one_b)},
      ScheduleRow{.name = "eager-1f1b",
                  .help = "1f1b with twice the warm-up, to hide slow links",
                  .make = ORDER(make_eager_one_f_one_b)},
      ScheduleRow{.name = "combined-1f1b",
                  .help = "eager-1f1b, each forward beside the backward of an earlier micro-batch (Megatron)",
                  .make = ORDER(make_combined_one_f_one_b),
                  .pairs_by_layers = true},
      ScheduleRow{.name = "interleaved",
                  .help = "1f1b over several chunks per device (Narayanan et al. 2021)",
                  .make = ORDER(make_interleaved),
                  .chunks = 0},
      ScheduleRow{.name = "combined-interleaved",
                  .help = "interleaved, each forward beside the backward of an earlier micro-batch or chunk (Megatron)",
                  .make = ORDER(make_combined_interleaved),
                  .chunks = 0,
                  .pairs_by_layers = true},
      ScheduleRow{.name = "zb-h1",
                  .help = "backward split in two, weight gradients fill bubbles, memory of 1f1b (Qi et al. 2023)",
                  .make = ORDER(make_zb_h1),
                  .splits_backward = true},
      ScheduleRow{.name = "zb-auto",
                  .help = "a zero-bubble order made from the stages' times, under a memory cap (Qi et al. 2023)",
                  .make = ORDER(make_zb_auto),
                  .splits_backward = true,
                  .timed = true,
                  .planned_as = "zb-h1"},
      ScheduleRow{.name = "breadth-first",
                  .help = "all micro-batches through one chunk, then the next, and back again (Lamy-Poirier 2022)",
                  .make = ORDER(make_breadth_first),
                  .chunks = 0},
      ScheduleRow{.name = "zb-h2",
                  .help = "zb-h1 with twice the warm-up: no bubble if each stage steps by itself (Qi et al. 2023)",
                  .make = ORDER(make_zb_h2),
                  .splits_backward = true},
      ScheduleRow{.name = "hanayo",
                  .help = "an even number of stages per device in a V, micro-batches run in waves (Liu et al. 2023)",
                  .make = ORDER(make_hanayo),
                  .chunks = 0,
                  .stage_placement = StagePlacement::v_shaped},
      ScheduleRow{.name = "search",
                  .help = "an order searched for this pipeline's times and memory, no worse than the named schedules",
                  .make = ORDER(make_search),
                  .splits_backward = true,
                  .timed = true,
                  .planned_as = "1f1b"},
      ScheduleRow{.name = "zb-v",
                  .help = "two stages per device in a V, no bubble with the memory of 1f1b (Qi et al. 2024)",
                  .make = ORDER(make_zb_v),
                  .splits_backward = true,
                  .chunks = 2,
                  .stage_placement = StagePlacement::v_shaped,
                  .timed = true},
      ScheduleRow{.name = "v-half",
                  .help = "two stages per device in a V, about half the memory of 1f1b (Qi et al. 2024)",
                  .make = ORDER(make_v_half),
                  .splits_backward = true,
                  .chunks = 2,
                  .stage_placement = StagePlacement::v_shaped},
      ScheduleRow{.name = "v-min",
                  .help = "two stages per device in a V, about a third of the memory of 1f1b (Qi et al. 2024)",
                  .make = ORDER(make_v_min),
                  .splits_backward = true,
                  .chunks = 2,
                  .stage_placement = StagePlacement::v_shaped},
      ScheduleRow{.name = "chimera",
                  .help = "two pipelines in opposite directions over the same ranks (Li and Hoefler 2021)",
                  .make = ORDER(make_chimera),
                  .bidirectional = true},
      ScheduleRow{
          .name = "dualpipe",
          .help =
              "two pipelines in opposite directions, forwards of one beside backwards of the other (DeepSeek-AI 2024)",
          .make = ORDER(make_dual_pipe),
          .splits_backward = true,
          .bidirectional = true},
      ScheduleRow{.name = "dualpipe-v",
                  .help = "dualpipe folded in half: one copy of the weights, stages in a V (DeepSeek-AI 2025)",
                  .make = ORDER(make_dual_pipe_v),
                  .splits_backward = true,
                  .chunks = 2,
                  .stage_placement = StagePlacement::v_shaped},
      ScheduleRow{.name = "pipedream",
                  .help = "1f1b without a flush, a step per micro-batch, a weight version per micro-batch in flight "
                          "(Narayanan et al. 2019)",
                  .make = ORDER(make_pipedream),
                  .in_turn = true},
      ScheduleRow{.name = "pipedream-2bw",
                  .help = "1f1b without a flush, two weight versions, one step late (Narayanan et al. 2021)",
                  .make = ORDER(make_pipedream_2bw)},
      ScheduleRow{.name = "pipemare",
                  .help = "1f1b without a flush, one weight version (Yang et al. 2021)",
                  .make = ORDER(make_pipemare)},
      ScheduleRow{.name = "xpipe",
                  .help = "1f1b without a flush, each forward on predicted weights (Guan et al. 2019)",
                  .make = ORDER(make_xpipe)},
  };
  return kRows;
}

#undef ORDER

const ScheduleRow& planned_row(const ScheduleRow& row) {
  for (const ScheduleRow& other : schedules()) {
    if (other.name == row.planned_as) {
      return other;
    }
  }
  return row;
}

ScheduleResult make_schedule(const ScheduleRow& row, const ScheduleRequest& request) {
  if (request.micro_batches % request.fills != 0) {
    return Infeasible{std::to_string(request.micro_batches) + " micro-batches are no multiple of 'pipeline_fills' " +
                      std::to_string(request.fills)};
  }
  ScheduleRequest asked = request;
  asked.chunks = chunks_of(row, request.chunks);
  asked.micro_batches = request.micro_batches / request.fills;
  asked.fills = 1;
  if (request.evaluate && request.fills > 1) {
    asked.evaluate = [&](const Schedule& once) { return request.evaluate(repeat(once, request.fills)); };
  }
  ScheduleResult result = row.make(asked);
  if (Schedule* schedule = std::get_if<Schedule>(&result)) {
    if (request.fills > 1 && !schedule->flushes) {
      return Infeasible{std::string(row.name) + " never drains; allowed: 'pipeline_fills' 1"};
    }
    schedule->name = row.name;
    schedule->stages = row.in_turn && !request.replicas.empty() ? static_cast<int>(request.replicas.size())
                                                                : request.ranks * asked.chunks;
    schedule->micro_batches = asked.micro_batches;
    schedule->splits_backward = row.splits_backward;
    schedule->pairs_by_layers = row.pairs_by_layers;
    if (request.fills > 1) {
      *schedule = repeat(*schedule, request.fills);
    }
  }
  return result;
}

} // namespace stagecraft
