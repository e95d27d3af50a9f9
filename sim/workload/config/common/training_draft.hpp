// A `training` mapping while a configuration is read into it, and the keys of a configuration while they are taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/config_source.hpp"
#include "sim/workload/training/module_row.hpp"

namespace stagecraft {

inline constexpr int kMostConfigDegree = 1 << 20, kMostConfigSamples = 1 << 30;

/// Behind the name of a key that may have an effect, for all we know.
inline constexpr std::string_view kNotKnown = " (not known here)";

/// A degree of parallelism as a configuration calls it.
struct NamedDegree {
  std::string name;
  int degree;
  Where where;
};

/// The product of the degrees. InputError at the first that does not divide what the ones before it leave of the ranks,
/// with the nearest that do; `ranks` in words: "the 8 ranks that the file asks for".
int check_degrees(const std::vector<NamedDegree>& degrees, int ranks, const std::string& in_words);

/// What a configuration says so far.
class TrainingDraft {
public:
  TrainingDraft(const ConfigContext& context, const Where& where);

  /// Sets a dotted key of `training`, as a study would.
  void set(std::string_view key, std::string text, const Where& where);
  void set(std::string_view key, long long number, const Where& where) { set(key, std::to_string(number), where); }
  /// Sets a degree of `training.parallel`. Those of a context, of experts and of their tensors are only said above 1.
  void degree(std::string_view key, int degree, const Where& where);
  /// One more line of what is not taken over.
  void leave(std::string what);
  /// The schedule that the file names, as we call it.
  void schedule(std::string_view name, const Where& where);
  /// Operators of these kinds run again, of those kinds that the model has.
  void recompute_kinds(std::initializer_list<KernelKind> kinds, const Where& where);
  /// These operators run again, too, of those that the model has.
  void recompute_operators(std::vector<std::string> names, const Where& where);
  /// Sets a dotted key of `training` to modules by Megatron-LM's names for them, of those of a table that the model
  /// has; a line for each other one, after the file's name for the argument. InputError where a name misspells one.
  void modules(std::string_view key, std::span<const ModuleRow> known, const std::vector<std::string>& names,
               const std::string& argument, const Where& where);
  /// Blocks run again, so many at a time; `first`: only so many of each stage, 0: all.
  void recompute_blocks(int at_a_time, int first, const Where& where);
  /// A conflict where the file's length of sequences is not the model's.
  void sequence_length(std::string_view key, int length, const Where& where);
  /// A conflict where a size of the file is not that of the model; 0: the model has none. Nothing: nobody knows.
  void size(std::string_view key, long long of_file, std::optional<long long> of_model, const Where& where);
  /// An optimiser that is not counted: Adam is, and a line says so. InputError where the name misspells a known one.
  void other_optimizer(const std::string& key, const std::string& name, const std::vector<std::string>& known,
                       const Where& where);
  /// Every mixture's experts take so many rows at most, to those of an equal share; a line where the model has none.
  void expert_capacity(const std::string& key, double factor, bool padded, const Where& where);
  /// The recipe of the file's framework.
  void framework(std::string_view name) { made_.framework = std::string(name); }
  /// Sets `training.parallel.expert`, of ranks of which each has experts of its own, or a line where the model has
  /// none; whether it was set. InputError where so many do not divide the ranks or the experts, with the nearest that
  /// do.
  bool share_experts(const std::string& key, int degree, long long ranks, const Where& where);
  /// InputError where so many ranks do not divide the model's experts, with the nearest that do.
  void check_experts(const std::string& key, int degree, const Where& where) const;
  /// How many replicas the devices make beside these degrees. InputError as of check_degrees().
  int replicas_beside(const std::vector<NamedDegree>& degrees) const;

  int layers() const { return layers_; }
  const ConfigContext& context() const { return context_; }
  ImportedTraining take() { return std::move(made_); }

private:
  /// Sets a dotted key of `training` to a list; nothing where it is empty.
  void set_list(std::string_view key, const std::vector<std::string>& items, const Where& where);

  const ConfigContext& context_;
  int layers_;
  ImportedTraining made_;
  std::set<std::string> left_; // what of it is unheeded
};

/// One value of a configuration and where it stands: in a section, or in none.
struct ConfigLeaf {
  std::string section, name;
  const yaml::Node* value;
  Where where; ///< of the key
  bool taken = false;
};

/// All values of a document, below sections or not, which readers take one by one. Values of null count as left out.
class ConfigLeaves {
public:
  /// InputError where the document is no mapping, or gives a key both in a section and in none.
  ConfigLeaves(const yaml::Node& document, std::string_view what);

  /// The value of a key in a section, or in no section; null where it is left out. Marks it as taken.
  const yaml::Node* find(std::string_view section, std::string_view name);
  int integer(std::string_view section, std::string_view name, int low, int high, int otherwise);
  double number(std::string_view section, std::string_view name, double otherwise);
  bool boolean(std::string_view section, std::string_view name, bool otherwise);
  std::string text(std::string_view section, std::string_view name, std::string_view otherwise);
  /// One of the names, whatever their case. InputError naming the nearest.
  std::string choice(std::string_view section, std::string_view name, const std::vector<std::string>& known,
                     std::string_view otherwise);
  /// Place of a value; the beginning of the document if it is left out.
  Where where(std::string_view section, std::string_view name);
  /// Marks as taken, without looking at it, what a reader knows and what changes neither time nor memory.
  void ignore(std::string_view section, std::span<const std::string_view> names);
  void ignore_if(const std::function<bool(const ConfigLeaf&)>& has_no_effect);
  /// What nothing has taken.
  std::vector<const ConfigLeaf*> left() const;
  /// InputError for a key that nothing has taken and that looks like a degree or a batch, naming the nearest known one.
  void refuse_unknown(std::string_view what, bool (*is_refused)(const ConfigLeaf&)) const;
  /// InputError for a section whose name misspells one of these.
  void refuse_misspelt_sections(const std::vector<std::string>& known) const;
  /// InputError for a key that nothing has taken and that misspells one that was asked for in its section.
  void refuse_misspelt(std::string_view what) const;

private:
  void collect(const yaml::Node& map, const std::string& section);
  void refuse_elsewhere(const ConfigLeaf& leaf) const;
  ConfigLeaf* leaf(std::string_view section, std::string_view name);

  Where whole_;
  std::vector<ConfigLeaf> leaves_;
  std::vector<std::pair<std::string, Where>> sections_;
  std::vector<ConfigLeaf> known_; ///< sections and names that were asked for
};

/// "section.name", or the name alone.
std::string path_of(const ConfigLeaf& leaf);
/// Whether a value is off: false, 0, none, null or empty.
bool is_off(const yaml::Node& value);

} // namespace stagecraft
