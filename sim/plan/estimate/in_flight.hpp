// What a schedule holds, as planners ask for it: each answer is worked out once and then read from an array.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stagecraft {

/// The most micro-batches that stage `stage` of `stages` holds at once. Stages are numbered over all ranks. Copies
/// share what they have been asked.
class InFlight {
public:
  using Rule = std::function<double(int stage, int stages)>;
  using Answers = std::vector<std::vector<double>>; ///< [stages][stage]; NaN: nobody asked

  InFlight() = default;
  /// `rule` is asked at most once for each pair.
  template <class Callable, class = std::enable_if_t<std::is_invocable_r_v<double, Callable, int, int> &&
                                                     !std::is_same_v<InFlight, std::decay_t<Callable>>>>
  InFlight(Callable&& rule) : table_(std::make_shared<Table>(Table{std::forward<Callable>(rule), {}})) {}

  double operator()(int stage, int stages) const {
    const auto& known = table_->known;
    const auto row = static_cast<std::size_t>(stages);
    const auto column = static_cast<std::size_t>(stage);
    const bool asked = row < known.size() && column < known[row].size() && !std::isnan(known[row][column]);
    return asked ? known[row][column] : ask(row, column);
  }

  const Answers& answers() const { return table_->known; }
  /// What knows these answers and no others: to compare with, not to ask.
  static InFlight answered(Answers answers) {
    InFlight made(Rule{});
    made.table_->known = std::move(answers);
    return made;
  }

  /// The same rule, before anyone has asked.
  InFlight unasked() const { return {table_->rule}; }

  /// Whether this answers all that `other` was asked in the same way.
  bool answers_like(const InFlight& other) const {
    const auto& answers = other.table_->known;
    for (std::size_t row = 0; row < answers.size(); ++row) {
      for (std::size_t column = 0; column < answers[row].size(); ++column) {
        const double answer = answers[row][column];
        if (!std::isnan(answer) && (*this)(static_cast<int>(column), static_cast<int>(row)) != answer) {
          return false;
        }
      }
    }
    return true;
  }

private:
  struct Table {
    Rule rule;
    Answers known;
  };

  double ask(std::size_t stages, std::size_t stage) const {
    auto& known = table_->known;
    known.resize(std::max(known.size(), stages + 1));
    known[stages].resize(std::max(known[stages].size(), stage + 1), std::numeric_limits<double>::quiet_NaN());
    return known[stages][stage] = table_->rule(static_cast<int>(stage), static_cast<int>(stages));
  }

  std::shared_ptr<Table> table_;
};

} // namespace stagecraft
