// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "sim/result/stage_json.hpp"

namespace stagecraft {

std::vector<RunStage> describe_stages(const ModelGraph& model, const Platform& platform, const Plan& plan,
                                      const PlanCost& cost) {
  std::vector<RunStage> stages;
  const std::size_t ranks = std::max<std::size_t>(1, devices_of(plan).size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    RunStage& shown = stages.emplace_back();
    for (const OperatorId op : stage.operators) {
      shown.operators.push_back(model.operators[op].name);
    }
    for (const DeviceId device : stage.devices) {
      shown.devices.push_back(platform.devices[device].name);
    }
    shown.shares = stage.shares;
    shown.data_parallel = static_cast<int>(stage.replicas()) / stage.context.ranks;
    shown.turns = stage.turns;
    shown.context = stage.context;
    shown.experts = stage.experts;
    shown.tensor_parallel = stage.tensor_parallel;
    shown.sequence_parallel = stage.sequence_parallel;
    shown.tensor_rule = row_of(stage.tensor_rule).name;
    shown.zero = static_cast<int>(cost.stages[s].zero);
    shown.shard = cost.stages[s].sharing;
    shown.streams = stage.streams;
    shown.recompute = name_of(stage.recompute);
    for (const OperatorId op : stage.recomputed) {
      shown.recomputed.push_back(model.operators[op].name);
    }
    shown.chunk = stage.devices.size() > 1 ? 0 : static_cast<int>(s / ranks);
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      shown.seconds = std::max(shown.seconds, replica.busy());
    }
  }
  return stages;
}

RunSpread spread_of(const std::vector<double>& seconds) {
  constexpr double kLow = 0.05;
  constexpr double kHigh = 0.95;
  return {static_cast<int>(seconds.size()), Seconds{quantile(seconds, kLow)}, Seconds{quantile(seconds, 0.5)},
          Seconds{quantile(seconds, kHigh)}};
}

CostSource CostBasis::main() const {
  std::array<double, kCostSources.size()> main = shares;
  main[static_cast<std::size_t>(CostSource::fit)] = measured();
  main[static_cast<std::size_t>(CostSource::table)] = 0;
  return static_cast<CostSource>(std::max_element(main.begin(), main.end()) - main.begin());
}

CostBasis whole_of(const std::vector<CostBasis>& types) {
  CostBasis whole;
  for (const CostBasis& type : types) {
    whole.seconds += type.seconds;
    for (std::size_t source = 0; source < whole.shares.size(); ++source) {
      whole.shares[source] += type.shares[source] * type.seconds;
    }
  }
  for (double& share : whole.shares) {
    share = whole.seconds > 0 ? share / whole.seconds : 0;
  }
  return whole;
}

std::string in_words(const CostBasis& basis) {
  std::string words;
  for (std::size_t source = 0; source < basis.shares.size(); ++source) {
    if (basis.shares[source] > 0) {
      words += (words.empty() ? "" : ", ") + percent(basis.shares[source], 1) + " " +
               std::string(kCostSources[source].words);
    }
  }
  return words;
}

std::string cost_of_million(const Run& run) {
  return (run.metrics.assumed_cost.value > 0 ? kAssumedMark : "") + to_text(run.cost_per_million_samples);
}

std::vector<NamedPrice> prices_of(const std::vector<Run>& runs) {
  std::vector<NamedPrice> prices;
  for (const Run& run : runs) {
    if (run.feasible) {
      add_prices(prices, run.prices);
    }
  }
  return prices;
}

std::string staleness_remark(const std::vector<double>& staleness) {
  const double most = *std::max_element(staleness.begin(), staleness.end());
  return "asynchronous: weights up to " + to_text(most, 1) + " steps old";
}

std::vector<std::string> remarks_of(const Run& run) {
  std::vector<std::string> remarks;
  if (!run.note.empty()) {
    remarks.push_back(run.note);
  }
  if (!run.staleness.empty()) {
    remarks.push_back(staleness_remark(run.staleness));
  }
  if (run.recompute.what != "none") {
    remarks.push_back("recomputes: " + to_text(run.recompute));
  }
  return remarks;
}

nlohmann::ordered_json to_value(const RunStage& stage) {
  nlohmann::ordered_json json = {{"operators", stage.operators}, {"devices", stage.devices}};
  if (!stage.shares.empty()) {
    json["shares"] = stage.shares;
  }
  const int replicas = stage.data_parallel * stage.context.ranks;
  if (replicas * stage.tensor_parallel > 1) {
    json["layout"] = {{"data", stage.data_parallel},
                      {"context", stage.context.ranks},
                      {"tensor", stage.tensor_parallel},
                      {"sequence_parallel", stage.sequence_parallel},
                      {"zero", stage.zero}};
    if (stage.zero > 0 && stage.shard < replicas) {
      json["layout"]["shard"] = stage.shard;
    }
  }
  if (stage.turns > 1) {
    json["turns"] = stage.turns;
  }
  if (stage.experts.ranks > 1) {
    json["expert_layout"] = {
        {"expert_data", replicas * stage.tensor_parallel / (stage.experts.ranks * stage.experts.tensor)},
        {"expert", stage.experts.ranks},
        {"expert_tensor", stage.experts.tensor}};
    json["expert_parallel"] = stage.experts.ranks;
    json["expert_tensor_parallel"] = stage.experts.tensor;
  }
  json["tensor_parallel"] = stage.tensor_parallel;
  if (stage.sequence_parallel) {
    json["sequence_parallel"] = true;
  }
  if (stage.tensor_rule != row_of(TensorRule::megatron).name) {
    json["tensor_rule"] = stage.tensor_rule;
  }
  if (stage.context.ranks > 1) {
    json["context_parallel"] = stage.context.ranks;
    json["context_rule"] = row_of(stage.context.rule).name;
    json["context_order"] = row_of(stage.context.order).name;
    if (stage.context.rule == ContextRule::both) {
      json["context_heads"] = stage.context.heads;
    }
  }
  json["recompute"] = stage.recompute;
  if (!stage.recomputed.empty()) {
    json["recomputed"] = stage.recomputed;
  }
  if (stage.streams > 0) {
    json["streams"] = stage.streams;
  }
  json["chunk"] = stage.chunk;
  json["seconds"] = stage.seconds.value;
  return json;
}

} // namespace stagecraft
