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

  /// Whether this is 0 without a unit, which counts as a quantity of any kind.
  bool is_plain_zero() const { return numeric && number == 0 && dimension == Dimension{}; }
};
ConditionValue condition_value(std::string text);
/// Whether both are texts, or both quantities of one dimension.
bool same_kind(const ConditionValue& one, const ConditionValue& other);

/// What Condition::check_kinds() knows of a word.
struct WordKinds {
  ConditionValue value;               ///< stands for all values of its kind; without text: any text, or any number
  std::vector<ConditionValue> others; ///< one value of each kind that the word has
};

/// One condition, read. Operators by rising strength: or; and; not; == != < <= > >=; + -; * /. Quantities and texts
/// with spaces stand in single quotes.
class Condition {
public:
  /// Throws InputError at `where`. A word that is not in `known` is a text if == or != compares it with a known word;
  /// else it is an error that lists the known words.
  Condition(const std::string& text, const Where& where, const std::vector<std::string>& known);
  Condition(Condition&&) noexcept;
  Condition& operator=(Condition&&) noexcept;
  ~Condition();

  /// Whether it holds; `values` follow `known`. Throws InputError for arithmetic with texts.
  bool holds(const std::function<const ConditionValue&(std::size_t known)>& values) const;
  /// Calls `hear` for every known word that == or != compares with a text that is not a known word, and with that text.
  void each_text(const std::function<void(std::size_t known, const std::string& text)>& hear) const;
  /// Throws InputError where the condition compares or adds two kinds of value, or does arithmetic with a text,
  /// whatever the numbers are. A text may be compared with a word that has texts among its values. Parts that an
  /// earlier comparison of texts rules out are not checked.
  void check_kinds(const std::function<const WordKinds&(std::size_t known)>& words) const;
  /// Whether it uses a known word.
  bool speaks_of(std::size_t known) const;

  struct Term;

private:
  std::string text_;
  std::unique_ptr<Term> term_;
  Where where_;
};

} // namespace stagecraft
