// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/shell_arithmetic.hpp"

#include <cstdlib>

namespace stagecraft {
namespace {

constexpr std::size_t kExpressionBegin = 3; // "$(("
constexpr long long kMostNumber = 1'000'000'000'000'000;
constexpr int kMostNested = 64;

using Number = std::optional<long long>;

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_of_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// sum = product {(+|-) product}, product = factor {(*|/|%) factor}, factor = [+|-] (number | name | "(" sum ")")
class Expression {
public:
  Expression(std::string_view text, const ShellNumber& value_of) : text_(text), value_of_(value_of) {}

  Number value() {
    const Number value = sum();
    return letter() == '\0' ? value : std::nullopt;
  }

private:
  // The next letter that is no blank; '\0' at the end.
  char letter() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    const bool is_next = letter() == c;
    at_ += is_next ? 1 : 0;
    return is_next;
  }

  static Number checked(Number value) {
    return value && *value <= kMostNumber && *value >= -kMostNumber ? value : std::nullopt;
  }

  Number sum() {
    Number left = product();
    while (left && (letter() == '+' || letter() == '-')) {
      const bool plus = text_[at_++] == '+';
      const Number right = product();
      left = right ? checked(plus ? *left + *right : *left - *right) : std::nullopt;
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while (left && (letter() == '*' || letter() == '/' || letter() == '%')) {
      const char sign = text_[at_++];
      const Number right = factor();
      if (!right || (sign != '*' && *right == 0)) {
        return std::nullopt;
      }
      if (sign == '*') {
        const bool large = *right != 0 && std::abs(*left) > kMostNumber / std::abs(*right);
        left = large ? std::nullopt : Number(*left * *right);
      } else {
        left = sign == '/' ? *left / *right : *left % *right;
      }
    }
    return left;
  }

  Number factor() {
    if (++depth_ > kMostNested) {
      return std::nullopt;
    }
    Number value;
    if (take('-')) {
      value = factor();
      value = value ? Number(-*value) : std::nullopt;
    } else if (take('+')) {
      value = factor();
    } else if (take('(')) {
      value = sum();
      value = take(')') ? value : std::nullopt;
    } else {
      value = is_decimal(letter()) ? number() : variable();
    }
    --depth_;
    return value;
  }

  Number number() {
    const bool octal =
        text_[at_] == '0' && at_ + 1 < text_.size() && (is_decimal(text_[at_ + 1]) || text_[at_ + 1] == 'x');
    long long value = 0;
    for (; at_ < text_.size() && is_decimal(text_[at_]) && value <= kMostNumber; ++at_) {
      value = value * 10 + (text_[at_] - '0');
    }
    return octal ? std::nullopt : checked(value);
  }

  Number variable() {
    const bool braced = take('$') && take('{');
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_of_name(text_[at_]) || (at_ > begin && is_decimal(text_[at_])))) {
      ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    if (name.empty() || (braced && !take('}'))) {
      return std::nullopt;
    }
    return checked(value_of_(name));
  }

  std::string_view text_;
  const ShellNumber& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

} // namespace

std::optional<std::size_t> arithmetic_length(std::string_view text) {
  int depth = 0;
  for (std::size_t at = 1; at < text.size() && text[at] != '\n'; ++at) {
    depth += text[at] == '(' ? 1 : 0;
    depth -= text[at] == ')' ? 1 : 0;
    if (depth == 0) {
      return at > kExpressionBegin && text[at - 1] == ')' ? std::optional(at + 1) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<long long> shell_arithmetic(std::string_view inside, const ShellNumber& value_of) {
  return Expression(inside, value_of).value();
}

} // namespace stagecraft
