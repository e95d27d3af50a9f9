// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/analysis/explain.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 12;    // rows of a table
constexpr double kNotTold = 5e-4;     // of an iteration: less is not shown
constexpr double kToldPart = 5e-3;    // the same in sentences, which round to whole per cents
constexpr std::size_t kSentences = 3; // parts named in one sentence

std::string change(Seconds now, Seconds before, int decimals = 1) {
  const double relative = now / before - 1;
  return (relative > 0 ? "+" : "") + percent(relative, decimals);
}

// The pieces that count, all others in one row, and what must be known of them.
std::string table_of_shares(const Explanation& explanation, bool color) {
  constexpr double kNothing = 1e-5; // of an iteration: less is no row
  Table table{{{"an iteration"}, {"", Align::right}, {"", Align::right}}, {}};
  const auto add = [&](const std::string& what, Seconds time, Style style) {
    table.rows.push_back({{what, style}, {to_text(time), style}, {percent(time / explanation.iteration, 1), style}});
  };
  Seconds rest;
  bool negative = false;
  for (const TimeShare& share : explanation.shares) {
    const double part = share.time / explanation.iteration;
    negative = negative || part < -kNotTold;
    if (std::abs(part) > kNotTold) {
      add(share.cause, share.time, Style::plain);
    } else {
      rest += share.time;
    }
  }
  if (std::abs(rest / explanation.iteration) > kNothing) {
    add("all else", rest, Style::dim);
  }
  table.rows.push_back({{"in all", Style::strong}, {to_text(explanation.iteration), Style::strong}, {}});
  return to_text(table, color) + "Computing is the mean over devices; the rest is what each cause adds to it.\n" +
         (negative ? "Below 0: with it the iteration is shorter, since it hides behind the causes above it.\n" : "");
}

// "" where nothing is sent.
std::string table_of_communication(const Explanation& explanation, bool color) {
  Table table{
      {{"communication"}, {"exposed", Align::right}, {"hidden", Align::right}, {"waiting for peers", Align::right}},
      {}};
  for (const Communication& one : explanation.communication) {
    table.rows.push_back({{one.axis}, {to_text(one.exposed)}, {to_text(one.hidden)}, {to_text(one.for_peers)}});
  }
  return table.rows.empty() ? "" : "\n" + to_text(table, color);
}

std::string table_of_path(const Explanation& explanation, bool color) {
  Table table{{{"critical path"}, {"", Align::right}, {"", Align::right}, {"tasks", Align::right}}, {}};
  Seconds rest;
  for (std::size_t i = 0; i < explanation.path.size(); ++i) {
    const PathShare& share = explanation.path[i];
    if (i >= kShown) {
      rest += share.time;
      continue;
    }
    table.rows.push_back({{share.what},
                          {to_text(share.time)},
                          {percent(share.time / explanation.iteration, 1)},
                          {to_digits(share.steps, 4)}});
  }
  if (explanation.path.size() > kShown) {
    table.rows.push_back({{std::to_string(explanation.path.size() - kShown) + " more", Style::dim},
                          {to_text(rest), Style::dim},
                          {percent(rest / explanation.iteration, 1), Style::dim}});
  }
  return to_text(table, color);
}

std::string table_of_parts(const std::vector<Sensitivity>& sensitivities, Seconds before, const std::string& title,
                           std::size_t shown, bool color) {
  Table table{{{title}, {"iteration", Align::right}, {"", Align::right}}, {}};
  for (std::size_t i = 0; i < std::min(shown, sensitivities.size()); ++i) {
    const Sensitivity& one = sensitivities[i];
    if (std::abs(one.iteration / before - 1) > kNotTold) {
      table.rows.push_back({{one.part}, {to_text(one.iteration)}, {change(one.iteration, before)}});
    }
  }
  if (table.rows.empty()) {
    table.rows.push_back({{"no part alone helps", Style::dim}});
  }
  return to_text(table, color);
}

Json json_of(const std::vector<Sensitivity>& sensitivities, Seconds before) {
  Json list = Json::array();
  for (const Sensitivity& one : sensitivities) {
    list.push_back(
        {{"part", one.part}, {"iteration_seconds", one.iteration.value}, {"change", one.iteration / before - 1}});
  }
  return list;
}

// "network 4 times as fast".
std::string faster(const Explanation& explanation, const NextBottleneck& next) {
  const bool is_first = &next == &explanation.next.front();
  return next.mended + " " + to_digits(next.factor, 3) + " times as fast" + (is_first ? "" : ", too,");
}

} // namespace

std::vector<std::string> summary_of(const Explanation& explanation) {
  std::vector<TimeShare> lost;
  Seconds computing;
  for (const TimeShare& share : explanation.shares) {
    const bool computes = share.cause != name_of(TaskKind::recompute) &&
                          std::find(kTaskNames.begin(), kTaskNames.end(), share.cause) != kTaskNames.end();
    computing += computes ? share.time : Seconds{0};
    if (!computes && share.time / explanation.iteration > kToldPart) {
      lost.push_back(share);
    }
  }
  std::stable_sort(lost.begin(), lost.end(), [](const TimeShare& a, const TimeShare& b) { return a.time > b.time; });
  std::string where = "Of " + to_text(explanation.iteration) + " an iteration devices compute " +
                      percent(computing / explanation.iteration, 0);
  for (std::size_t i = 0; i < std::min(lost.size(), kSentences); ++i) {
    where += (i == 0 ? "; lost to " : ", ") + lost[i].cause + " " + percent(lost[i].time / explanation.iteration, 0);
  }
  for (const TimeShare& share : explanation.shares) { // a negative share hides behind those before it
    const double part = share.time / explanation.iteration;
    where += part < -kToldPart ? "; less " + percent(-part, 0) + " as " + share.cause + " hide behind that" : "";
  }
  std::vector<std::string> sentences = {where + "."};
  for (const SlowestDevice& slowest : explanation.slowest) {
    sentences.push_back("All wait for the slowest of " + std::to_string(slowest.devices) + " " + slowest.type +
                        ", whose products take " + percent(slowest.longer - 1, 1) + " longer than the mean device's.");
  }
  if (explanation.next.empty()) {
    sentences.emplace_back("No single part that is faster makes the run shorter.");
    return sentences;
  }
  const Sensitivity& best = explanation.sensitivities.front();
  sentences.push_back("With " + best.part + " 10 % faster the iteration would change by " +
                      change(best.iteration, explanation.iteration) + ", more than with any other part.");
  Seconds before = explanation.iteration;
  for (const NextBottleneck& next : explanation.next) {
    const bool helps = !next.sensitivities.empty() && next.sensitivities.front().iteration < next.iteration;
    sentences.push_back("With " + faster(explanation, next) + " it takes " + to_text(next.iteration) + " (" +
                        change(next.iteration, before) + "); " +
                        (helps ? "what would help most then: " + next.sensitivities.front().part + "."
                               : "no part alone would help then."));
    before = next.iteration;
  }
  return sentences;
}

std::string to_text(const Explanation& explanation, bool color) {
  std::string text = table_of_shares(explanation, color) + table_of_communication(explanation, color) + "\n" +
                     table_of_path(explanation, color) + "\n" +
                     table_of_parts(explanation.sensitivities, explanation.iteration, "10 % faster", kShown, color);
  for (const NextBottleneck& next : explanation.next) {
    text += "\n" + table_of_parts(next.sensitivities, next.iteration, "10 % faster, with " + faster(explanation, next),
                                  kSentences, color);
  }
  text += "\n";
  for (const std::string& sentence : summary_of(explanation)) {
    text += sentence + "\n";
  }
  return text;
}

std::string to_json(const Explanation& explanation) {
  Json json = {{"iteration_seconds", explanation.iteration.value},
               {"shares", Json::array()},
               {"communication", Json::array()},
               {"critical_path", Json::array()},
               {"sensitivities", json_of(explanation.sensitivities, explanation.iteration)},
               {"next", Json::array()},
               {"summary", summary_of(explanation)}};
  for (const TimeShare& share : explanation.shares) {
    json["shares"].push_back({{"cause", share.cause}, {"seconds", share.time.value}});
  }
  for (const Communication& one : explanation.communication) {
    json["communication"].push_back({{"axis", one.axis},
                                     {"exposed_seconds", one.exposed.value},
                                     {"hidden_seconds", one.hidden.value},
                                     {"waiting_for_peers_seconds", one.for_peers.value}});
  }
  for (const PathShare& share : explanation.path) {
    json["critical_path"].push_back({{"what", share.what}, {"seconds", share.time.value}, {"tasks", share.steps}});
  }
  for (const NextBottleneck& next : explanation.next) {
    json["next"].push_back({{"mended", next.mended},
                            {"factor", next.factor},
                            {"iteration_seconds", next.iteration.value},
                            {"sensitivities", json_of(next.sensitivities, next.iteration)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace stagecraft
