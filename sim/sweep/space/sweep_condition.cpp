// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_condition.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "sim/base/named_table.hpp"
#include "sim/sweep/space/sweep_condition_term.hpp"

namespace stagecraft {
namespace {

using Term = Condition::Term;
using TermPointer = std::unique_ptr<Term>;

constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<=", ">=", "<", ">"};

class Parser {
public:
  Parser(const std::string& text, const Where& where, const std::vector<std::string>& known)
      : text_(text), where_(where), known_(known) {}

  TermPointer parse() {
    TermPointer term = either();
    skip_blanks();
    if (at_ < text_.size()) {
      refuse("cannot be read from '" + text_.substr(at_) + "' on");
    }
    return term;
  }

private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(where_,
                     "condition '" + text_ + "' " + why +
                         "; allowed: comparisons such as training.global_batch <= 64 * micro_batches, joined by "
                         "and, or, not; quantities in single quotes");
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }

  static bool in_word(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.' || letter == '-';
  }

  // Takes an operator or a keyword, if it stands next.
  bool take(std::string_view token) {
    skip_blanks();
    const bool is_word = std::isalpha(static_cast<unsigned char>(token.front())) != 0;
    const std::size_t end = at_ + token.size();
    if (text_.compare(at_, token.size(), token) != 0 || (is_word && end < text_.size() && in_word(text_[end]))) {
      return false;
    }
    at_ = end;
    return true;
  }

  TermPointer join(std::string_view operation, TermPointer left, TermPointer right) {
    auto term = std::make_unique<Term>();
    term->operation = operation;
    term->begin = left->begin;
    term->end = right->end;
    term->operands.push_back(std::move(left));
    term->operands.push_back(std::move(right));
    return term;
  }

  TermPointer either() {
    const Depth deeper(*this);
    TermPointer term = both();
    while (take("or")) {
      term = join("or", std::move(term), both());
    }
    return term;
  }

  TermPointer both() {
    TermPointer term = negation();
    while (take("and")) {
      term = join("and", std::move(term), negation());
    }
    return term;
  }

  TermPointer negation() {
    const Depth deeper(*this);
    if (!take("not")) {
      return comparison();
    }
    auto term = std::make_unique<Term>();
    term->operation = "not";
    term->operands.push_back(negation());
    return term;
  }

  TermPointer comparison() {
    TermPointer left = sum();
    for (const std::string_view operation : kComparisons) {
      if (take(operation)) {
        TermPointer right = sum();
        if (operation != "==" && operation != "!=") {
          must_be_known(*left);
          must_be_known(*right);
        } else { // a text may stand only beside a known word
          if (right->known < 0) {
            must_be_known(*left);
          }
          if (left->known < 0) {
            must_be_known(*right);
          }
        }
        return join(operation, std::move(left), std::move(right));
      }
    }
    must_be_known(*left);
    return left;
  }

  static bool is_word(const Term& term) { return term.operation.empty() && term.known < 0 && !term.value.numeric; }

  void must_be_known(const Term& term) const {
    if (is_word(term)) {
      throw InputError(where_, "in condition '" + text_ + "': " + unknown_name("word", term.value.text, known_));
    }
  }

  TermPointer sum() {
    TermPointer term = product();
    for (;;) {
      const std::string_view operation = take("+") ? "+" : take("- ") ? "-" : "";
      if (operation.empty()) {
        return term;
      }
      must_be_known(*term);
      TermPointer right = product();
      must_be_known(*right);
      term = join(operation, std::move(term), std::move(right));
    }
  }

  TermPointer product() {
    TermPointer term = value();
    for (;;) {
      const std::string_view operation = take("*") ? "*" : take("/") ? "/" : "";
      if (operation.empty()) {
        return term;
      }
      must_be_known(*term);
      TermPointer right = value();
      must_be_known(*right);
      term = join(operation, std::move(term), std::move(right));
    }
  }

  TermPointer value() {
    skip_blanks();
    const std::size_t begin = at_;
    TermPointer term = take("(") ? in_parentheses() : take("'") ? quoted() : word();
    term->begin = begin;
    term->end = at_;
    return term;
  }

  TermPointer in_parentheses() {
    TermPointer term = either();
    if (!take(")")) {
      refuse("lacks a closing parenthesis");
    }
    return term;
  }

  TermPointer quoted() {
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string::npos) {
      refuse("lacks a closing quote");
    }
    auto term = std::make_unique<Term>();
    term->value = condition_value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return term;
  }

  TermPointer word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) {
      ++at_;
    }
    if (at_ == begin) {
      refuse(at_ == text_.size() ? "ends too early" : "cannot be read from '" + text_.substr(at_) + "' on");
    }
    auto term = std::make_unique<Term>();
    term->value = condition_value(text_.substr(begin, at_ - begin));
    const auto found = std::find(known_.begin(), known_.end(), term->value.text);
    term->known = found != known_.end() ? static_cast<int>(found - known_.begin()) : -1;
    return term;
  }

  // Limits the depth of recursion, so that the stack does not overflow.
  struct Depth {
    explicit Depth(Parser& parser) : parser_(parser) {
      constexpr int kMost = 200;
      if (++parser_.depth_ > kMost) {
        parser_.refuse("is nested too deeply");
      }
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser_;
  };

  const std::string& text_;
  const Where& where_;
  const std::vector<std::string>& known_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

using ValueOfSlot = std::function<const ConditionValue&(std::size_t)>;

bool is_true(const Term& term, const ValueOfSlot& values, const Where& where);

double number(const Term& term, const ValueOfSlot& values, const Where& where);

const ConditionValue& plain_value(const Term& term, const ValueOfSlot& values) {
  return term.known >= 0 ? values(static_cast<std::size_t>(term.known)) : term.value;
}

bool equal(const Term& left, const Term& right, const ValueOfSlot& values, const Where& where) {
  if (left.operation.empty() && right.operation.empty()) {
    const ConditionValue& one = plain_value(left, values);
    const ConditionValue& other = plain_value(right, values);
    if (!one.numeric || !other.numeric) {
      return one.text == other.text;
    }
    return one.number == other.number && (same_kind(one, other) || one.number == 0);
  }
  return number(left, values, where) == number(right, values, where);
}

double number(const Term& term, const ValueOfSlot& values, const Where& where) {
  if (term.operation.empty()) {
    const ConditionValue& value = plain_value(term, values);
    if (!value.numeric) {
      throw InputError(where, "'" + value.text + "' is reckoned with in a condition; allowed: numbers and quantities");
    }
    return value.number;
  }
  if (!term.is_arithmetic()) {
    return is_true(term, values, where) ? 1 : 0;
  }
  const double left = number(*term.operands[0], values, where);
  const double right = number(*term.operands[1], values, where);
  switch (term.operation.front()) {
  case '+':
    return left + right;
  case '-':
    return left - right;
  case '*':
    return left * right;
  default:
    return left / right;
  }
}

bool is_true(const Term& term, const ValueOfSlot& values, const Where& where) {
  const auto& operands = term.operands;
  if (term.operation == "or") {
    return is_true(*operands[0], values, where) || is_true(*operands[1], values, where);
  }
  if (term.operation == "and") {
    return is_true(*operands[0], values, where) && is_true(*operands[1], values, where);
  }
  if (term.operation == "not") {
    return !is_true(*operands[0], values, where);
  }
  if (term.is_equality()) {
    return equal(*operands[0], *operands[1], values, where) == (term.operation == "==");
  }
  if (std::find(kComparisons.begin(), kComparisons.end(), term.operation) == kComparisons.end()) {
    return number(term, values, where) != 0;
  }
  const double left = number(*operands[0], values, where);
  const double right = number(*operands[1], values, where);
  const bool less = term.operation.front() == '<';
  return (term.operation.size() > 1 && left == right) || (less ? left < right : left > right);
}

bool contains(const Term& term, int known) {
  return term.known == known || std::any_of(term.operands.begin(), term.operands.end(),
                                            [known](const TermPointer& one) { return contains(*one, known); });
}

void visit_texts(const Term& term, const std::function<void(std::size_t, const std::string&)>& hear) {
  for (const TermPointer& operand : term.operands) {
    visit_texts(*operand, hear);
  }
  if (term.is_equality()) {
    const auto is_text = [](const Term& one) { return one.operation.empty() && one.known < 0; };
    for (const auto& [word, text] : {std::pair{0, 1}, std::pair{1, 0}}) {
      if (term.operands[word]->known >= 0 && is_text(*term.operands[text])) {
        hear(static_cast<std::size_t>(term.operands[word]->known), term.operands[text]->value.text);
      }
    }
  }
}

} // namespace

ConditionValue condition_value(std::string text) {
  const std::optional<AnyQuantity> found = find_quantity(text);
  return found ? ConditionValue{std::move(text), found->value, true, found->dimension}
               : ConditionValue{std::move(text), 0, false, {}};
}

bool same_kind(const ConditionValue& one, const ConditionValue& other) {
  return one.numeric == other.numeric && one.dimension == other.dimension;
}

Condition::Condition(const std::string& text, const Where& where, const std::vector<std::string>& known)
    : text_(text), term_(Parser(text, where, known).parse()), where_(where) {}
Condition::Condition(Condition&&) noexcept = default;
Condition& Condition::operator=(Condition&&) noexcept = default;
Condition::~Condition() = default;

bool Condition::holds(const std::function<const ConditionValue&(std::size_t)>& values) const {
  return is_true(*term_, values, where_);
}

void Condition::each_text(const std::function<void(std::size_t, const std::string&)>& hear) const {
  visit_texts(*term_, hear);
}

bool Condition::speaks_of(std::size_t known) const { return contains(*term_, static_cast<int>(known)); }

} // namespace stagecraft
