// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/read_sweep_results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/sweep/space/sweep_condition.hpp"
#include "sim/sweep/space/sweep_figures.hpp"
#include "sim/sweep/store/axis_names.hpp"
#include "sim/sweep/store/kept_prices.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

bool same_limits(const SweepGoal& one, const SweepGoal& other) {
  return std::equal(one.limits.begin(), one.limits.end(), other.limits.begin(), other.limits.end(),
                    [&](const SweepGoal::Limit& a, const SweepGoal::Limit& b) {
                      return a.row == b.row && a.most == b.most &&
                             (!a.row->needs_samples || one.samples == other.samples);
                    });
}

std::string limits_in_words(const SweepGoal& goal) {
  std::string words;
  for (const SweepGoal::Limit& limit : goal.limits) {
    words += (words.empty() ? "" : " and ") + std::string(limit.row->name) + " at most " + limit.text;
  }
  return words;
}

// Checks points against a goal's constraints. Their SQL expressions are read as conditions, so that each has only one
// definition.
class Limits {
public:
  explicit Limits(const SweepGoal& goal) : values_(kFigures + 2) {
    std::vector<std::string> known;
    for (const Metric& row : figures()) {
      known.emplace_back(row.name);
    }
    known.insert(known.end(), {"samples", "limit"});
    for (ConditionValue& value : values_) {
      value.numeric = true;
    }
    values_[kFigures].number = goal.samples;
    for (const SweepGoal::Limit& limit : goal.limits) {
      std::string text = std::string(limit.row->expression) + " <= limit";
      std::erase(text, ':'); // in :samples
      conditions_.emplace_back(Condition(text, {}, known), limit.most);
    }
  }

  bool hold(const Figures& figures) {
    for (std::size_t i = 0; i < kFigures; ++i) {
      values_[i].number = figures.at(i);
    }
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const auto& one) {
      values_.back().number = one.second;
      return one.first.holds([&](std::size_t known) -> const ConditionValue& { return values_[known]; });
    });
  }

private:
  std::vector<std::pair<Condition, double>> conditions_; // each with its limit
  std::vector<ConditionValue> values_;                   // figures, samples, limit
};

// The best points of a sweep.
struct Best {
  std::string sweep;
  SweepGoal goal;
  std::uint64_t aside = 0; ///< points that are not of exact training and so do not count
  std::vector<RankedPoint> points;
};

class Reader {
public:
  /// `best`: the best points by each sweep's goal; the answers say their rank.
  Reader(std::vector<std::vector<std::string>> axes, const std::vector<Best>& best, const AxisNames& names)
      : axes_(std::move(axes)) {
    for (const auto& [name, goal, aside, points] : best) {
      SweepAnswer& answer = results_.answers.emplace_back();
      answer.sweep = name;
      answer.words = stagecraft::in_words(goal);
      for (const RankedPoint& point : points) {
        places_[point.row.key].emplace_back(results_.answers.size() - 1, answer.best.size());
        const bool assumed = goal.objective->is_money() && figure(point.row.figures, "assumed_cost_share") > 0;
        answer.best.push_back({0, point.score, (assumed ? kAssumedMark : "") + goal.objective->write(point.score)});
      }
    }
    for (const std::vector<std::string>& keys : axes_) {
      results_.axes.push_back({as_one_axis(keys), {}, names.name_of(keys)});
      for (const Best& one : best) {
        const auto label = one.goal.labels.find(as_one_axis(keys));
        results_.axes.back().label = label == one.goal.labels.end() ? results_.axes.back().label : label->second;
      }
    }
    for (const std::string_view key : kRunAxes) {
      results_.axes.push_back({std::string(key), {}});
    }
    numbers_.resize(results_.axes.size());
    heed_limits(best);
  }

  void add(const PointRow& row) {
    if (row.status != PointStatus::feasible) {
      ++(row.status == PointStatus::failed ? results_.failed : results_.infeasible);
      SweepReason& reason = reasons_[row.reason];
      if (reason.points++ == 0) {
        reason.reason = row.reason;
        reason.one = in_words(row);
      }
      return;
    }
    if (const auto ranked = places_.find(row.key); ranked != places_.end()) {
      for (const auto& [answer, rank] : ranked->second) {
        results_.answers[answer].best[rank].point = results_.points();
      }
    }
    const Json settings = Json::parse(row.settings);
    const std::size_t keys = axes_.size();
    for (std::size_t axis = 0; axis < keys; ++axis) {
      std::vector<std::string> values;
      for (const std::string& key : axes_[axis]) {
        if (settings.contains(key)) {
          values.push_back(settings[key].get<std::string>());
        }
      }
      values.size() == axes_[axis].size() ? add_value(axis, as_one_axis(values)) : results_.value.push_back(kNoValue);
    }
    add_value(keys, row.strategy);
    add_value(keys + 1, row.schedule);
    add_value(keys + 2, std::to_string(row.micro_batches));
    add_value(keys + 3, row.recompute);
    results_.iteration.push_back(figure(row.figures, "iteration_seconds"));
    results_.samples_per_second.push_back(figure(row.figures, "samples_per_second"));
    results_.dollars_per_million.push_back(figure(row.figures, "usd_per_million_samples"));
    results_.assumed.push_back(figure(row.figures, "assumed_cost_share") > 0 ? 1 : 0);
    results_.joules_per_sample.push_back(figure(row.figures, "joules_per_sample"));
    results_.peak_memory.push_back(figure(row.figures, "peak_memory_bytes"));
    const bool exact = is_exact(row.order, figure(row.figures, "staleness_steps"));
    some_exact_ = some_exact_ || exact;
    if (limits_ || exact_alone_) {
      const bool kept = (!limits_ || limits_->hold(row.figures)) && (exact || !exact_alone_);
      results_.outside.push_back(kept ? 0 : 1);
    }
    constexpr std::size_t kDigits = 8;
    results_.keys.push_back(to_text(row.key).substr(0, kDigits));
  }

  SweepResults finish() {
    constexpr std::size_t kMost = 50;
    if (wants_exact_ && !some_exact_ && results_.points() > 0) {
      results_.training = kNoneExact;
    }
    for (auto& [text, reason] : reasons_) {
      results_.reasons.push_back(std::move(reason));
    }
    std::stable_sort(results_.reasons.begin(), results_.reasons.end(),
                     [](const SweepReason& a, const SweepReason& b) { return a.points > b.points; });
    results_.reasons.resize(std::min(results_.reasons.size(), kMost));
    return std::move(results_);
  }

private:
  // Takes up the sweeps' limits where all sweeps have the same, and that training be exact where all want that and some
  // point is not.
  void heed_limits(const std::vector<Best>& best) {
    results_.constraints_differ = std::any_of(
        best.begin(), best.end(), [&](const Best& one) { return !same_limits(one.goal, best.front().goal); });
    wants_exact_ = std::all_of(best.begin(), best.end(), [](const Best& one) { return one.goal.exact; });
    exact_alone_ = wants_exact_ && std::any_of(best.begin(), best.end(), [](const Best& one) { return one.aside > 0; });
    if (!best.empty() && !results_.constraints_differ && !best.front().goal.limits.empty()) {
      limits_.emplace(best.front().goal);
      results_.constraints = limits_in_words(best.front().goal);
    }
    if (exact_alone_) {
      results_.constraints += (results_.constraints.empty() ? "" : " and ") + std::string("exact training");
    }
  }

  // "network.bandwidth 10 Gb/s, uniform, 1f1b, 8 micro-batches": a point that has no row of its own.
  std::string in_words(const PointRow& row) const {
    std::string words;
    const Json settings = Json::parse(row.settings);
    for (const auto& [key, value] : settings.items()) {
      const auto axis = std::find_if(results_.axes.begin(), results_.axes.end(),
                                     [&, name = key](const SweptAxis& one) { return one.key == name; });
      words += (words.empty() ? "" : ", ") +
               value_in_words(axis == results_.axes.end() ? SweptAxis{key, {}} : *axis, value.get<std::string>());
    }
    if (!row.strategy.empty()) { // empty: no run could be made
      words += (words.empty() ? "" : ", ") + row.strategy + ", " + row.schedule + ", " +
               std::to_string(row.micro_batches) + " micro-batches";
    }
    return words;
  }

  void add_value(std::size_t axis, const std::string& text) {
    auto& values = results_.axes[axis].values;
    const auto [found, added] = numbers_[axis].try_emplace(text, static_cast<std::uint32_t>(values.size()));
    if (added) {
      values.push_back(text);
    }
    results_.value.push_back(found->second);
  }

  SweepResults results_;
  std::vector<std::vector<std::string>> axes_; // the sweeps' own, with their keys
  std::optional<Limits> limits_;
  bool wants_exact_ = false, some_exact_ = false;
  bool exact_alone_ = false;                                  // points of asynchronous schedules count as outside
  std::vector<std::map<std::string, std::uint32_t>> numbers_; // [axis]: of its values
  std::map<Digest, std::vector<std::pair<std::size_t, std::size_t>>> places_; // of the best points: answer and rank
  std::map<std::string, SweepReason> reasons_;
};

// The values of keys that have one value in all studies, as a reader would name them.
std::vector<AnswerBasis> basis_of(const std::vector<SweepStore::Asked>& asked, const std::vector<std::string>& axes) {
  constexpr std::array<std::pair<const char*, std::string_view>, 6> kTold = {{{"Model", "model"},
                                                                              {"Machine", "platform"},
                                                                              {"Batch", "training.global_batch"},
                                                                              {"Precision", "training.precision"},
                                                                              {"Optimizer", "training.optimizer"},
                                                                              {"Kernel times", "cost_model"}}};
  std::vector<AnswerBasis> basis;
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    const bool same = std::all_of(values.begin(), values.end(), [&](const auto& one) { return one == values.front(); });
    if (same && !values.empty() && !values.front().empty()) {
      basis.push_back({name, values.front()});
    }
  };
  for (const auto& [name, key] : kTold) {
    if (std::find(axes.begin(), axes.end(), key) != axes.end()) {
      continue; // each point has its own
    }
    std::vector<std::string> values;
    for (const SweepStore::Asked& one : asked) {
      const yaml::Node document = yaml::parse(one.document, "the study of a sweep");
      const yaml::Node* node = document.find(key.substr(0, key.find('.')));
      node = node != nullptr && key.find('.') != key.npos ? node->find(key.substr(key.find('.') + 1)) : node;
      values.push_back(node != nullptr ? node->text : "");
    }
    add(name, values);
  }
  std::vector<std::string> programs;
  for (const SweepStore::Asked& one : asked) {
    programs.push_back("Stagecraft " + one.program);
  }
  add("Made by", programs);
  return basis;
}

} // namespace

SweepResults read_sweep_results(SweepStore& store) {
  constexpr std::uint64_t kBest = 10;
  std::vector<Best> best;
  const std::vector<SweepStore::Asked> asked = store.asked();
  for (const auto& [sweep, name, goal, program, document] : asked) {
    best.push_back({name, goal, store.set_aside(sweep, goal), {}});
    best.back().points = store.best(sweep, best.back().goal, "", kBest);
  }
  Reader reader(store.axes(), best, AxisNames(store));
  store.for_each([&](const PointRow& row) { reader.add(row); }, true);
  SweepResults results = reader.finish();
  results.screened = store.screened();
  for (const std::string& name : store.names()) {
    results.name += (results.name.empty() ? "" : ", ") + name;
  }
  results.inputs = store.paths();
  const bool has_cost = std::any_of(results.dollars_per_million.begin(), results.dollars_per_million.end(),
                                    [](double cost) { return cost > 0; });
  results.prices = has_cost ? price_remark(kept_prices(store, 0)) : "";
  results.basis = basis_of(asked, store.axis_keys());
  return results;
}

} // namespace stagecraft
