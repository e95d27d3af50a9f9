// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/flags.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "sim/app/common/advice.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/unknown_words.hpp"
#include "sim/base/error.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/command.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {

std::string refusal_of(const std::function<void(const Where& where)>& read) {
  try {
    read({});
    return "";
  } catch (const InputError& failure) {
    return failure.what() + to_text(Where{}).size() + std::string_view(": ").size();
  }
}

Check one_of(const std::vector<std::string>& words) {
  const std::string set = "{" + join(words, ",") + "}";
  return {set, [words](const std::string& text) {
            return std::find(words.begin(), words.end(), text) != words.end() ? "" : unknown_name("value", text, words);
          }};
}

Check whole_number(int low, int high) {
  return {"INT in [" + std::to_string(low) + " - " + std::to_string(high) + "]", [low, high](const std::string& text) {
            return refusal_of([&](const Where& where) { parse_integer(text, low, high, where); });
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
            if (first.empty() || second.empty()) {
              return "";
            }
            const bool number = !text.empty() && text.find_first_not_of("0123456789+-.") == std::string::npos;
            return number ? second : first + ", or what is allowed else: " + other.help;
          }};
}

Check each_of(const Check& one) {
  return {one.help + ",…", [one](const std::string& text) -> std::string {
            std::istringstream words(text + ",");
            for (std::string word; std::getline(words, word, ',');) {
              if (std::string why_not = one.why_not(word); !why_not.empty()) {
                return why_not;
              }
            }
            return "";
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
  return {group.empty() ? *command : *command->group(group), call_};
}

void Flags::when_read(const std::function<void(const Flags&)>& then) {
  app_->final_callback([then, flags = *this] { then(flags); });
}

void Flags::add_example(const std::string& call) {
  const CLI::App* program = app_;
  while (program->get_parent() != nullptr) {
    program = program->get_parent();
  }
  app_->footer("Example: " + program->get_name() + " " + call);
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
    : app_(std::make_unique<CLI::App>(help, name)), call_(std::make_shared<std::string>()) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->set_help_all_flag("--help-all", "print the help of every command");
}

CommandLine::~CommandLine() = default;

namespace {

// The command that the words name, or the one below it.
const CLI::App& named_command(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? app : named_command(*named.back());
}

// The flags of a command and of those that it stands below, as they are written.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      flags.push_back("-" + name);
    }
  }
  return flags;
}

// An error in the words of the command line, with what was probably meant.
std::string text_of(const CLI::ParseError& failure, const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = named_command(app);
  const std::string help = "'" + words.front() + (command.get_parent() != nullptr ? " " + command.get_name() : "") +
                           " --help' says what it takes\n";
  if (dynamic_cast<const CLI::ExtrasError*>(&failure) != nullptr) {
    for (const std::string& extra : app.remaining(true)) {
      if (extra.starts_with('-')) {
        const UnknownFlag unknown = unknown_flag(words, extra, flags_of(command));
        return "error: " + unknown.message + "\n" + (unknown.mended.empty() ? help : did_you_mean(unknown.mended));
      }
    }
    if (const Advice advice = advice_on(words, failure.what()); !advice.instead.empty()) {
      return "error: " + advice.instead + "\n" + advice.after;
    }
    return "error: " + join(app.remaining(true)) + " is more than '" + command.get_name() + "' takes\n" + help;
  }
  const Advice advice = advice_on(words, failure.what());
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&failure) != nullptr;
  const std::string example = lacks && !command.get_footer().empty()
                                  ? "for e" + command.get_footer().substr(1) + "\n" // "Example: …"
                                  : "";
  return "error: " + (advice.instead.empty() ? failure.what() : advice.instead) + "\n" +
         (advice.after.empty() ? example + help : advice.after);
}

} // namespace

std::optional<ExitStatus> CommandLine::read(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (first_bad_byte(words[i])) {
      throw InputError({"command line", 0, 0}, "argument " + std::to_string(i) + " is not UTF-8: '" +
                                                   on_one_line(words[i]) + "'; allowed: UTF-8");
    }
  }
  *call_ = app_->get_name();
  for (std::size_t i = 1; i < words.size(); ++i) {
    *call_ += " " + to_text(Command{.words = {words[i]}, .folder = {}});
  }
  try {
    app_->parse(std::vector<std::string>(words.rbegin(),
                                         words.rend() - 1)); // from the last word to the one behind the program's name
    return std::nullopt;
  } catch (const CLI::ParseError& failure) { // what it says has words of the command line in it
    if (failure.get_exit_code() != 0) {
      remark(text_of(failure, *app_, words));
      return kBadInput;
    }
    std::ostringstream out, errors;
    app_->exit(failure, out, errors);
    print(out.str());
    return kDone;
  }
}

} // namespace stagecraft
