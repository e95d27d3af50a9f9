// Stages of shipped models by every rule: what a program takes is what its stage is charged, and nothing takes less
// than what a search finds.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "sim/plan/program/share_by_search.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/derive_signatures.hpp"
#include "tests/catch.hpp"
#include "tests/plan/on_h100.hpp"

namespace stagecraft {
namespace {

struct Shipped : test::OnH100 {
  explicit Shipped(const std::string& name) : OnH100(name, bf16(), 4) {}

  static Training bf16() {
    Training training;
    training.global_batch = 8;
    training.precision = Precision::bf16;
    training.exchange_beside = false; // a search does not count on it
    return training;
  }

  GroupSpeed speed(int degree) const {
    std::vector<DeviceId> devices(degree);
    std::iota(devices.begin(), devices.end(), 0);
    return speed_of_groups(problem, devices, {.degree = degree, .rule = TensorRule::search}, 1);
  }

  std::optional<OperatorTime> time(OperatorId op, const Shard& shard) const {
    return problem.cost.time_of_shard(op, platform.types[problem.type_index(0)], problem.samples, training.precision,
                                      shard);
  }

  // What the stage is charged for a micro-batch, with its part of adding up gradients; nothing where the rule cannot.
  std::optional<double> seconds(const std::vector<OperatorId>& stage, const StageAxes& axis) const {
    const GroupSpeed of_group = speed(axis.degree);
    const auto split = split_tensors(problem, stage, axis, of_group);
    if (!std::holds_alternative<TensorSplit>(split)) {
      return std::nullopt;
    }
    const Group& group = of_group.group;
    double sum = 0;
    for (std::size_t i = 0; i < stage.size(); ++i) {
      const RankShare& share = std::get<TensorSplit>(split).operators[i];
      const auto alone = time(stage[i], share.shard);
      sum += (forward_seconds(*alone, share, group, 1) + backward_seconds(*alone, share, group, 1)).value;
      if (share.terms.value > 0) {
        sum += seconds_of(Collective{CollectiveKind::all_reduce, group, share.terms}).value / problem.micro_batches;
      }
    }
    return sum;
  }
};

// What stages of a model look like: its first operators, some in the middle, and its last.
std::vector<std::vector<OperatorId>> stages_of(const ModelGraph& model) {
  const OperatorId count = std::min(30, model.size());
  std::vector<std::vector<OperatorId>> stages;
  for (const OperatorId begin : {0, (model.size() - count) / 2, model.size() - count}) {
    std::vector<OperatorId>& stage = stages.emplace_back(count);
    std::iota(stage.begin(), stage.end(), begin);
  }
  return stages;
}

const char* const kBlocks[] = {"llama3-8b",   "gpt2-xl",   "bert-large",   "t5-large",    "vit-large", "mixtral-8x7b",
                               "deepseek-v3", "qwen3-32b", "gpt-oss-120b", "mamba2-2.7b", "resnet50",  "vgg16"};

TEST_CASE("a search takes no longer than any framework's rule", "[plan][tensor]") {
  int faster = 0;
  for (const char* name : kBlocks) {
    const Shipped shipped(name);
    for (const auto& stage : stages_of(shipped.model)) {
      for (const int degree : {2, 4, 8}) {
        for (const bool sequence : {false, true}) {
          const auto found = shipped.seconds(stage, {degree, sequence, TensorRule::search});
          REQUIRE(found);
          for (const TensorRuleRow& row : kTensorRules) {
            INFO(name << " from operator " << stage.front() << ", tensor " << degree
                      << (sequence ? ", sequence, " : ", ") << row.name);
            const auto by_rule = shipped.seconds(stage, {degree, sequence, row.rule});
            CHECK((!by_rule || *found <= *by_rule * (1 + 1e-12)));
            faster += by_rule && *found < *by_rule * 0.999 ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(faster > 100);
}

TEST_CASE("a search leaves a rank no more of any operator's parameters than a framework's rule does",
          "[plan][tensor]") {
  for (const char* name : {"llama3-8b", "gpt3-1t", "deepseek-v3", "mamba2-2.7b"}) {
    const Shipped shipped(name);
    for (const auto& stage : stages_of(shipped.model)) {
      const auto parameters = [&](TensorRule rule) {
        std::vector<double> parts(stage.size(), 0);
        const auto split = split_tensors(shipped.problem, stage, {4, true, rule}, shipped.speed(4));
        for (std::size_t i = 0; i < stage.size() && std::holds_alternative<TensorSplit>(split); ++i) {
          parts[i] = std::get<TensorSplit>(split).operators[i].parameters;
        }
        return parts;
      };
      const std::vector<double> found = parameters(TensorRule::search);
      const std::vector<double> megatron = parameters(TensorRule::megatron);
      const std::vector<double> torchtitan = parameters(TensorRule::torchtitan);
      for (std::size_t i = 0; i < stage.size(); ++i) {
        INFO(name << ", " << shipped.model.operators[stage[i]].name);
        CHECK(found[i] <= std::max(megatron[i], torchtitan[i]) + 1e-12);
      }
    }
  }
}

TEST_CASE("a stage is charged what its program takes", "[plan][tensor]") {
  for (const char* name : {"llama3-8b", "bert-large", "deepseek-v3", "resnet50"}) {
    const Shipped shipped(name);
    for (const auto& stage : stages_of(shipped.model)) {
      for (const TensorRuleRow& row : kTensorRules) {
        const StageAxes axis{4, true, row.rule};
        const auto charged = shipped.seconds(stage, axis);
        const StepTimes times{.computation =
                                  [&](int op, const Shard& shard) {
                                    const auto one = shipped.time(op, shard);
                                    return one->forward + one->backward_input + one->backward_weight;
                                  },
                              .group = shipped.speed(4).group,
                              .samples = shipped.problem.samples,
                              .gradient = Bytes{parameter_bytes(shipped.training).gradient},
                              .micro_batches = static_cast<double>(shipped.problem.micro_batches)};
        const auto made = stage_program(shipped.model, stage, axis, times);
        INFO(name << " from operator " << stage.front() << ", " << row.name);
        REQUIRE(charged.has_value() == std::holds_alternative<StageProgram>(made));
        if (!charged) {
          continue;
        }
        const StageProgram& program = std::get<StageProgram>(made);
        StepTimes of_program = times;
        of_program.computation = [&](int op, const Shard& shard) {
          const int at = op - program.incoming;
          return at < 0 || at >= static_cast<int>(stage.size()) ? Seconds{0} : times.computation(stage[at], shard);
        };
        CHECK(program_seconds(program.program, program.shared, of_program).value == test::near(*charged));
      }
    }
  }
}

// What ranks do, in order.
std::vector<std::tuple<StepKind, int, int, std::size_t, std::vector<TensorId>, TensorId>>
steps_of(const Program& program) {
  std::vector<std::tuple<StepKind, int, int, std::size_t, std::vector<TensorId>, TensorId>> steps;
  for (const std::vector<Step>* part : {&program.forward, &program.backward, &program.reduction}) {
    for (const Step& step : *part) {
      steps.emplace_back(step.kind, step.op, step.index, step.dimension, step.reads, step.writes);
    }
  }
  return steps;
}

TEST_CASE("stages of equal layers share a program, which is that of each by itself", "[plan][tensor]") {
  for (const char* name : {"gpt2-xl", "llama3-8b", "mixtral-8x7b", "t5-large", "resnet50"}) {
    const Shipped shipped(name);
    for (const TensorRuleRow& row : kTensorRules) {
      if (row.rule == TensorRule::search) {
        continue; // asks for times
      }
      const StageAxes axes{4, true, row.rule};
      KnownPrograms known;
      constexpr OperatorId kStages = 8;
      for (OperatorId part = 0; part < kStages; ++part) {
        const OperatorId begin = shipped.model.size() * part / kStages;
        std::vector<OperatorId> stage(shipped.model.size() * (part + 1) / kStages - begin);
        std::iota(stage.begin(), stage.end(), begin);
        const auto shared = known.make(shipped.model, stage, axes);
        const auto alone = stage_program(shipped.model, stage, axes);
        INFO(name << ", " << row.name << ", from operator " << begin);
        REQUIRE(shared.index() == alone.index());
        if (const Infeasible* reason = std::get_if<Infeasible>(&alone)) { // heads of gpt2-xl
          CHECK(std::get<Infeasible>(shared).reason == reason->reason);
          continue;
        }
        const StageProgram& one = *std::get<const StageProgram*>(shared);
        CHECK(steps_of(one.program) == steps_of(std::get<StageProgram>(alone).program));
        CHECK(one.shared == std::get<StageProgram>(alone).shared);
        CHECK(one.position == std::get<StageProgram>(alone).position);
      }
    }
  }
  // Four layers a stage: the first has the embedding too and the last the head; those between are alike.
  const Shipped llama("llama3-8b");
  const LayerRow row = layer_row_of(llama.model);
  REQUIRE(row.layers.size() == 32);
  KnownPrograms known;
  std::vector<const StageProgram*> programs;
  for (std::size_t first = 0; first < 32; first += 4) {
    std::vector<OperatorId> stage = first == 0 ? row.before : std::vector<OperatorId>{};
    for (std::size_t layer = first; layer < first + 4; ++layer) {
      stage.insert(stage.end(), row.layers[layer].operators.begin(), row.layers[layer].operators.end());
    }
    stage.insert(stage.end(), first + 4 < 32 ? row.after.end() : row.after.begin(), row.after.end());
    programs.push_back(std::get<const StageProgram*>(known.make(llama.model, stage, {4, true})));
  }
  CHECK(std::count(programs.begin(), programs.end(), programs[1]) == 6);
  CHECK(programs.front() != programs[1]);
  CHECK(programs.back() != programs[1]);
  CHECK(programs.back() != programs.front());
}

// An encoder's output has readers in every layer of the decoder, and a dense network's tensors in every layer after.
TEST_CASE("the search is exact on whole models", "[plan][tensor]") {
  for (const char* name : {"t5-large", "densenet121", "deepseek-v3", "gpt-oss-120b", "mamba2-2.7b"}) {
    const Shipped shipped(name);
    const std::vector<Signature> operators = signatures_of(shipped.model);
    const StepTimes times{.computation =
                              [&](int op, const Shard& shard) {
                                const auto one = shipped.time(op, shard);
                                return one->forward + one->backward_input + one->backward_weight;
                              },
                          .group = shipped.speed(8).group};
    INFO(name);
    CHECK(share_by_search(operators, make_layout({{Axis::tensor, 8}}), {.sequence = true}, times).exact);
  }
}

} // namespace
} // namespace stagecraft
