// The only file that knows toml++.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/toml.hpp"

namespace stagecraft {
namespace {

// What toml++ takes for granted does not hold: its 3.3.0 is sure of the first letter of a table's name, say.
struct BrokenAssumption {};
[[noreturn]] void break_assumption() { throw BrokenAssumption(); }

} // namespace
} // namespace stagecraft

#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/impl/preprocessor.h>
// In a release build it would let the compiler rely on them.
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(holds) ((holds) ? void() : stagecraft::break_assumption())
#define TOML_ASSERT_ASSUME(holds) TOML_ASSERT(holds)
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "sim/base/limits.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

// Refuses what would take toml++ too much memory or stack: it has no limit on values, nor on the parts of a key, each
// of which is a table within a table. Reads strings and comments only to skip them.
class Bounds {
public:
  Bounds(std::string_view text, const std::string& file) : text_(text), at_{file, 1, 1} {}

  void check() {
    while (next_ < text_.size()) {
      const char letter = text_[next_];
      check_name(letter);
      if (letter == '"' || letter == '\'') {
        skip_string(letter);
      } else if (letter == '#') {
        skip_to("\n");
      } else {
        take(letter);
        step();
      }
    }
  }

private:
  void step() {
    const bool line = text_[next_++] == '\n';
    at_.line += line ? 1 : 0;
    at_.column = line ? 1 : at_.column + 1;
  }

  // The first letter of a table's name.
  void check_name(char letter) {
    if (!names_table_ || letter == ' ' || letter == '\t' || letter == '[') {
      return;
    }
    names_table_ = false;
    const bool bare = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
    if (!bare && letter != '"' && letter != '\'' && letter != ']') {
      throw InputError(at_, "not valid TOML: a table's name begins with a letter, a digit, -, _ or a quote");
    }
  }

  void skip_to(std::string_view end) {
    while (next_ < text_.size() && text_.substr(next_, end.size()) != end) {
      step();
    }
  }

  // Also of three lines. What is not closed is toml++'s to refuse.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const std::string_view end =
        text_.substr(next_, 3) == three ? std::string_view(three) : std::string_view(&quote, 1);
    for (std::size_t i = 0; i < end.size(); ++i) {
      step();
    }
    while (next_ < text_.size() && text_.substr(next_, end.size()) != end) {
      const bool escape = quote == '"' && text_[next_] == '\\' && next_ + 1 < text_.size();
      step();
      if (escape) {
        step();
      }
    }
    for (std::size_t i = 0; i < end.size() && next_ < text_.size(); ++i) {
      step();
    }
  }

  void count() {
    if (++values_ > limits::kYamlValues) {
      throw InputError(at_, "more than " + std::to_string(limits::kYamlValues) + " values");
    }
  }

  void deepen() {
    ++open_.back();
    if (++depth_ + header_ > limits::kDepth) {
      throw InputError(at_, "values lie more than " + std::to_string(limits::kDepth) + " deep");
    }
  }

  void close() {
    depth_ -= open_.back();
    open_.back() = 0;
  }

  void take(char letter) {
    if (letter == '.') {
      count();
      deepen();
    } else if (letter == '[' || letter == '{') {
      names_table_ = names_table_ || (letter == '[' && !in_value_ && open_.size() == 1);
      header_ = in_value_ || open_.size() > 1 ? header_ : 0;
      deepen();
      open_.push_back(0);
    } else if (letter == ']' || letter == '}') {
      header_ = in_value_ ? header_ : std::max(header_, depth_);
      close();
      if (open_.size() > 1) {
        open_.pop_back();
      }
    } else if (letter == ',' || letter == '\n') {
      count();
      const bool ends = letter == '\n' && open_.size() == 1;
      in_value_ = in_value_ && !ends;
      if (ends || letter == ',') {
        close();
      }
    } else if (letter == '=') {
      in_value_ = true;
    }
  }

  std::string_view text_;
  std::size_t next_ = 0, values_ = 0;
  Where at_;
  std::vector<int> open_ = {0}; // how much deeper each open bracket is
  int depth_ = 0, header_ = 0;
  bool in_value_ = false, names_table_ = false;
};

class Converter {
public:
  explicit Converter(const std::string& file) : file_(file) {}

  yaml::Node convert(const toml::node& from) const {
    yaml::Node node;
    node.where = where_of(from.source());
    if (const toml::table* table = from.as_table()) {
      node.kind = yaml::Node::Kind::map;
      for (const auto& [key, value] : *table) {
        node.entries.push_back({std::string(key.str()), where_of(key.source()), convert(value)});
      }
      std::sort(node.entries.begin(), node.entries.end(), [](const auto& a, const auto& b) {
        return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
      });
    } else if (const toml::array* array = from.as_array()) {
      node.kind = yaml::Node::Kind::sequence;
      for (const toml::node& item : *array) {
        node.items.push_back(convert(item));
      }
    } else {
      node.kind = yaml::Node::Kind::scalar;
      node.text = text_of(from);
    }
    return node;
  }

  Where where_of(const toml::source_region& source) const {
    return {file_, std::max(1, static_cast<int>(source.begin.line)),
            std::max(1, static_cast<int>(source.begin.column))};
  }

private:
  static std::string text_of(const toml::node& from) {
    if (const auto* text = from.as_string()) {
      return text->get();
    }
    if (const auto* number = from.as_integer()) {
      return std::to_string(number->get());
    }
    if (const auto* number = from.as_floating_point()) {
      constexpr std::size_t kLongest = 32;
      std::string digits(kLongest, ' ');
      const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), number->get());
      return digits.substr(0, static_cast<std::size_t>(end - digits.data()));
    }
    if (const auto* boolean = from.as_boolean()) {
      return boolean->get() ? "true" : "false";
    }
    std::ostringstream date; // of the kinds of values only dates and times are left
    from.visit([&](const auto& value) {
      if constexpr (toml::is_chronological<decltype(value)>) {
        date << value.get();
      }
    });
    return date.str();
  }

  const std::string& file_;
};

} // namespace

yaml::Node parse_toml(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  Bounds(text, file).check();
  const Converter converter(file);
  yaml::Node document;
  try {
    document = converter.convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw InputError(converter.where_of(error.source()), "not valid TOML: " + std::string(error.description()));
  } catch (const BrokenAssumption&) {
    throw InputError({file, 1, 1}, "not valid TOML");
  }
  document.where = {file, 1, 1};
  return document;
}

} // namespace stagecraft
