// Conditions on the points of a sweep: "platform.nodes.0.count * 8 <= 16 or strategy == uniform".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/dimension.hpp"
#include "sim/base/error.hpp"

namespace stagecraft {

/// A value in a condition: a text, and its number where it is one or a quantity (in SI units).
struct ConditionValue {
  std::string text;
  double number = 0;
  bool numeric = false;
  Dimension dimension;

  /// 0 without a unit, which is a quantity of any kind.
  bool is_plain_zero() const { return numeric && number == 0 && dimension == Dimension{}; }
};
ConditionValue condition_value(std::string text);
/// Whether two are both texts, or quantities of one dimension.
bool same_kind(const ConditionValue& one, const ConditionValue& other);

/// A known word in the eyes of Condition::check_kinds().
struct WordKinds {
  ConditionValue value;               ///< stands for all like it; without text: any text, or number
  std::vector<ConditionValue> others; ///< of each kind that the word's values have, one
};

/// One condition, read. Operators by rising strength: or; and; not; == != < <= > >=; + -; * /. Quantities and texts
/// with spaces stand in single quotes.
class Condition {
public:
  /// Throws InputError at `where`. A word that `known` does not hold is a text if it is compared, by == or !=, with a
  /// known one, else an error that lists what is known.
  Condition(const std::string& text, const Where& where, const std::vector<std::string>& known);
  Condition(Condition&&) noexcept;
  Condition& operator=(Condition&&) noexcept;
  ~Condition();

  /// Whether it holds; `values` follow `known`. Throws InputError where texts are reckoned with.
  bool holds(const std::function<const ConditionValue&(std::size_t known)>& values) const;
  /// Hears every known word that is compared by == or != with a text that is none, and the text.
  void each_text(const std::function<void(std::size_t known, const std::string& text)>& hear) const;
  /// Throws InputError where it compares or adds what is of two kinds, or reckons with a text, whatever the numbers
  /// are. A text may be compared with a word that has texts among its values. What texts before it rule out is not
  /// looked at.
  void check_kinds(const std::function<const WordKinds&(std::size_t known)>& words) const;
  /// Whether it speaks of a known word.
  bool speaks_of(std::size_t known) const;

  struct Term;

private:
  std::string text_;
  std::unique_ptr<Term> term_;
  Where where_;
};

} // namespace stagecraft
