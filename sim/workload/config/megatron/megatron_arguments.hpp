// The arguments of Megatron-LM in a launch script, or under the names that other tools give them.
// docs/formats/foreign-plans.md, docs/formats/framework-configs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// A word of a shell script.
struct ShellWord {
  std::string text;
  Where where;
};

/// An argument that decides part of a plan or of a training, and whether it takes a value, or several.
struct MegatronFlag {
  std::string_view name;
  bool valued;
  bool several = false;
};

/// One argument as another tool gives it: Megatron-LM's name for it without leading dashes, its value ("" for a flag
/// that takes none), and what the tool calls it.
struct MegatronSetting {
  std::string name;
  ShellWord value;
  std::string written;
};

/// The flag of a name, or nullptr where no plan and no training depends on it.
const MegatronFlag* find_megatron_flag(std::string_view name);
/// The names of all flags.
std::vector<std::string> megatron_flags();

/// How a file calls what it does not give: "--num-layers", as a script, or "num_layers".
enum class MegatronNames { arguments, fields };

/// The flags of a file that concern a plan or a training, with variables replaced by their values. Names come without
/// leading dashes.
class MegatronArguments {
public:
  /// Of a shell script. InputError for an unknown flag that would place layers, and a flag without its value, or with
  /// two.
  MegatronArguments(const std::string& text, const std::string& file);
  /// Of another tool, on so many ranks (0: it does not say). InputError for a setting that is given twice.
  MegatronArguments(const std::vector<MegatronSetting>& settings, int world, Where whole,
                    MegatronNames names = MegatronNames::arguments);

  bool has(std::string_view name) const { return values_.count(std::string(name)) != 0; }
  /// Place of the value; the beginning of the file if the flag is not given.
  Where where(std::string_view name) const { return has(name) ? values_.at(std::string(name)).value.where : whole_; }
  /// The value; "" if the flag is not given. InputError for a variable that the file does not set.
  std::string text(std::string_view name) const;
  /// The words of the value, which blanks, commas and slashes part, as one tool or another has them.
  std::vector<std::string> words(std::string_view name) const;
  int integer(std::string_view name, int low, int high, int otherwise) const;
  double number(std::string_view name, double otherwise) const;
  /// The flag as the file calls it: "--num-layers" in a script.
  std::string written(std::string_view name) const;
  /// A line for each given flag of a script that may change a run's time or memory, and that no plan can say.
  std::vector<std::string> unheeded() const { return unheeded_; }
  /// The names of the flags in a script that are not among megatron_flags(), each once.
  const std::set<std::string>& others() const { return others_; }
  /// The number of processes: WORLD_SIZE, or torchrun's product; 0 if the file does not say, or only what it is where
  /// the environment does not.
  int world() const;

private:
  void remember_variable(const ShellWord& word);
  void add(const MegatronFlag& flag, const std::vector<ShellWord>& words, std::size_t i);
  // `assumed` becomes true where a default stands for what the environment may say, or, if `outside`, where the file
  // sets no such variable.
  void resolve(ShellWord& value, std::set<std::string> followed = {}, bool* assumed = nullptr,
               bool outside = false) const;
  void compute(ShellWord& value, const std::set<std::string>& followed, bool* assumed) const;

  Where whole_;
  int world_ = 0;
  MegatronNames names_ = MegatronNames::arguments;
  std::map<std::string, MegatronSetting> values_;
  std::map<std::string, ShellWord> variables_;
  struct Number {
    long long value = 0;
    bool assumed = false;
  };
  mutable std::map<std::string, Number> numbers_; // of variables that expressions refer to
  std::vector<std::string> unheeded_;
  std::set<std::string> others_;
};

/// The largest number of ranks that such a file may ask for.
inline constexpr int kMostMegatronRanks = 1'000'000;

} // namespace stagecraft
