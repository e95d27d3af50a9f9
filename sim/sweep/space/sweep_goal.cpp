// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_goal.hpp"

#include <array>

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

template <class Quantity> std::string write(double value) { return to_text(Quantity{value}); }

constexpr char kPerSecond[] = "/s", kPerDollar[] = "/USD", kPerJoule[] = "/J";
template <const char* kUnit> std::string write_rate(double value) {
  constexpr int kDigits = 4;
  return plain_digits(value, kDigits) + " " + kUnit;
}

constexpr std::array kObjectives = {
    ObjectiveRow{"iteration", "least time of an iteration", "iteration_seconds", write<Seconds>, false, false},
    ObjectiveRow{"throughput", "most samples per second", "samples_per_second", write_rate<kPerSecond>, true, false},
    ObjectiveRow{"samples-per-dollar", "most samples for a dollar", "1e6 / usd_per_million_samples",
                 write_rate<kPerDollar>, true, false},
    ObjectiveRow{"samples-per-joule", "most samples for a joule", "1 / joules_per_sample", write_rate<kPerJoule>, true,
                 false},
    ObjectiveRow{"training-time", "least time to train the samples", ":samples / samples_per_second", write<Seconds>,
                 false, true},
    ObjectiveRow{"training-cost", "least money to train the samples", ":samples * usd_per_million_samples / 1e6",
                 write<Dollars>, false, true},
    ObjectiveRow{"training-energy", "least energy to train the samples", ":samples * joules_per_sample", write<Joules>,
                 false, true},
};

constexpr std::array kConstraints = {
    ConstraintRow{"memory", "largest peak memory of a device, a size", "peak_memory_bytes", read_memory},
    ConstraintRow{"power", "mean power, as 6 kW", "mean_power_watts", read_power},
    ConstraintRow{"price", "money per time, as '30 USD/h'", "cost_usd / iteration_seconds", read_price},
    ConstraintRow{"iteration", "time of an iteration", "iteration_seconds", read_time},
    ConstraintRow{"devices", "devices in use", "devices", read_count},
    ConstraintRow{"training-time", "time to train the objective's samples", ":samples / samples_per_second", read_time,
                  true},
    ConstraintRow{"budget", "money to train the objective's samples", ":samples * usd_per_million_samples / 1e6",
                  read_money, true},
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
    goal.samples = map.number("tokens", yaml::kPositive) / map.number("tokens_per_sample", yaml::kPositive);
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

} // namespace

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
