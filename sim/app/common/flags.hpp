// The command line, declared flag by flag. CLI11 reads it; only flags.cpp includes CLI11, which takes seconds to
// compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/app/common/exit_status.hpp"
#include "sim/base/error.hpp"

namespace CLI {
class App;
} // namespace CLI

namespace stagecraft {

/// A check of a flag's value.
struct Check {
  std::string help;                                            ///< text of the allowed values in the help
  std::function<std::string(const std::string& text)> why_not; ///< "" where the text is allowed
};

/// "" where `read` takes a flag's value, else why it does not, without a place: the flag is named before.
std::string refusal_of(const std::function<void(const Where& where)>& read);

Check one_of(const std::vector<std::string>& words);
/// A whole number in [low, high]. CLI11 alone reads 010 as 8; leading zeros are refused, as in files.
Check whole_number(int low, int high);
/// A number in [low, high].
Check number(double low, double high);
Check either(const Check& one, const Check& other);
/// One or several values, with commas between them.
Check each_of(const Check& one);

/// How a flag takes its value.
struct Value {
  std::string name{};           ///< name in the help, such as FILE; "": the name of its type
  std::optional<Check> check{}; ///< check of each value; none: any text or number is allowed
  bool required = false;
  bool shows_default = false; ///< in the help
  bool commas = false;        ///< commas may separate several values in one word
  std::string alone{};        ///< the value where the flag is given without one; "": a value is needed
  bool dash = false;          ///< "-" stands for stdout and is read as ""
};

/// Where the value of a flag goes. A flag whose target is a vector may be repeated.
using Target = std::variant<bool*, int*, double*, std::string*, std::vector<int>*, std::vector<double>*,
                            std::vector<std::string>*>;

/// The flags of one command: a handle, good for as long as the CommandLine.
class Flags {
public:
  Flags(CLI::App& app, std::shared_ptr<const std::string> call) : app_(&app), call_(std::move(call)) {}

  /// Adds a flag, "--output" or "-o,--output", or a positional argument, "FILE". The target must live until the words
  /// are read; it keeps its value where the flag is not given.
  void add(const std::string& name, Target target, const std::string& help, const Value& value = {});

  /// Adds a command below this one. Commands of a group stand together in the help; without a group the command joins
  /// this one's.
  Flags command(const std::string& name, const std::string& help, const std::string& group = "");
  /// A whole call of this command, without the program's name, which its help and errors show.
  void add_example(const std::string& call);

  /// Calls the function once this command's flags are read.
  void when_read(const std::function<void(const Flags&)>& then);
  /// The call of the program, as a shell reads it; "" before the words are read.
  const std::string& call() const { return *call_; }

  /// At most one of the commands below this one may be named.
  void allow_one_command();
  /// Whether the command line names this command.
  bool given() const;
  /// The flags of this command that the command line gives, by their long names, as "--threads".
  std::vector<std::string> given_flags() const;

private:
  CLI::App* app_;
  std::shared_ptr<const std::string> call_;
};

/// The whole command line.
class CommandLine {
public:
  /// A program that needs one of its commands; `version` is what --version prints.
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Flags flags() { return {*app_, call_}; }

  /// Reads the words, the first of which is the program's name. Returns nothing where a command is to be run. Otherwise
  /// it has printed help, the version or an error, and the program ends with this status.
  std::optional<ExitStatus> read(const std::vector<std::string>& words);

private:
  std::unique_ptr<CLI::App> app_;
  std::shared_ptr<std::string> call_;
};

} // namespace stagecraft
