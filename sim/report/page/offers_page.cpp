// Several results of one kind as offers: what each takes and costs, the cheapest first.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/report/error_of_ratio.hpp"
#include "sim/report/page/documents.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"
#include "sim/report/page/run_values.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

// The best run of one result.
struct Offer {
  std::string name, file, model;
  RunValues values;
  const json* run = nullptr;
  std::string memory_left;
  double cost = 0; ///< of a billion tokens, or of a million samples; infinite without a price
  double time = 0; ///< the same, in s
};

const json* best_run_of(const json& document) {
  if (document.contains("runs") && document.contains("verdict")) {
    const json& runs = list_at(document, "runs");
    return runs.empty() ? nullptr : &runs.front();
  }
  return document.contains("iteration_seconds") && document.contains("strategy") ? &document : nullptr;
}

std::optional<Offer> offer_of(const std::string& file, const DocumentPage& page) {
  if (page.content == nullptr || !page.content->is_object()) {
    return {};
  }
  const json* run = best_run_of(*page.content);
  if (run == nullptr) {
    return {};
  }
  Offer offer{.name = text_at(*page.content, "platform"),
              .file = file,
              .model = text_at(*page.content, "model"),
              .values = run_values(*run),
              .run = run};
  for (const AnswerFigure& figure :
       offer.values.feasible ? figures_of_run(*page.content, *run, offer.values) : std::vector<AnswerFigure>{}) {
    offer.memory_left = figure.name == "Memory left" ? figure.value : offer.memory_left;
  }
  const double samples = offer.values.of(metric("samples_per_second")),
               tokens = offer.values.of(metric("tokens_per_second"));
  const double unit = tokens > 0 ? 1e9 * samples / tokens : 1e6; // samples
  const double million = offer.values.of(metric("usd_per_million_samples"));
  offer.time = unit / samples;
  offer.cost = million > 0 ? million * unit / 1e6 : std::numeric_limits<double>::infinity();
  return offer;
}

// Cheapest first, then fastest; what does not fit last.
bool is_better(const Offer& one, const Offer& other) {
  if (one.values.feasible != other.values.feasible) {
    return one.values.feasible;
  }
  return one.values.feasible && (one.cost != other.cost ? one.cost < other.cost : one.time < other.time);
}

PageTable table_of(const std::vector<Offer>& offers, bool tokens) {
  const bool whole = std::any_of(offers.begin(), offers.end(),
                                 [](const Offer& offer) { return !object_at(*offer.run, "whole_training").empty(); });
  PageTable table{.title = "The offers, the cheapest first",
                  .columns = {"offer", "time per step [s]",
                              tokens ? "USD per billion tokens" : "USD per million samples",
                              tokens ? "hours per billion tokens" : "hours per million samples"}};
  if (whole) {
    table.columns.insert(table.columns.end(), {"days in all", "USD in all"});
  }
  table.columns.insert(table.columns.end(), {"memory left", "plan", "file"});
  for (const Offer& offer : offers) {
    const json& training = object_at(*offer.run, "whole_training");
    const bool fits = offer.values.feasible;
    std::vector<PageCell> row = {{offer.name},
                                 number_cell(offer.values.iteration()),
                                 number_cell(fits && std::isfinite(offer.cost) ? offer.cost : Mark::kNone),
                                 number_cell(fits ? offer.time / kSecondsOfHour : Mark::kNone)};
    if (whole) {
      row.push_back(number_cell(number_at(training, "seconds") / kSecondsOfDay));
      row.push_back(number_cell(number_at(training, "usd")));
    }
    row.push_back({offer.memory_left});
    row.push_back({fits ? offer.values.label() + "; " + offer.values.plan : text_at(*offer.run, "why_not")});
    row.push_back({offer.file});
    table.rows.push_back(std::move(row));
  }
  return table;
}

// How sure the first is before the second: errors of two predictions are mostly the same error.
std::string how_sure(double ratio, const std::string& next) {
  const std::string apart = percent(ratio - 1, ratio < 1.1 ? 1 : 0);
  const std::string known = error_of_ratio_in_words();
  return ratio - 1 < kErrorOfRatio
             ? "Too close to call against " + next + ", which is " + apart + " behind: " + known + "."
             : next + " is " + apart + " behind: " + known + ". Prices are as the results name them.";
}

Answer answer_of(const std::vector<Offer>& offers, bool tokens) {
  Answer answer{};
  answer.title = "Which of " + std::to_string(offers.size()) + " offers";
  const Offer& best = offers.front();
  if (!best.values.feasible) {
    answer.sentence = "The model fits on none of them.";
    return answer;
  }
  const bool paid = std::isfinite(best.cost);
  const std::string thing = tokens ? "a billion tokens" : "a million samples";
  answer.sentence = best.name + (paid ? " is the cheapest: " : " is the fastest: ") + thing +
                    (paid ? " cost " + to_text(Dollars{best.cost}) + " and take " : " take ") +
                    to_text(best.time / kSecondsOfHour, 1) + " hours" +
                    (best.values.plan.empty() ? "" : ", with " + best.values.plan) + ".";
  if (const std::string whole = text_at(object_at(*best.run, "whole_training"), "in_words"); !whole.empty()) {
    answer.sentence += " " + whole + ".";
  }
  if (offers.size() > 1 && offers[1].values.feasible) {
    answer.sure = how_sure(paid ? offers[1].cost / best.cost : offers[1].time / best.time, offers[1].name);
  }
  return answer;
}

} // namespace

std::optional<DocumentPage> offers_page(const std::vector<std::pair<std::string, const DocumentPage*>>& results) {
  std::vector<Offer> offers;
  for (const auto& [file, page] : results) {
    std::optional<Offer> offer = offer_of(file, *page);
    if (!offer || (!offers.empty() && offer->model != offers.front().model)) {
      return {};
    }
    offers.push_back(std::move(*offer));
  }
  if (offers.size() < 2) {
    return {};
  }
  std::stable_sort(offers.begin(), offers.end(), is_better);
  const bool tokens = offers.front().values.of(metric("tokens_per_second")) > 0;
  PageSection section{.title = "What each offer takes", .sentences = {}};
  section.tables = {table_of(offers, tokens)};
  return DocumentPage{"", {std::move(section)}, {}, answer_of(offers, tokens)};
}

} // namespace stagecraft
