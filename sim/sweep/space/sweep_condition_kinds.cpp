// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_condition_kinds.hpp"

#include <algorithm>
#include <set>

#include "sim/sweep/space/sweep_condition_term.hpp"

namespace stagecraft {
namespace {

using Term = Condition::Term;

// Goes through a condition as its evaluation does, with kinds in place of numbers.
class KindCheck {
public:
  KindCheck(const std::string& text, const Where& where, const std::function<const WordKinds&(std::size_t)>& words)
      : text_(text), where_(where), words_(words) {}

  enum class Truth { no, yes, unknown };

  Truth truth(const Term& term) {
    if (term.joins_conditions()) {
      const Truth settled = term.operation == "or" ? Truth::yes : Truth::no;
      const Truth first = truth(*term.operands[0]);
      if (first == settled) {
        return settled;
      }
      const Truth second = truth(*term.operands[1]);
      return second == settled || first != Truth::unknown ? second : first;
    }
    if (term.operation == "not") {
      const Truth inner = truth(*term.operands[0]);
      return inner == Truth::unknown ? inner : inner == Truth::yes ? Truth::no : Truth::yes;
    }
    if (term.is_equality()) {
      const Truth equal = equality(*term.operands[0], *term.operands[1]);
      return equal == Truth::unknown                             ? equal
             : (equal == Truth::yes) == (term.operation == "==") ? Truth::yes
                                                                 : Truth::no;
    }
    if (term.operands.empty() || term.is_arithmetic()) {
      kind(term); // a number: true where it is not 0
    } else {
      like_with_like(*term.operands[0], *term.operands[1], "compared");
    }
    return Truth::unknown;
  }

private:
  // The dimension of an operand of arithmetic; nothing for 0, which is of any kind.
  using Kind = std::optional<Dimension>;

  [[noreturn]] void refuse(const std::string& what, const std::string& allowed) const {
    throw InputError(where_, "in condition '" + text_ + "': " + what + "; allowed: " + allowed);
  }

  [[noreturn]] void refuse_pair(const Term& left, const Term& right, const char* verb) {
    refuse(in_words(left) + " and " + in_words(right) + " are " + verb, "two of one kind, or 0 beside any quantity");
  }

  const ConditionValue& value(const Term& term) const {
    return term.known >= 0 ? words_(static_cast<std::size_t>(term.known)).value : term.value;
  }

  // "a time (platform.network.latency = 1 us)"
  std::string in_words(const Term& term) {
    std::string words = text_.substr(term.begin, term.end - term.begin);
    if (!term.operation.empty()) {
      return name_of(kind(term).value_or(Dimension{})) + " (" + words + ")";
    }
    const ConditionValue& one = value(term);
    const std::string name = one.numeric ? name_of(one.dimension) : "a text";
    words = term.known < 0 ? one.text : words + (one.text.empty() ? "" : " = " + one.text);
    return name + " (" + words + ")";
  }

  // The common kind of both operands; throws where they differ.
  Kind like_with_like(const Term& left, const Term& right, const char* verb) {
    const Kind one = kind(left);
    const Kind other = kind(right);
    if (one && other && *one != *other) {
      refuse_pair(left, right, verb);
    }
    return one ? one : other;
  }

  Kind kind(const Term& term) {
    if (term.operation.empty()) {
      const ConditionValue& one = value(term);
      if (!one.numeric) {
        refuse(in_words(term) + " is reckoned with",
               "numbers and quantities, or a condition before it that rules the text out, as x != none and x < 3");
      }
      return one.is_plain_zero() ? std::nullopt : Kind(one.dimension);
    }
    if (!term.is_arithmetic()) {
      truth(term);
      return Dimension{};
    }
    if (term.operation == "+" || term.operation == "-") {
      return like_with_like(*term.operands[0], *term.operands[1], term.operation == "+" ? "added" : "subtracted");
    }
    const Kind left = kind(*term.operands[0]);
    const Kind right = kind(*term.operands[1]);
    if (!left || !right) {
      return std::nullopt;
    }
    return term.operation == "*" ? *left * *right : *left / *right;
  }

  // Whether some other value of the word is of the same kind as `like`.
  bool may_be(const Term& term, const ConditionValue& like) const {
    if (term.known < 0) {
      return false;
    }
    const std::vector<ConditionValue>& others = words_(static_cast<std::size_t>(term.known)).others;
    return std::any_of(others.begin(), others.end(), [&](const ConditionValue& other) {
      return same_kind(other, like) || (other.numeric && like.is_plain_zero());
    });
  }

  Truth equality(const Term& left, const Term& right) {
    if (!left.operation.empty() || !right.operation.empty()) {
      like_with_like(left, right, "compared");
      return Truth::unknown;
    }
    const ConditionValue& one = value(left);
    const ConditionValue& other = value(right);
    const bool is_any = one.numeric && other.numeric && (one.is_plain_zero() || other.is_plain_zero());
    if (!same_kind(one, other) && !is_any) {
      if (!may_be(left, other) && !may_be(right, one)) {
        refuse_pair(left, right, "compared");
      }
      return Truth::no;
    }
    const bool both_vary = left.known >= 0 && right.known >= 0;
    if (one.numeric || both_vary || one.text.empty() || other.text.empty()) {
      return Truth::unknown;
    }
    return one.text == other.text ? Truth::yes : Truth::no;
  }

  const std::string& text_;
  const Where& where_;
  const std::function<const WordKinds&(std::size_t)>& words_;
};

// Values of an axis, one for each of its keys.
using Values = std::vector<ConditionValue>;

// Finds the first of the choices that a condition with these texts cannot tell apart, except by their numbers.
class Alike {
public:
  explicit Alike(const std::set<std::string>& texts) : texts_(texts) {}

  bool is_new(const Values& values) {
    std::vector<std::pair<Dimension, std::string>> words;
    for (const ConditionValue& value : values) {
      words.emplace_back(value.dimension, value.is_plain_zero()         ? "0"
                                          : value.numeric               ? "1"
                                          : texts_.contains(value.text) ? "=" + value.text
                                                                        : "");
    }
    return met_.insert(std::move(words)).second;
  }

private:
  const std::set<std::string>& texts_;
  std::set<std::vector<std::pair<Dimension, std::string>>> met_;
};

Values values_at(const SweepAxis& axis, std::size_t index) {
  if (axis.interval) {
    return {condition_value(value_at(axis, static_cast<double>(index)).text)};
  }
  Values values;
  for (const AxisKey& key : axis.keys) {
    const yaml::Node& value = key.values[index];
    values.push_back(value.kind == yaml::Node::Kind::scalar ? condition_value(value.text)
                                                            : ConditionValue{yaml::flow_text(value), 0, false, {}});
  }
  return values;
}

// One value of each kind. 0 stands for the numbers only where there is no other number.
std::vector<ConditionValue> kinds_of(const std::vector<Values>& choices, std::size_t key) {
  std::vector<ConditionValue> kinds;
  for (const bool zeros : {false, true}) {
    for (const Values& choice : choices) {
      const ConditionValue& value = choice[key];
      const bool is_met = std::any_of(kinds.begin(), kinds.end(), [&](const ConditionValue& kind) {
        return same_kind(kind, value) || (zeros && kind.numeric);
      });
      if (value.is_plain_zero() == zeros && !is_met) {
        kinds.push_back(value);
      }
    }
  }
  return kinds;
}

// Goes through every choice of the axes' values that a condition may tell apart.
class AllKinds {
public:
  AllKinds(const Sweep& sweep, const Condition& condition) : condition_(condition) {
    condition.each_text([&](std::size_t, const std::string& text) { texts_.insert(text); });
    std::size_t word = 0;
    for (const SweepAxis& axis : sweep.axes) {
      std::size_t spoken = 0;
      for (std::size_t key = 0; key < axis.keys.size(); ++key) {
        spoken += condition.speaks_of(word + key) ? 1 : 0;
      }
      words_.resize(word + axis.keys.size());
      if (spoken > 0) {
        add(axis, word);
      }
      word += axis.keys.size();
    }
    for (const std::string_view run : kRunWords) {
      const ConditionValue any{"", 1, run == "micro_batches", {}};
      words_.push_back({any, {any}});
    }
    for (const ConditionValue& constant : sweep.constants) {
      words_.push_back({constant, {constant}});
    }
    if (!mixed_) {
      forget_texts();
    }
  }

  void check(std::size_t axis = 0) {
    if (axis == axes_.size()) {
      condition_.check_kinds([this](std::size_t word) -> const WordKinds& { return words_[word]; });
      return;
    }
    for (const Values& choice : axes_[axis].choices) {
      for (std::size_t key = 0; key < choice.size(); ++key) {
        words_[axes_[axis].word + key].value = choice[key];
      }
      check(axis + 1);
    }
  }

private:
  struct Axis {
    std::size_t word = 0; // of its first key
    std::vector<Values> choices;
  };

  void add(const SweepAxis& axis, std::size_t word) {
    Axis& added = axes_.emplace_back(Axis{word, {}});
    Alike alike(texts_);
    for (std::size_t index = 0; index < (axis.interval ? 2 : axis.size()); ++index) {
      Values values = values_at(axis, index);
      if (alike.is_new(values)) {
        added.choices.push_back(std::move(values));
      }
    }
    for (std::size_t key = 0; key < axis.keys.size(); ++key) {
      words_[word + key].others = kinds_of(added.choices, key);
      mixed_ = mixed_ || words_[word + key].others.size() > 1;
    }
  }

  // Where every word has a single kind, all parts of the condition are checked, whatever texts rule out.
  void forget_texts() {
    for (Axis& axis : axes_) {
      std::vector<Values> choices;
      choices.swap(axis.choices);
      Alike alike(nothing_);
      for (Values& choice : choices) {
        if (!alike.is_new(choice)) {
          continue;
        }
        for (ConditionValue& value : choice) {
          if (!value.numeric) {
            value.text.clear();
          }
        }
        axis.choices.push_back(std::move(choice));
      }
    }
  }

  const Condition& condition_;
  std::set<std::string> texts_, nothing_;
  std::vector<WordKinds> words_;
  std::vector<Axis> axes_;
  bool mixed_ = false;
};

} // namespace

void Condition::check_kinds(const std::function<const WordKinds&(std::size_t)>& words) const {
  KindCheck(text_, where_, words).truth(*term_);
}

void check_kinds(const Sweep& sweep, const Condition& condition) { AllKinds(sweep, condition).check(); }

} // namespace stagecraft
