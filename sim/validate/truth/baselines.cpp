// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/baselines.hpp"

#include <algorithm>

#include "sim/base/statistics.hpp"

namespace stagecraft {
namespace {

double figure_of(const SpeedRow& one, double seconds) {
  const double own = one.row->known->predict(*one.run);
  return one.row->known->falls_with_time ? own * one.run->iteration / seconds : own * seconds / one.run->iteration;
}

// 1 + the idle time of an ideal pipeline over its busy time (Narayanan et al. 2021, section 2.2).
double bubble_factor(const TruthRow& row, double devices) {
  const double pipeline = std::max(row.degrees.pipeline, 1);
  const double interleave = std::max(row.degrees.interleave, 1);
  const double model = std::max(row.degrees.tensor, 1) * pipeline * std::max(row.degrees.context, 1);
  const double size = std::max(row.micro_batch, 1.0);
  const double micro_batches = std::max(row.global_batch * model / (devices * size), 1.0);
  return 1 + (pipeline - 1) / (interleave * micro_batches);
}

// Of a model's FLOPs those of what the row calls an iteration: backward has twice those of a forward.
double share_of(const TruthRow& row) {
  return timed_parts(row) == TimedParts::forward && of_whole_iterations(*row.known) ? 1.0 / 3 : 1;
}

std::string key_of(const TruthRow& row) { return row.set + "\n" + row.gpu + "\n" + row.precision; }

ValidationRow row_of(const SpeedRow& one, double seconds) {
  return {one.row->case_name, std::string(one.row->known->key), one.row->set, one.row->value, figure_of(one, seconds)};
}

} // namespace

std::map<std::string, std::vector<ValidationRow>> baselines_of(const std::vector<SpeedRow>& rows) {
  std::map<std::string, std::vector<const SpeedRow*>> alike; // those that may learn from each other
  for (const SpeedRow& one : rows) {
    alike[key_of(*one.row)].push_back(&one);
  }
  std::map<std::string, std::vector<ValidationRow>> baselines;
  for (const SpeedRow& one : rows) {
    if (one.run->mfu > 0) {
      baselines["roofline"].push_back(row_of(one, one.run->iteration * one.run->mfu * share_of(*one.row)));
    }
    std::vector<double> rates, without_bubble; // FLOP/s of a device
    for (const SpeedRow* other : alike[key_of(*one.row)]) {
      if (other->row->model != one.row->model) {
        rates.push_back(share_of(*other->row) * other->run->model_flops /
                        seconds_of_figure(*other->row->known, *other->run, other->row->value) / other->run->devices);
        without_bubble.push_back(rates.back() * bubble_factor(*other->row, other->run->devices));
      }
    }
    if (rates.empty()) {
      continue;
    }
    const double work = share_of(*one.row) * one.run->model_flops / one.run->devices;
    baselines["constant utilisation"].push_back(row_of(one, work / quantile(rates, 0.5)));
    baselines["constant utilisation and ideal bubble"].push_back(
        row_of(one, work / quantile(without_bubble, 0.5) * bubble_factor(*one.row, one.run->devices)));
  }
  return baselines;
}

} // namespace stagecraft
