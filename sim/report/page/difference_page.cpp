// Two results of one kind side by side: what differs in what they were made from, and what that did.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/report/page/strategy_colors.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

// One of the two results.
struct Side {
  std::string name;
  const json* document = nullptr;
  std::vector<const json*> runs; // in order of rank
};

std::optional<Side> side_of(const std::string& name, const DocumentPage& page) {
  if (page.content == nullptr || !page.content->is_object()) {
    return {};
  }
  Side side{name, page.content.get(), {}};
  if (page.content->contains("runs") && page.content->contains("verdict")) {
    for (const json& run : list_at(*page.content, "runs")) {
      side.runs.push_back(&run);
    }
  } else if (page.content->contains("iteration_seconds") && page.content->contains("strategy")) {
    side.runs.push_back(page.content.get());
  }
  return side.runs.empty() ? std::nullopt : std::optional(std::move(side));
}

// What one input says in both results; "" where one does not have it.
struct Change {
  std::string what, before, after;
};

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void flatten(const json& value, const std::string& key, std::map<std::string, std::string>& flat) {
  if (value.is_object()) {
    for (const auto& [name, part] : value.items()) {
      std::string word = name;
      std::replace(word.begin(), word.end(), '_', ' ');
      flatten(part, key.empty() ? word : key + " " + word, flat);
    }
  } else if (!value.is_null()) {
    flat[key] = text_of(value);
  }
}

// What a result was made from, by the words that a reader knows.
std::map<std::string, std::string> inputs_of(const Side& side) {
  std::map<std::string, std::string> flat;
  json setting = object_at(*side.document, "setting");
  if (setting.contains("platform")) { // the description and the types say as much as the links one by one
    json& platform = setting["platform"];
    std::string types, prices;
    for (const json& type : list_at(platform, "types")) {
      types += (types.empty() ? "" : ", ") + std::to_string(whole_at(type, "count", 0)) + " " + text_at(type, "name");
      const double price = number_at(type, "usd_per_hour");
      prices += std::isfinite(price)
                    ? (prices.empty() ? "" : ", ") + text_at(type, "name") + " " + to_text(price, 2) + " USD/h"
                    : "";
    }
    std::string network;
    for (const json& link : list_at(platform, "network")) {
      const double rate = number_at(link, "bytes_per_second");
      network += (network.empty() ? "" : ", ") + text_at(link, "from") + " to " + text_at(link, "to") + " " +
                 to_text(BytesPerSecond{rate});
    }
    platform = json{{"description", text_at(platform, "description")},
                    {"devices", types},
                    {"network", network},
                    {"prices", prices}};
  }
  flatten(setting, "", flat);
  for (const char* key : {"model", "platform", "global_batch", "rank"}) {
    const auto found = side.document->find(key);
    const bool told = std::string(key) == "global_batch" && flat.contains("training global batch");
    if (found != side.document->end() && !found->is_object() && !told) {
      flat[key] = text_of(*found);
    }
  }
  std::string files;
  for (const std::string& file : texts_at(*side.document, "inputs")) {
    files += (files.empty() ? "" : ", ") + file;
  }
  flat["files"] = files;
  return flat;
}

std::vector<Change> changes_of(const Side& before, const Side& after) {
  const auto one = inputs_of(before), other = inputs_of(after);
  std::set<std::string> keys;
  for (const auto& [key, value] : one) {
    keys.insert(key);
  }
  for (const auto& [key, value] : other) {
    keys.insert(key);
  }
  const auto at = [](const std::map<std::string, std::string>& flat, const std::string& key) {
    const auto found = flat.find(key);
    return found == flat.end() ? std::string() : found->second;
  };
  std::vector<Change> changes;
  for (const std::string& key : keys) {
    if (at(one, key) != at(other, key)) {
      changes.push_back({key, at(one, key), at(other, key)});
    }
  }
  return changes;
}

std::string key_of(const RunValues& run) { return run.label() + " " + run.order; }

// "+12 %", "−3.1 %".
std::string signed_percent(double part) {
  constexpr double kSmall = 0.1;
  return (part > 0 ? "+" : part < 0 ? "−" : "") + percent(std::abs(part), std::abs(part) < kSmall ? 1 : 0);
}

// "12 % more", "the same".
std::string difference_in_words(double part, const char* more, const char* less) {
  constexpr double kSame = 5e-4, kSmall = 0.1;
  return std::abs(part) < kSame
             ? "the same"
             : percent(std::abs(part), std::abs(part) < kSmall ? 1 : 0) + " " + (part > 0 ? more : less);
}

std::string shown(const Metric& metric, double value) {
  if (!std::isfinite(value)) {
    return "–";
  }
  if (metric.unit == "s") {
    return to_text(Seconds{value});
  }
  if (metric.unit == "B") {
    return to_text(Bytes{value});
  }
  if (metric.unit == "J") {
    return to_text(Joules{value});
  }
  if (metric.unit == "USD") {
    return to_text(Dollars{value});
  }
  return metric.heading.ends_with("[%]") ? percent(value, 1) : number_cell(metric.scale * value).text;
}

// The figures of both best runs.
PageTable figures_table(const Side& before, const Side& after, const RunValues& first, const RunValues& second) {
  PageTable table{.title = "The best run of each", .columns = {"figure", before.name, after.name, "change [%]"}};
  table.rows.push_back({{"split and schedule"}, {first.label()}, {second.label()}, {""}});
  if (!first.plan.empty() || !second.plan.empty()) {
    table.rows.push_back({{"plan"}, {first.plan}, {second.plan}, {""}});
  }
  constexpr std::array kShown = {&metric("iteration_seconds"),       &metric("samples_per_second"),
                                 &metric("tokens_per_second"),       &metric("mfu"),
                                 &metric("usd_per_million_samples"), &metric("joules_per_sample"),
                                 &metric("peak_memory_bytes"),       &metric("bubble_fraction"),
                                 &metric("lower_bound_seconds"),     &metric("over_bound")};
  for (const Metric* one : kShown) {
    const double a = first.of(*one), b = second.of(*one);
    if (std::isfinite(a) || std::isfinite(b)) {
      const std::string name(one->heading.empty() ? one->name : one->heading.substr(0, one->heading.find(" [")));
      table.rows.push_back(
          {{name}, {shown(*one, a)}, {shown(*one, b)}, percent_cell(a != 0 ? b / a - 1 : Mark::kNone)});
    }
  }
  return table;
}

PageTable changes_table(const std::vector<Change>& changes, const Side& before, const Side& after) {
  PageTable table{.title = "What differs in the inputs", .columns = {"input", before.name, after.name}};
  for (const Change& change : changes) {
    table.rows.push_back({{change.what}, {change.before}, {change.after}});
  }
  return table;
}

// Runs of both results that were asked for alike, with the ratio of their times.
struct Pair {
  RunValues before, after;
  double change() const { return after.iteration() / before.iteration() - 1; }
};

std::vector<Pair> pairs_of(const Side& before, const Side& after) {
  std::map<std::string, RunValues> known;
  for (const json* run : before.runs) {
    RunValues values = run_values(*run);
    values.recompute = recompute_of(*run);
    known.emplace(key_of(values), values);
  }
  std::vector<Pair> pairs;
  for (const json* run : after.runs) {
    RunValues values = run_values(*run);
    values.recompute = recompute_of(*run);
    const auto found = known.find(key_of(values));
    if (found != known.end() && found->second.feasible && values.feasible) {
      pairs.push_back({found->second, std::move(values)});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.change() < b.change(); });
  return pairs;
}

PageTable pairs_table(const std::vector<Pair>& pairs, const Side& before, const Side& after) {
  PageTable table{.title = "Runs that both have, those that gain most first",
                  .columns = {"strategy", "schedule", "micro-batches", "recompute", before.name + " [s]",
                              after.name + " [s]", "change [%]"}};
  for (const Pair& pair : pairs) {
    table.rows.push_back({{pair.after.strategy},
                          {pair.after.schedule},
                          number_cell(pair.after.micro_batches),
                          {pair.after.recompute == "none" ? "" : pair.after.recompute},
                          number_cell(pair.before.iteration()),
                          number_cell(pair.after.iteration()),
                          percent_cell(pair.change())});
  }
  return table;
}

// Both best runs as bars.
Chart best_chart(const Side& before, const Side& after, const RunValues& first, const RunValues& second) {
  Chart chart = bars_of("difference", "Time per step of the best run", "[s]",
                        {{before.name, first.iteration()}, {after.name, second.iteration()}});
  chart.wide = true;
  for (std::size_t at = 0; at < chart.series.front().marks.size(); ++at) {
    const RunValues& run = at == 0 ? first : second;
    chart.series.front().marks[at].color = strategy_color(run.strategy);
    chart.series.front().marks[at].label += ", " + run.label();
  }
  return chart;
}

std::string changed_in_words(const std::vector<Change>& changes) {
  constexpr std::size_t kMost = 3, kLong = 40;
  std::string words;
  std::size_t told = 0;
  for (const Change& change : changes) {
    if (change.what == "files" || told == kMost || change.before.size() + change.after.size() > kLong) {
      continue;
    }
    const std::string before = change.before.empty() ? "none" : change.before;
    words += (told++ == 0 ? "" : ", ") + change.what + " from " + before + " to " +
             (change.after.empty() ? "none" : change.after);
  }
  const std::size_t files =
      std::count_if(changes.begin(), changes.end(), [](auto& one) { return one.what == "files"; });
  const std::size_t rest = changes.size() - told - files; // a file of another name is no difference of its own
  if (words.empty()) {
    return rest == 0 ? "nothing that the results name" : std::to_string(rest) + (rest == 1 ? " input" : " inputs");
  }
  return rest == 0 ? words : words + " and " + std::to_string(rest) + " more";
}

Answer answer_of(const Side& before, const Side& after, const std::vector<Change>& changes,
                 const std::vector<Pair>& pairs, const RunValues& first, const RunValues& second) {
  Answer answer{};
  answer.title = "What changed from " + before.name + " to " + after.name;
  if (!first.feasible || !second.feasible) {
    answer.sentence = (second.feasible ? "Now something fits that did not: " : "Nothing fits any more: ") +
                      std::string("changed were ") + changed_in_words(changes) + ".";
    return answer;
  }
  const double change = second.iteration() / first.iteration() - 1;
  constexpr double kSame = 5e-4;
  const Metric& rate = metric("samples_per_second");
  const double samples = second.of(rate) / first.of(rate) - 1;
  const bool same_batch = std::abs((1 + change) * (1 + samples) - 1) < kSame; // else steps are no measure
  const std::string effect =
      same_batch
          ? "A step of the best run takes " + to_text(Seconds{second.iteration()}) + " instead of " +
                to_text(Seconds{first.iteration()}) + ", " + difference_in_words(change, "longer", "shorter")
          : "The best run trains " + shown(rate, second.of(rate)) + " instead of " + shown(rate, first.of(rate)) +
                " samples per second, " + difference_in_words(samples, "more", "less");
  answer.sentence = effect + "; changed in the inputs: " + changed_in_words(changes) + ".";
  answer.figures = {{"Samples per second", signed_percent(samples), shown(rate, first.of(rate)) + " before"},
                    {"Time per step", signed_percent(change), to_text(Seconds{first.iteration()}) + " before"}};
  const auto add = [&](const char* name, const Metric& metric) {
    const double a = first.of(metric), b = second.of(metric);
    if (a > 0 && b > 0) {
      answer.figures.push_back(
          {name, signed_percent(b / a - 1), shown(metric, a) + " before, " + shown(metric, b) + " now"});
    }
  };
  add("Cost per million samples", metric("usd_per_million_samples"));
  add("Energy per sample", metric("joules_per_sample"));
  add("Peak memory", metric("peak_memory_bytes"));
  if (pairs.size() > 1) {
    const auto faster =
        std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.change() < -kSame; });
    const auto slower =
        std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.change() > kSame; });
    answer.figures.push_back({"Runs in both", std::to_string(pairs.size()),
                              std::to_string(faster) + " faster, " + std::to_string(slower) + " slower"});
  }
  answer.sure = first.label() == second.label()
                    ? "The same split under the same schedule is best in both."
                    : "Another run is best now: " + second.label() + " instead of " + first.label() + ".";
  return answer;
}

} // namespace

std::optional<DocumentPage> difference_page(const std::string& name_before, const DocumentPage& before,
                                            const std::string& name_after, const DocumentPage& after) {
  const std::optional<Side> one = side_of(name_before, before), other = side_of(name_after, after);
  if (!one || !other || one->document->contains("runs") != other->document->contains("runs")) {
    return {};
  }
  const std::vector<Change> changes = changes_of(*one, *other);
  const std::vector<Pair> pairs = pairs_of(*one, *other);
  const RunValues first = run_values(*one->runs.front()), second = run_values(*other->runs.front());
  PageSection section{.title = "What changed, and what it did", .sentences = {}};
  if (first.feasible && second.feasible) {
    section.charts = {best_chart(*one, *other, first, second)};
    section.tables = {figures_table(*one, *other, first, second)};
  }
  if (!changes.empty()) {
    section.tables.insert(section.tables.begin(), changes_table(changes, *one, *other));
  }
  if (pairs.size() > 1) {
    section.tables.push_back(pairs_table(pairs, *one, *other));
  }
  DocumentPage page{"", {std::move(section)}, {}, answer_of(*one, *other, changes, pairs, first, second)};
  return page;
}

} // namespace stagecraft
