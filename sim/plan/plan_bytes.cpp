// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_bytes.hpp"

#include <cstdint>

namespace stagecraft {
namespace {

// Each struct is named member by member, so that a new member does not compile until it is written here. One function
// serves both directions: `Writer` appends what it is given, `Reader` fills it.
class Writer {
public:
  explicit Writer(std::string& bytes) : bytes_(bytes) {}

  template <class Value> void plain(const Value& value) { put(bytes_, value); }
  template <class Value> void list(const std::vector<Value>& values) { put_list(bytes_, values); }
  void text(const std::string& value) { put_text(bytes_, value); }
  template <class List> std::size_t size(const List& list) {
    put(bytes_, static_cast<std::uint64_t>(list.size()));
    return list.size();
  }

private:
  std::string& bytes_;
};

class Reader {
public:
  explicit Reader(ByteReader& bytes) : bytes_(bytes) {}

  template <class Value> void plain(Value& value) { value = bytes_.take<Value>(); }
  template <class Value> void list(std::vector<Value>& values) { values = bytes_.take_list<Value>(); }
  void text(std::string& value) { value = bytes_.take_text(); }
  template <class List> std::size_t size(List& list) {
    list.resize(static_cast<std::size_t>(bytes_.take<std::uint64_t>()));
    return list.size();
  }

private:
  ByteReader& bytes_;
};

template <class Way, class SomeStage> void stage(Way& way, SomeStage& all) {
  auto& [operators, devices, shares, tensor_parallel, sequence_parallel, tensor_rule, recompute, recomputed, context,
         experts, turns, streams] = all;
  auto& [expert_ranks, expert_tensor] = experts;
  auto& [context_ranks, context_rule, context_heads, context_order] = context;
  way.list(operators);
  way.list(devices);
  way.list(shares);
  way.plain(tensor_parallel);
  way.plain(sequence_parallel);
  way.plain(tensor_rule);
  way.plain(recompute);
  way.list(recomputed);
  way.plain(context_ranks);
  way.plain(context_rule);
  way.plain(context_heads);
  way.plain(context_order);
  way.plain(expert_ranks);
  way.plain(expert_tensor);
  way.plain(turns);
  way.plain(streams);
}

template <class Way, class Stages> void stage_list(Way& way, Stages& stages) {
  way.size(stages);
  for (auto& one : stages) {
    stage(way, one);
  }
}

template <class Way, class Round> void round(Way& way, Round& all) {
  auto& [stages, devices, weights, candidates, step, held, iteration, waiting, tail, why_not, action] = all;
  stage_list(way, stages);
  way.list(devices);
  way.list(weights);
  way.size(candidates);
  for (auto& one : candidates) {
    auto& [operators, able] = one;
    way.list(operators);
    way.list(able);
  }
  way.plain(step);
  way.plain(held);
  way.plain(iteration);
  way.list(waiting);
  way.list(tail);
  way.text(why_not);
  way.text(action);
}

template <class Way, class SomePlan, class Goal> void plan(Way& way, SomePlan& all, bool has_goal, Goal& goal) {
  auto& [strategy, stages, objective, note, default_loader, memory_bound, rounds] = all;
  way.text(strategy);
  stage_list(way, stages);
  if (has_goal) {
    auto& [name, value] = goal;
    way.text(name);
    way.plain(value);
  }
  way.text(note);
  way.plain(default_loader);
  way.plain(memory_bound);
  way.size(rounds);
  for (auto& one : rounds) {
    round(way, one);
  }
}

enum class Kind : char { infeasible, plan, plan_with_objective };

} // namespace

void put_plan(std::string& bytes, const PlanResult& result) {
  const Plan* made = std::get_if<Plan>(&result);
  if (made == nullptr) {
    put(bytes, Kind::infeasible);
    put_text(bytes, std::get<Infeasible>(result).reason);
    return;
  }
  put(bytes, made->objective ? Kind::plan_with_objective : Kind::plan);
  const Objective objective = made->objective.value_or(Objective{});
  Writer writer(bytes);
  plan(writer, *made, made->objective.has_value(), objective);
}

PlanResult take_plan(ByteReader& bytes) {
  const Kind kind = bytes.take<Kind>();
  if (kind == Kind::infeasible) {
    return Infeasible{std::string(bytes.take_text())};
  }
  Plan made;
  Objective objective;
  Reader reader(bytes);
  plan(reader, made, kind == Kind::plan_with_objective, objective);
  if (kind == Kind::plan_with_objective) {
    made.objective = std::move(objective);
  }
  return made;
}

} // namespace stagecraft
