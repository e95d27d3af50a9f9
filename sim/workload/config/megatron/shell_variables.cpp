// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/shell_variables.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "sim/base/utf8.hpp"
#include "sim/workload/config/megatron/shell_arithmetic.hpp"

namespace stagecraft {
namespace {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The name at the beginning of a text, "" where none is.
std::string_view name_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (end == 0 ? begins_name(text[end]) : in_name(text[end]))) {
    ++end;
  }
  return text.substr(0, end);
}

struct Line {
  std::string_view text;
  int number, column; // of its first letter
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::size_t begin = 0;
    while (begin < line.size() && is_blank(line[begin])) {
      ++begin;
    }
    lines.push_back({line.substr(begin), number, static_cast<int>(begin) + 1});
  }
  return lines;
}

constexpr std::string_view kExport = "export ";

// The part of a line behind `export`.
std::string_view without_export(std::string_view line) {
  return line.starts_with(kExport) ? line.substr(std::min(line.find_first_not_of(" \t", kExport.size()), line.size()))
                                   : line;
}

class VariableReader {
public:
  VariableReader(std::string_view text, const std::string& file, std::map<std::string, std::string> outside)
      : file_(file), lines_(lines_of(text)), outside_(std::move(outside)) {
    for (const Line& line : lines_) { // each name and the last line that sets it
      const std::string_view rest = without_export(line.text);
      const std::string_view name = name_at(rest);
      if (!name.empty() && rest.substr(name.size(), 1) == "=") {
        set_in_[std::string(name)] = line.number;
      }
    }
  }

  ShellVariables read() {
    for (const Line& line : lines_) {
      read_line(line);
    }
    return std::move(made_);
  }

private:
  // A value as far as it is read; nothing where only a shell could tell it.
  using Value = std::optional<std::string>;

  void read_line(const Line& line) {
    line_ = &line;
    at_ = 0;
    const std::string_view word = line.text.substr(0, line.text.find_first_of(" \t;"));
    if (line.text.empty() || line.text.front() == '#') {
      return;
    }
    constexpr std::array<std::string_view, 5> kOpen = {"if", "for", "while", "case", "until"};
    constexpr std::array<std::string_view, 4> kClose = {"fi", "done", "esac", "}"};
    const bool opens = std::find(kOpen.begin(), kOpen.end(), word) != kOpen.end() || line.text.ends_with("() {");
    if (opens || within_ > 0) {
      if (opens && within_ == 0) {
        leave("line " + std::to_string(line.number) + ": " + excerpt(line.text));
      }
      const std::string_view last = line.text.substr(line.text.find_last_of(" \t;") + 1);
      const bool closes = std::find(kClose.begin(), kClose.end(), word) != kClose.end() ||
                          std::find(kClose.begin(), kClose.end(), last) != kClose.end();
      within_ += opens ? 1 : 0;
      within_ -= closes ? 1 : 0;
      return;
    }
    if (word == ":") {
      at_ = 1;
      take_default();
      return;
    }
    if (word == "unset") {
      forget(line.text.substr(word.size()));
      return;
    }
    at_ = line.text.size() - without_export(line.text).size();
    if (!take_assignments()) {
      leave("line " + std::to_string(line.number) + ": " + excerpt(line.text));
    }
  }

  char letter() const { return at_ < line_->text.size() ? line_->text[at_] : '\n'; }
  bool at_end() const { return at_ >= line_->text.size(); }
  Where here() const { return {file_, line_->number, line_->column + static_cast<int>(at_)}; }

  void leave(std::string what) {
    if (left_.insert(what).second) {
      made_.not_understood.push_back(std::move(what));
    }
  }

  // unset A B: as if nothing had set them.
  void forget(std::string_view names) {
    while (true) {
      names.remove_prefix(std::min(names.find_first_not_of(" \t;"), names.size()));
      const std::string name(name_at(names));
      if (name.empty()) {
        return;
      }
      made_.values.erase(name);
      made_.not_told.erase(name);
      names.remove_prefix(name.size());
    }
  }

  // : "${A:=B}" sets A where nothing has.
  void take_default() {
    while (is_blank(letter())) {
      ++at_;
    }
    if (const Value value = word(); !value) {
      leave("line " + std::to_string(line_->number) + ": " + excerpt(line_->text));
    }
  }

  // Each NAME=VALUE of the line; false where there is something else.
  bool take_assignments() {
    bool any = false;
    while (!at_end() && letter() != '#') {
      if (is_blank(letter()) || letter() == ';') {
        ++at_;
        continue;
      }
      const std::string name(name_at(line_->text.substr(at_)));
      if (name.empty() || line_->text.substr(at_ + name.size(), 1) != "=") {
        return any && line_->text.substr(0, kExport.size()) == kExport && skip_name(name);
      }
      at_ += name.size() + 1;
      const Where where = here();
      if (Value value = word()) {
        made_.values[name] = {std::move(*value), where};
        made_.not_told.erase(name);
      } else {
        made_.values.erase(name);
        const auto begin = static_cast<std::size_t>(where.column - line_->column);
        std::string set_to(line_->text.substr(begin, at_ - begin));
        leave(name + " (" + excerpt(set_to) + ", which only a shell can tell)");
        made_.not_told[name] = {std::move(set_to), where};
      }
      any = true;
    }
    return any;
  }

  bool skip_name(const std::string& name) {
    at_ += name.size();
    return !name.empty();
  }

  // Up to a blank outside of quotes. What is computed is read to its end as well.
  Value word() {
    Value value = "";
    const auto add = [&](const Value& part) { value = value && part ? Value(*value + *part) : std::nullopt; };
    while (!at_end() && !is_blank(letter()) && letter() != ';') {
      if (letter() == '\'') {
        add(single_quoted());
      } else if (letter() == '"') {
        add(double_quoted());
      } else if (letter() == '$' || letter() == '`') {
        add(reference());
      } else if (letter() == '(' || letter() == '&' || letter() == '|' || letter() == '<' || letter() == '>') {
        at_ = line_->text.size(); // an array, or a command
        return std::nullopt;
      } else {
        at_ += letter() == '\\' ? 1 : 0;
        add(at_end() ? Value() : Value(std::string(1, letter()))); // a line that goes on is not understood
        ++at_;
      }
    }
    return value;
  }

  Value single_quoted() {
    const Where begin = here();
    const std::size_t end = line_->text.find('\'', at_ + 1);
    if (end == std::string_view::npos) {
      throw InputError(begin, "a quotation without its end");
    }
    std::string text(line_->text.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }

  Value double_quoted() {
    const Where begin = here();
    Value value = "";
    for (++at_; letter() != '"';) {
      if (at_end()) {
        throw InputError(begin, "a quotation without its end");
      }
      if (letter() == '$' || letter() == '`') {
        const Value part = reference();
        value = value && part ? Value(*value + *part) : std::nullopt;
        continue;
      }
      at_ += letter() == '\\' && at_ + 1 < line_->text.size() ? 1 : 0;
      if (value) {
        *value += letter();
      }
      ++at_;
    }
    ++at_;
    return value;
  }

  // Skips what stands in brackets, with all brackets in it; nothing of it is told.
  Value computed(char open, char close) {
    const Where begin = here();
    int depth = 0;
    do {
      if (at_end()) {
        throw InputError(begin, "an expression without its end");
      }
      depth += letter() == open ? 1 : 0;
      depth -= letter() == close ? 1 : 0;
      ++at_;
    } while (depth > 0);
    return std::nullopt;
  }

  Value reference() {
    const Where begin = here();
    if (letter() == '`') {
      const std::size_t end = line_->text.find('`', at_ + 1);
      if (end == std::string_view::npos) {
        throw InputError(begin, "an expression without its end");
      }
      at_ = end + 1;
      return std::nullopt;
    }
    if (const std::string_view rest = line_->text.substr(at_); begins_arithmetic(rest)) {
      return arithmetic(rest);
    }
    ++at_;
    if (letter() == '(') {
      return computed('(', ')');
    }
    if (letter() == '{') {
      return braced(begin);
    }
    const std::string name(name_at(line_->text.substr(at_)));
    if (name.empty()) {
      ++at_; // $1, $@
      return std::nullopt;
    }
    at_ += name.size();
    return value_of(name, begin);
  }

  // $((…)), of variables that are known.
  Value arithmetic(std::string_view rest) {
    const auto length = arithmetic_length(rest);
    if (!length) {
      ++at_;
      return computed('(', ')');
    }
    const Where begin = here();
    at_ += *length;
    const auto number = shell_arithmetic(rest.substr(3, *length - 5), [&](const std::string& name) {
      const Value value = value_of(name, begin);
      const bool whole =
          value && !value->empty() && value->size() < 16 && value->find_first_not_of("0123456789") == std::string::npos;
      return whole ? std::optional(std::stoll(*value)) : std::nullopt;
    });
    return number ? Value(std::to_string(*number)) : std::nullopt;
  }

  // ${A}, ${A:-B}, ${A-B}, ${A:=B}.
  Value braced(const Where& begin) {
    const std::size_t from = at_;
    computed('{', '}');
    std::string_view inside = line_->text.substr(from + 1, at_ - from - 2);
    const std::string name(name_at(inside));
    inside.remove_prefix(name.size());
    if (!name.empty() && inside.empty()) {
      return value_of(name, begin);
    }
    inside.remove_prefix(inside.starts_with(':') ? 1 : 0);
    const bool sets = inside.starts_with('=');
    if (name.empty() || !(sets || inside.starts_with('-'))) {
      return std::nullopt; // ${A%B} and the like
    }
    if (const auto known = made_.values.find(name); known != made_.values.end() && !known->second.text.empty()) {
      return known->second.text;
    }
    const Where where{file_, line_->number, line_->column + static_cast<int>(from + 2 + name.size() + 2)};
    const std::string_view otherwise = inside.substr(1);
    if (otherwise.find_first_of("$`'\"\\") != std::string_view::npos || made_.not_told.contains(name)) {
      return std::nullopt;
    }
    if (const auto known = outside_.find(name); known != outside_.end()) {
      return known->second;
    }
    if (sets) {
      made_.values[name] = {std::string(otherwise), where};
    }
    return std::string(otherwise);
  }

  Value value_of(const std::string& name, const Where& begin) {
    if (const auto known = made_.values.find(name); known != made_.values.end()) {
      return known->second.text;
    }
    if (made_.not_told.contains(name)) {
      return std::nullopt;
    }
    if (const auto known = outside_.find(name); known != outside_.end()) {
      return known->second;
    }
    if (const auto later = set_in_.find(name); later != set_in_.end() && later->second >= line_->number) {
      throw InputError(begin, "'" + excerpt(name) + "' is set " +
                                  (later->second == line_->number ? "from itself"
                                                                  : "only in line " + std::to_string(later->second)) +
                                  "; allowed: a variable that a line above sets, or ${" + excerpt(name) + ":-VALUE}");
    }
    return std::nullopt; // it comes from outside
  }

  const std::string& file_;
  std::vector<Line> lines_;
  std::map<std::string, int> set_in_;
  std::set<std::string> left_; // what is not understood
  std::map<std::string, std::string> outside_;
  const Line* line_ = nullptr;
  std::size_t at_ = 0;
  int within_ = 0; // conditions and loops
  ShellVariables made_;
};

} // namespace

ShellVariables read_shell_variables(std::string_view text, const std::string& file,
                                    std::map<std::string, std::string> outside) {
  return VariableReader(text, file, std::move(outside)).read();
}

} // namespace stagecraft
