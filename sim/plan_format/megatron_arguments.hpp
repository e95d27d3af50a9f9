// The arguments of Megatron-LM in a launch script. docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan_format/plan_formats.hpp"

namespace stagecraft {

/// A word of a shell script.
struct ShellWord {
  std::string text;
  Where where;
};

/// An argument that decides part of a plan, and whether it takes a value.
struct MegatronFlag {
  std::string_view name;
  bool valued;
};

/// The flags of a file that concern a plan, with variables replaced by their values. Names come without leading dashes.
class MegatronArguments {
public:
  /// InputError for an unknown flag that would place layers, a flag without its value or given twice, or a variable
  /// that the file does not set.
  explicit MegatronArguments(const PlanSource& source);

  bool has(std::string_view name) const { return values_.count(std::string(name)) != 0; }
  /// Place of the value; the beginning of the file if the flag is not given.
  Where where(std::string_view name) const { return has(name) ? values_.at(std::string(name)).where : whole_; }
  /// The value; "" if the flag is not given.
  std::string text(std::string_view name) const { return has(name) ? values_.at(std::string(name)).text : ""; }
  int integer(std::string_view name, int low, int high, int otherwise) const;
  /// The given flags that change a run's time or memory, and that no plan can say.
  std::vector<std::string> unheeded() const { return unheeded_; }
  /// The number of processes: WORLD_SIZE, or torchrun's product; 0 if the file does not say.
  int world() const;

private:
  void remember_variable(const ShellWord& word);
  void add(const MegatronFlag& flag, const std::vector<ShellWord>& words, std::size_t i);

  Where whole_;
  std::map<std::string, ShellWord> values_, variables_;
  std::vector<std::string> unheeded_;
};

} // namespace stagecraft
