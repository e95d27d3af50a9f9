// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_goal.hpp"

#include <algorithm>
#include <array>

#include "sim/base/large_count.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/sweep/space/plain_digits.hpp"

namespace stagecraft {
namespace {

double read_memory(yaml::Map& map, std::string_view name) { return map.quantity<Bytes>(name, yaml::kPositive).value; }
double read_power(yaml::Map& map, std::string_view name) { return map.quantity<Watts>(name, yaml::kPositive).value; }
double read_time(yaml::Map& map, std::string_view name) { return map.quantity<Seconds>(name, yaml::kPositive).value; }
double read_money(yaml::Map& map, std::string_view name) { return map.quantity<Dollars>(name, yaml::kPositive).value; }
double read_price(yaml::Map& map, std::string_view name) {
  return map.quantity<DollarsPerSecond>(name, yaml::kPositive).value;
}
double read_count(yaml::Map& map, std::string_view name) { return map.number(name, yaml::kPositive); }
double read_steps(yaml::Map& map, std::string_view name) { return map.number(name, yaml::kNotNegative); }

template <class Quantity> std::string write(double value) { return to_text(Quantity{value}); }

constexpr char kPerSecond[] = "/s", kPerDollar[] = "/USD", kPerJoule[] = "/J";
template <const char* kUnit> std::string write_rate(double value) {
  constexpr int kDigits = 4;
  return plain_digits(value, kDigits) + " " + kUnit;
}

constexpr std::string_view kSamples = ":samples";

// Whether more (1) or less (-1) of an expression is better, or neither (0). The expression multiplies and divides
// numbers, :samples and columns of points; its first column decides. Another name does not compile.
consteval int better_of(std::string_view expression) {
  int better = 0;
  bool divides = false;
  while (!expression.empty()) {
    const std::string_view word = expression.substr(0, expression.find(' '));
    expression.remove_prefix(std::min(word.size() + 1, expression.size()));
    const bool is_number = word[0] >= '0' && word[0] <= '9';
    if (word != "*" && word != "/" && word != kSamples && !is_number) {
      const Metric& found = metric(word);
      const int way = found.better == Better::more ? 1 : found.better == Better::less ? -1 : 0;
      better = found.point == 0 ? throw "points have no such column" : better != 0 ? better : divides ? -way : way;
    }
    divides = word == "/";
  }
  return better;
}

consteval ObjectiveRow objective(std::string_view name, std::string_view help, std::string_view expression,
                                 std::string (*write)(double value)) {
  const int better = better_of(expression);
  return {.name = name,
          .help = help,
          .expression = expression,
          .write = write,
          .largest = better != 0 ? better > 0 : throw "neither more nor less of it is better",
          .needs_samples = expression.find(kSamples) != std::string_view::npos};
}

consteval ConstraintRow constraint(std::string_view name, std::string_view help, std::string_view expression,
                                   double (*read)(yaml::Map& map, std::string_view name)) {
  return {.name = name,
          .help = help,
          .expression = better_of(expression) <= 0 ? expression : throw "more of it is better",
          .read = read,
          .needs_samples = expression.find(kSamples) != std::string_view::npos};
}

constexpr std::array kObjectives = {
    objective("iteration", "least time of an iteration", "iteration_seconds", write<Seconds>),
    objective("throughput", "most samples per second", "samples_per_second", write_rate<kPerSecond>),
    objective("samples-per-dollar", "most samples for a dollar", "1e6 / usd_per_million_samples",
              write_rate<kPerDollar>),
    objective("samples-per-joule", "most samples for a joule", "1 / joules_per_sample", write_rate<kPerJoule>),
    objective("training-time", "least time to train the samples", ":samples / samples_per_second", write<Seconds>),
    objective("training-cost", "least money to train the samples", ":samples * usd_per_million_samples / 1e6",
              write<Dollars>),
    objective("training-energy", "least energy to train the samples", ":samples * joules_per_sample", write<Joules>),
};

constexpr std::array kConstraints = {
    constraint("memory", "largest peak memory of a device, a size", "peak_memory_bytes", read_memory),
    constraint("power", "mean power, as 6 kW", "mean_power_watts", read_power),
    constraint("price", "money per time, as '30 USD/h'", "cost_usd / iteration_seconds", read_price),
    constraint("iteration", "time of an iteration", "iteration_seconds", read_time),
    constraint("devices", "devices in use", "devices", read_count),
    constraint("staleness", "optimiser steps by which gradients come late; 0 is exact training", "staleness_steps",
               read_steps),
    constraint("training-time", "time to train the objective's samples", ":samples / samples_per_second", read_time),
    constraint("budget", "money to train the objective's samples", ":samples * usd_per_million_samples / 1e6",
               read_money),
};

void read_objective(const yaml::Node& node, SweepGoal& goal) {
  if (node.kind == yaml::Node::Kind::scalar) {
    goal.objective = &find_by_name(kObjectives, node.text, "objective", node.where);
    return;
  }
  yaml::Map map(node, "objective");
  goal.objective = &map.choice("name", kObjectives);
  if (map.has("tokens") && map.has("samples")) {
    throw InputError(map.where("samples"), "'samples' beside 'tokens'; allowed: one of them");
  }
  if (map.has("tokens")) {
    const double tokens = parse_large_count(map.text("tokens"), map.where("tokens"));
    if (!map.has("tokens_per_sample")) {
      throw InputError(map.where("tokens"),
                       "'tokens' needs to know how many a sample has; allowed: 'tokens_per_sample' "
                       "beside it, where the model is an axis or has no tokens");
    }
    goal.samples = tokens / map.number("tokens_per_sample", yaml::kPositive);
  } else {
    goal.samples = map.number("samples", yaml::kPositive, 0);
  }
  map.finish();
}

void need_samples(const SweepGoal& goal, std::string_view name, const Where& where) {
  if (goal.samples == 0) {
    throw InputError(where, "'" + std::string(name) +
                                "' needs to know how much is trained; allowed: objective: {name: …, samples: N}, or "
                                "'tokens' and 'tokens_per_sample'");
  }
}

// The named schedules whose iterations overlap. An order of two ranks shows it.
std::vector<std::string_view> asynchronous_schedules() {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedules()) {
    const ScheduleResult made = make_schedule(planned_row(row), {.ranks = 2, .micro_batches = 2});
    const Schedule* schedule = std::get_if<Schedule>(&made);
    if (schedule != nullptr && !schedule->flushes) {
      names.push_back(row.name);
    }
  }
  return names;
}

} // namespace

bool is_exact(std::string_view order, double staleness) {
  static const std::vector<std::string_view> kAsynchronous = asynchronous_schedules();
  return !(staleness > 0) && std::find(kAsynchronous.begin(), kAsynchronous.end(), order) == kAsynchronous.end();
}

std::string exact_condition() {
  std::string names;
  for (const std::string_view name : asynchronous_schedules()) {
    names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  return "(coalesce(staleness_steps, 0) = 0 and ran not in (" + names + "))";
}

std::span<const ObjectiveRow> objectives() { return kObjectives; }
std::span<const ConstraintRow> constraints() { return kConstraints; }

SweepGoal read_goal(const yaml::Node& sweep) {
  SweepGoal goal;
  goal.objective = &find_by_name(kObjectives, "iteration", "objective", {});
  yaml::Node document{.kind = yaml::Node::Kind::map, .where = sweep.where};
  if (const yaml::Node* objective = sweep.find("objective")) {
    read_objective(*objective, goal);
    if (goal.objective->needs_samples) {
      need_samples(goal, goal.objective->name, objective->where);
    }
    document.entries.push_back({"objective", objective->where, *objective});
  }
  if (const yaml::Node* limits = sweep.find("constraints")) {
    yaml::Map map(*limits, "constraints");
    for (const ConstraintRow& row : kConstraints) {
      if (map.has(row.name)) {
        goal.limits.push_back({&row, row.read(map, row.name), map.text(row.name)});
        if (row.needs_samples) {
          need_samples(goal, row.name, map.where(row.name));
        }
      }
    }
    map.finish();
    document.entries.push_back({"constraints", limits->where, *limits});
  }
  if (const yaml::Node* rank = sweep.find("rank")) {
    goal.exact = find_by_name(kRankings, yaml::scalar(*rank, "rank"), "rank", rank->where).rank == RankBy::exact;
    document.entries.push_back({"rank", rank->where, *rank});
  }
  if (const yaml::Node* labels = sweep.find("labels")) {
    for (const yaml::Node::Entry& entry : labels->entries) {
      goal.labels[entry.key] = yaml::scalar(entry.value, "label");
    }
    document.entries.push_back({"labels", labels->where, *labels});
  }
  goal.exact = goal.exact && std::none_of(goal.limits.begin(), goal.limits.end(),
                                          [](const SweepGoal::Limit& limit) { return limit.row->name == "staleness"; });
  goal.document = yaml::flow_text(document);
  return goal;
}

std::string in_words(const SweepGoal& goal) {
  std::string words(goal.objective->help);
  if (const std::size_t at = words.find("the samples"); at != std::string::npos) {
    constexpr int kDigits = 12;
    words.replace(at, std::string_view("the").size(), to_digits(goal.samples, kDigits));
  }
  for (const SweepGoal::Limit& limit : goal.limits) {
    words +=
        (&limit == goal.limits.data() ? ", with " : " and ") + std::string(limit.row->name) + " at most " + limit.text;
  }
  return words;
}

} // namespace stagecraft
