// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/analysis/adapt.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

std::string recovered(int rounds, const char* within) {
  return rounds == 0 ? "never within " + std::string(within)
                     : "within " + std::string(within) + " after " + std::to_string(rounds) +
                           (rounds == 1 ? " round" : " rounds");
}

std::string time_or_dash(Seconds time) { return time.value > 0 ? to_text(time) : "-"; }

Table policies_table(const Adaptation& adaptation) {
  Table table{{{"policy"}, {"total", Align::right}}, {}};
  for (const AdaptPhase& phase : adaptation.phases) {
    table.columns.push_back({"iteration " + std::to_string(phase.end - 1), Align::right});
  }
  for (const char* title : {"moved", "moving took", "rounds", "searching", "replays"}) {
    table.columns.push_back({title, Align::right});
  }
  table.columns.push_back({"remarks"});
  for (const AdaptPolicy& policy : adaptation.policies) {
    std::vector<Cell> row = {{policy.name}, {to_text(policy.total())}};
    for (const AdaptPhase& phase : adaptation.phases) {
      row.push_back({phase.end <= policy.iterations() ? time_or_dash(policy.iteration_before(phase.end)) : "-"});
    }
    for (std::string text :
         {to_text(policy.migrated()), to_text(policy.migration()), std::to_string(policy.rounds.size()),
          policy.name == "dynamic" ? std::to_string(policy.searching) : "-", std::to_string(policy.replays)}) {
      row.push_back({std::move(text)});
    }
    row.push_back({policy.why_not.empty()
                       ? ""
                       : "stopped at iteration " + std::to_string(policy.iterations()) + ": " + policy.why_not,
                   Style::bad});
    table.rows.push_back(std::move(row));
  }
  return table;
}

// A line per round of `dynamic`: its iteration time as a bar, with the waiting as a part of the bar.
Table rounds_picture(const AdaptPolicy& policy) {
  Table table{{{"round", Align::right},
               {"iterations", Align::right},
               {"iteration", Align::right},
               {"largest wait", Align::right},
               {"mean wait", Align::right},
               {"moved", Align::right},
               {"iteration # of which waiting, at most ."},
               {"then"}},
              {}};
  Seconds longest;
  for (const AdaptRound& round : policy.rounds) {
    longest = std::max(longest, round.iteration);
  }
  constexpr double kWidth = 40;
  for (std::size_t r = 0; r < policy.rounds.size(); ++r) {
    const AdaptRound& round = policy.rounds[r];
    const auto whole = static_cast<std::size_t>(std::lround(kWidth * (round.iteration / longest)));
    const auto waits = static_cast<std::size_t>(std::lround(kWidth * (round.largest_waiting / longest)));
    table.rows.push_back({{std::to_string(r)},
                          {std::to_string(round.first) + "-" + std::to_string(round.first + round.iterations - 1)},
                          {to_text(round.iteration)},
                          {to_text(round.largest_waiting)},
                          {to_text(round.mean_waiting)},
                          {round.new_plan ? to_text(round.migrated) : ""},
                          {std::string(whole - std::min(whole, waits), '#') + std::string(waits, '.')},
                          {round.action}});
  }
  return table;
}

Json rounds_json(const AdaptPolicy& policy) {
  Json rounds = Json::array();
  for (const AdaptRound& round : policy.rounds) {
    rounds.push_back({{"first_iteration", round.first},
                      {"iterations", round.iterations},
                      {"iteration_seconds", round.iteration.value},
                      {"largest_waiting_seconds", round.largest_waiting.value},
                      {"mean_waiting_seconds", round.mean_waiting.value},
                      {"new_plan", round.new_plan},
                      {"migrated_bytes", round.migrated.value},
                      {"migration_seconds", round.migration.value},
                      {"action", round.action}});
  }
  return rounds;
}

} // namespace

std::string to_text(const Adaptation& adaptation, bool color) {
  std::string text = adaptation.model + " on " + adaptation.platform + ", " + adaptation.schedule + ", " +
                     std::to_string(adaptation.micro_batches) + " micro-batches; placement " + adaptation.placement +
                     ", update " + adaptation.update + "\n\n" + to_text(policies_table(adaptation), color) + "\n";
  for (const AdaptPhase& phase : adaptation.phases) {
    text += "From iteration " + std::to_string(phase.first) + " (" + phase.what + ") dynamic is " +
            recovered(phase.rounds_to_5_percent, "5 %") + " of oracle, " + recovered(phase.rounds_to_2_percent, "2 %") +
            ".\n";
  }
  return text + "\ndynamic, round by round\n" + to_text(rounds_picture(adaptation.policies[1]), color);
}

std::string to_json(const Adaptation& adaptation) {
  Json json = {{"schema", kSchema},
               {"model", adaptation.model},
               {"platform", adaptation.platform},
               {"schedule", adaptation.schedule},
               {"engine", adaptation.engine},
               {"micro_batches", adaptation.micro_batches},
               {"placement", adaptation.placement},
               {"update", adaptation.update},
               {"inputs", adaptation.inputs},
               {"devices", adaptation.devices},
               {"phases", Json::array()},
               {"policies", Json::array()}};
  const auto or_null = [](int rounds) { return rounds > 0 ? Json(rounds) : Json(); };
  for (const AdaptPhase& phase : adaptation.phases) {
    json["phases"].push_back({{"first_iteration", phase.first},
                              {"end_iteration", phase.end},
                              {"what", phase.what},
                              {"rounds_to_5_percent", or_null(phase.rounds_to_5_percent)},
                              {"rounds_to_2_percent", or_null(phase.rounds_to_2_percent)}});
  }
  for (const AdaptPolicy& policy : adaptation.policies) {
    json["policies"].push_back({{"policy", policy.name},
                                {"why_not", policy.why_not.empty() ? Json() : Json(policy.why_not)},
                                {"iterations", policy.iterations()},
                                {"total_seconds", policy.total().value},
                                {"migrated_bytes", policy.migrated().value},
                                {"migration_seconds", policy.migration().value},
                                {"replays", policy.replays},
                                {"rounds", rounds_json(policy)}});
    if (!policy.balancing.empty()) {
      json["policies"].back()["balancing"] = Json::parse(to_json(policy.balancing));
    }
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_csv(const Adaptation& adaptation) {
  std::ostringstream csv;
  csv.precision(17);
  csv << "policy,round,first_iteration,iterations,iteration_seconds,largest_waiting_seconds,mean_waiting_seconds,"
         "new_plan,migrated_bytes,migration_seconds,action\n";
  for (const AdaptPolicy& policy : adaptation.policies) {
    for (std::size_t r = 0; r < policy.rounds.size(); ++r) {
      const AdaptRound& round = policy.rounds[r];
      csv << csv_cell(policy.name) << "," << r << "," << round.first << "," << round.iterations << ","
          << round.iteration.value << "," << round.largest_waiting.value << "," << round.mean_waiting.value << ","
          << (round.new_plan ? "true" : "false") << "," << round.migrated.value << "," << round.migration.value << ","
          << csv_cell(round.action) << "\n";
    }
  }
  return csv.str();
}

} // namespace stagecraft
