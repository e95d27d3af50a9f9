// SPDX-License-Identifier: Apache-2.0
#include "sim/report/what_ifs.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

template <class Figure> double median_of(const std::vector<Ranking>& rankings, Figure figure) {
  std::vector<double> figures;
  for (const Ranking& ranking : rankings) {
    if (const std::optional<double> one = figure(ranking)) {
      figures.push_back(*one);
    }
  }
  return quantile(figures, 0.5);
}

std::vector<Cell> cells_of(const std::string& name, const WhatIfAccuracy& accuracy) {
  const bool decided = accuracy.pairs > accuracy.ties;
  return {{name, Style::plain},
          {std::to_string(accuracy.pairs), Style::plain},
          {std::to_string(accuracy.ties), Style::plain},
          {decided ? percent(accuracy.signs_right, 1) : "", Style::plain},
          {percent(accuracy.median_error, 1), Style::plain}};
}

Table table_of(const std::vector<WhatIf>& pairs) {
  Table table{{{"what if"},
               {"pairs", Align::right},
               {"ties", Align::right},
               {"sign right", Align::right},
               {"median error of the ratio", Align::right}},
              {}};
  for (const auto& [name, members] : families_of_pairs(pairs)) {
    table.rows.push_back(cells_of(name, accuracy_of_pairs(members)));
  }
  for (const auto& [name, of_devices] : {std::pair{"all of one machine", false}, {"all of two device types", true}}) {
    if (const std::vector<WhatIf> some = pairs_of_devices(pairs, of_devices); !some.empty()) {
      table.rows.push_back(cells_of(name, accuracy_of_pairs(some)));
    }
  }
  return table;
}

Table table_of(const std::vector<Ranking>& rankings) {
  Table table{{{"ranking"}, {"runs", Align::right}, {"rank correlation", Align::right}, {"regret", Align::right}}, {}};
  for (const Ranking& ranking : rankings) {
    table.rows.push_back({{ranking.name, Style::plain},
                          {std::to_string(ranking.runs), Style::plain},
                          {ranking.spearman ? to_text(*ranking.spearman, 3) : "", Style::plain},
                          {percent(ranking.regret, 1), Style::plain}});
  }
  return table;
}

// How well these pairs are predicted, in all and in the median of their families.
std::string sentence_of(const std::vector<WhatIf>& pairs, const std::string& what) {
  const WhatIfAccuracy accuracy = accuracy_of_pairs(pairs);
  std::vector<double> signs, errors;
  for (const auto& [name, members] : families_of_pairs(pairs)) {
    const WhatIfAccuracy one = accuracy_of_pairs(members);
    errors.push_back(one.median_error);
    if (one.pairs > one.ties) {
      signs.push_back(one.signs_right);
    }
  }
  std::string sentence = "Of " + std::to_string(accuracy.pairs) + what + std::to_string(accuracy.ties) + " are ties; ";
  if (!signs.empty()) {
    sentence += "of the others " + percent(accuracy.signs_right, 1) +
                " are predicted to change in the right direction (" + percent(quantile(signs, 0.5), 1) +
                " in the median family), and ";
  }
  return sentence + "the ratio is " + percent(accuracy.median_error, 1) + " off in the median (" +
         percent(quantile(errors, 0.5), 1) + " in the median family).";
}

} // namespace

bool WhatIf::is_tie() const { return std::abs(std::log(measured)) < std::log(1 + tie); }

bool WhatIf::is_sign_right() const { return std::log(measured) * std::log(predicted) > 0; }

std::vector<WhatIf> pairs_of_devices(const std::vector<WhatIf>& pairs, bool of_devices) {
  std::vector<WhatIf> some;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(some),
               [&](const WhatIf& pair) { return pair.is_of_devices() == of_devices; });
  return some;
}

WhatIfAccuracy accuracy_of_pairs(const std::vector<WhatIf>& pairs) {
  WhatIfAccuracy accuracy;
  std::vector<double> errors;
  int right = 0;
  for (const WhatIf& pair : pairs) {
    ++accuracy.pairs;
    errors.push_back(std::abs(pair.error()));
    if (pair.is_tie()) {
      ++accuracy.ties;
    } else if (pair.is_sign_right()) {
      ++right;
    }
  }
  if (accuracy.pairs > accuracy.ties) {
    accuracy.signs_right = static_cast<double>(right) / (accuracy.pairs - accuracy.ties);
  }
  accuracy.median_error = errors.empty() ? 0 : quantile(errors, 0.5);
  return accuracy;
}

std::vector<std::pair<std::string, std::vector<WhatIf>>> families_of_pairs(const std::vector<WhatIf>& pairs) {
  std::vector<std::pair<std::string, std::vector<WhatIf>>> families;
  for (const WhatIf& pair : pairs) {
    const std::string name = pair.group + ", " + pair.setting;
    auto found = std::find_if(families.begin(), families.end(), [&](const auto& one) { return one.first == name; });
    if (found == families.end()) {
      found = families.insert(families.end(), {name, {}});
    }
    found->second.push_back(pair);
  }
  return families;
}

std::vector<std::string> sentences_of(const std::vector<WhatIf>& pairs, const std::vector<Ranking>& rankings) {
  std::vector<std::string> sentences;
  for (const auto& [what, of_devices] : {std::pair{" pairs of runs that differ in one setting, ", false},
                                         {" pairs of device types that did the same work, ", true}}) {
    if (const std::vector<WhatIf> some = pairs_of_devices(pairs, of_devices); !some.empty()) {
      sentences.push_back(sentence_of(some, what));
    }
  }
  if (!rankings.empty()) {
    const double spearman = median_of(rankings, [](const Ranking& ranking) { return ranking.spearman; });
    const double regret = median_of(rankings, [](const Ranking& ranking) { return std::optional(ranking.regret); });
    sentences.push_back("Of " + std::to_string(rankings.size()) +
                        " groups of five and more runs of a model and a device type, the median rank correlation is " +
                        to_text(spearman, 3) + ", and the run predicted fastest takes " + percent(regret, 1) +
                        " longer than the fastest measured.");
  }
  return sentences;
}

std::string to_text(const std::vector<WhatIf>& pairs, const std::vector<Ranking>& rankings, bool color) {
  std::string text;
  if (!pairs.empty()) {
    text += to_text(table_of(pairs), color);
  }
  if (!rankings.empty()) {
    text += (text.empty() ? "" : "\n") + to_text(table_of(rankings), color);
  }
  return text;
}

std::string to_csv(const std::vector<WhatIf>& pairs) {
  std::string text = "table,setting,from,to,before,after,measured,predicted,error,tie\n";
  for (const WhatIf& pair : pairs) {
    text += csv_cell(pair.group) + "," + csv_cell(pair.setting) + "," + csv_cell(pair.from) + "," + csv_cell(pair.to) +
            "," + csv_cell(pair.before) + "," + csv_cell(pair.after) + "," + csv_cell(pair.measured) + "," +
            csv_cell(pair.predicted) + "," + csv_cell(pair.error()) + "," + (pair.is_tie() ? "1" : "0") + "\n";
  }
  return text;
}

} // namespace stagecraft
