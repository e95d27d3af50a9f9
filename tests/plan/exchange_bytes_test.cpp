// What a plan is charged for is what its programs exchange: collective by collective, with the bytes that a rank has in
// its hands. tests/program proves that these are the parts of tensors which ranks hold.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "tests/catch.hpp"
#include "tests/plan/on_h100.hpp"

namespace stagecraft {
namespace {

// Two samples of a micro-batch for each replica.
Training half() {
  Training training;
  training.global_batch = 2;
  training.precision = Precision::bf16;
  return training;
}

// [what is exchanged, along which axis]: bytes of each collective, in rising order.
using Collectives = std::map<std::pair<CollectiveKind, Axis>, std::vector<double>>;

void sort_all(Collectives& exchanged) {
  for (auto& [what, bytes] : exchanged) {
    std::sort(bytes.begin(), bytes.end());
  }
}

// The buffers that the plan's costs count: of an all-to-all what a rank brings, else what all of a group have.
Collectives charged(const TensorSplit& split, const StageAxes& axes) {
  Collectives all;
  for (const RankShare& share : split.operators) {
    for (const auto* pass : {&share.forward, &share.backward}) {
      for (const Exchange& one : *pass) {
        const int ranks = one.axis == Axis::experts   ? axes.experts.ranks
                          : one.axis == Axis::context ? axes.context.loops()
                          : one.axis == Axis::heads   ? axes.context.heads
                                                      : axes.degree;
        all[{one.kind, one.axis}].push_back(collective_on(one.kind, {ranks, {}}, one.bytes).bytes.value);
      }
    }
  }
  sort_all(all);
  return all;
}

// The same of the program: parts of tensors that a rank has, two bytes a number, or four of what is reduced inside an
// operator. Rows that go to experts along several dimensions of the layout go in one all-to-all.
Collectives carried_out(const StageProgram& stage, double samples) {
  const Program& program = stage.program;
  double replicas = 1; // signatures are of one sample, divided among all ranks; each replica has as many as it says
  for (const Layout::Dimension& dimension : program.layout.dimensions) {
    replicas *= dimension.axis != Axis::tensor ? dimension.size : 1;
  }
  Collectives all;
  std::set<TensorId> sent;
  for (const auto* pass : {&program.forward, &program.backward}) {
    for (const Step& step : *pass) {
      const ProgramTensor& before = program.tensors[step.reads.front()];
      const ProgramTensor& after = program.tensors[step.writes];
      const bool rows = before.placements[step.dimension].sorted || after.placements[step.dimension].sorted;
      if (!is_collective(step.kind) || (rows && !sent.insert(step.writes).second) ||
          (rows && sent.contains(step.reads.front()))) {
        continue;
      }
      const ProgramTensor& whole = step.kind == StepKind::all_gather ? after : before;
      const double width = whole.role == ProgramTensor::Role::reduction ? 4 : 2;
      const bool to_experts = rows && stage.of_experts[step.dimension] != 0;
      const Axis axis = to_experts ? Axis::experts : program.layout.dimensions[step.dimension].axis;
      all[{collective_of(step.kind), axis}].push_back(local_elements(whole, program.layout) * width * samples *
                                                      replicas);
    }
  }
  sort_all(all);
  return all;
}

std::string describe(const StageAxes& axes) {
  return "tensor " + std::to_string(axes.degree) + (axes.sequence ? " sequence" : "") + ", context " +
         std::to_string(axes.context.ranks) + " " + std::string(row_of(axes.context.rule).name) + ", expert " +
         std::to_string(axes.experts.ranks) + " x " + std::to_string(axes.experts.tensor) + ", " +
         std::string(row_of(axes.rule).name);
}

const Context kRing{.ranks = 4}, kSwap{.ranks = 2, .rule = ContextRule::all_to_all, .heads = 2},
    kBoth{.ranks = 4, .rule = ContextRule::both, .heads = 2};

TEST_CASE("a stage is charged the collectives of its program, with the bytes of its tensors", "[plan][tensor]") {
  const std::vector<StageAxes> of_dense = {{.degree = 4},
                                           {.degree = 4, .sequence = true},
                                           {.degree = 2, .sequence = true, .rule = TensorRule::torchtitan},
                                           {.degree = 2, .rule = TensorRule::torchtitan_whole_loss},
                                           {.context = kRing},
                                           {.degree = 2, .sequence = true, .context = kRing},
                                           {.degree = 2, .sequence = true, .context = kSwap},
                                           {.degree = 2, .context = kBoth}};
  const std::vector<StageAxes> of_mixtures = {{.experts = {4}},
                                              {.degree = 2, .sequence = true, .experts = {4}},
                                              {.degree = 2, .sequence = true, .experts = {4, 2}},
                                              {.degree = 2, .experts = {4, 2}},
                                              {.context = kRing, .experts = {4}},
                                              {.degree = 2, .sequence = true, .context = kRing, .experts = {4, 2}},
                                              {.degree = 2, .sequence = true, .context = kSwap, .experts = {4}}};
  for (const char* name : {"llama3-8b", "gpt2-xl", "t5-large", "deepseek-v3", "gpt-oss-120b", "mixtral-8x7b"}) {
    const test::OnH100 run(name, half(), 1);
    std::vector<OperatorId> stage(run.model.operators.size());
    std::iota(stage.begin(), stage.end(), 0);
    std::vector<StageAxes> all = of_dense;
    if (std::any_of(run.model.operators.begin(), run.model.operators.end(),
                    [](const Operator& op) { return op.routing.has_value(); })) {
      all.insert(all.end(), of_mixtures.begin(), of_mixtures.end());
    }
    for (const StageAxes& axes : all) {
      INFO(name << ": " << describe(axes));
      const auto split = split_tensors(run.problem, stage, axes);
      const auto program = stage_program(run.model, stage, axes);
      REQUIRE(std::holds_alternative<TensorSplit>(split) == std::holds_alternative<StageProgram>(program));
      if (std::holds_alternative<Infeasible>(split)) {
        continue; // an encoder's tokens, say
      }
      const Collectives plan = charged(std::get<TensorSplit>(split), axes);
      const Collectives ranks = carried_out(std::get<StageProgram>(program), run.problem.samples);
      CHECK(!plan.empty());
      REQUIRE(plan.size() == ranks.size());
      for (const auto& [what, bytes] : ranks) {
        INFO(static_cast<int>(what.first) << " along " << name_of(what.second));
        REQUIRE(plan.contains(what));
        const std::vector<double>& as_charged = plan.at(what);
        REQUIRE(as_charged.size() == bytes.size());
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          CHECK(as_charged[i] == Approx(bytes[i]).epsilon(1e-12));
        }
      }
    }
  }
}

} // namespace
} // namespace stagecraft
