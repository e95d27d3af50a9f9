// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/flags.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "sim/app/common/output.hpp"
#include "sim/base/error.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {

Check one_of(const std::vector<std::string>& words) {
  const std::string set = "{" + join(words, ",") + "}";
  return {set, [words, set](const std::string& text) {
            return std::find(words.begin(), words.end(), text) != words.end() ? "" : text + " not in " + set;
          }};
}

Check whole_number(int low, int high) {
  return {"INT in [" + std::to_string(low) + " - " + std::to_string(high) + "]",
          [low, high](const std::string& text) -> std::string {
            try {
              parse_integer(text, low, high, {"command line", 0, 0});
              return "";
            } catch (const InputError& failure) {
              return failure.what();
            }
          }};
}

Check number(double low, double high) {
  const CLI::Range range(low, high);
  return {range.get_description(), [range](std::string text) { return range(text); }};
}

Check either(const Check& one, const Check& other) {
  return {"(" + one.help + ") OR (" + other.help + ")", [one, other](const std::string& text) -> std::string {
            const std::string first = one.why_not(text);
            const std::string second = other.why_not(text);
            return first.empty() || second.empty() ? "" : "(" + first + ") OR (" + second + ")";
          }};
}

namespace {

template <class T> constexpr bool kIsVector = false;
template <class T> constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
void add_to(CLI::App& app, const std::string& name, T& target, const std::string& help, const Value& value) {
  if constexpr (std::is_same_v<T, bool>) {
    app.add_flag(name, target, help);
  } else {
    CLI::Option& option = *app.add_option(name, target, help);
    option.required(value.required);
    if (!value.name.empty()) {
      option.type_name(value.name);
    }
    if (value.check) {
      option.check([why_not = value.check->why_not](const std::string& text) { return why_not(text); },
                   value.check->help);
    }
    if constexpr (kIsVector<T>) {
      option.take_all();
    }
    if (value.dash) {
      option.transform([](const std::string& text) { return text == "-" ? std::string() : text; });
    }
    if (value.commas) {
      option.delimiter(',');
    }
    if (!value.alone.empty()) {
      option.expected(0, 1)->default_str(value.alone);
    }
    if (value.shows_default) {
      option.capture_default_str();
    }
  }
}

} // namespace

void Flags::add(const std::string& name, Target target, const std::string& help, const Value& value) {
  std::visit([&](auto* to) { add_to(*app_, name, *to, help, value); }, target);
}

Flags Flags::command(const std::string& name, const std::string& help, const std::string& group) {
  CLI::App* command = app_->add_subcommand(name, help);
  return Flags(group.empty() ? *command : *command->group(group));
}

void Flags::allow_one_command() { app_->require_subcommand(0, 1); }

bool Flags::given() const { return app_->parsed(); }

std::vector<std::string> Flags::given_flags() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() > 0) {
      names.push_back(option->get_name());
    }
  }
  return names;
}

CommandLine::CommandLine(const std::string& name, const std::string& help, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->set_help_all_flag("--help-all", "print the help of every command");
}

CommandLine::~CommandLine() = default;

std::optional<ExitStatus> CommandLine::read(int count, const char* const* words) {
  for (int i = 1; i < count; ++i) {
    if (first_bad_byte(words[i])) {
      throw InputError({"command line", 0, 0}, "argument " + std::to_string(i) + " is not UTF-8: '" +
                                                   on_one_line(words[i]) + "'; allowed: UTF-8");
    }
  }
  try {
    app_->parse(count, words);
    return std::nullopt;
  } catch (const CLI::ParseError& failure) { // what it says has words of the command line in it
    std::ostringstream out, errors;
    const int status = app_->exit(failure, out, errors);
    print(out.str());
    remark(errors.str());
    return status == 0 ? kDone : kBadInput;
  }
}

} // namespace stagecraft
