// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/common/training_draft.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/config/common/model_sizes.hpp"
#include "sim/workload/model_flops.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {} // namespace

TrainingDraft::TrainingDraft(const ConfigContext& context, const Where& where)
    : context_(context), layers_(static_cast<int>(layer_row_of(context.model).layers.size())) {
  made_.training.kind = yaml::Node::Kind::map;
  made_.training.where = where;
}

void TrainingDraft::set(std::string_view key, std::string text, const Where& where) {
  yaml::set(made_.training, key, yaml::text_node(std::move(text), where));
}

void TrainingDraft::degree(std::string_view key, int degree, const Where& where) {
  constexpr std::array<std::string_view, 3> kOnlyAboveOne = {"context", "expert", "expert_tensor"};
  if (degree > 1 || std::find(kOnlyAboveOne.begin(), kOnlyAboveOne.end(), key) == kOnlyAboveOne.end()) {
    set("parallel." + std::string(key), degree, where);
  }
}

void TrainingDraft::leave(std::string what) {
  if (left_.insert(what).second) {
    made_.unheeded.push_back(std::move(what));
  }
}

void TrainingDraft::schedule(std::string_view name, const Where& where) {
  made_.schedule = std::string(name);
  made_.schedule_where = where;
}

void TrainingDraft::set_list(std::string_view key, const std::vector<std::string>& items, const Where& where) {
  yaml::Node list{.kind = yaml::Node::Kind::sequence, .where = where};
  for (const std::string& item : items) {
    list.items.push_back(yaml::text_node(item, where));
  }
  if (!items.empty()) {
    yaml::set(made_.training, key, list);
  }
}

void TrainingDraft::recompute_kinds(std::initializer_list<KernelKind> kinds, const Where& where) {
  std::vector<std::string> names;
  const std::vector<Operator>& operators = context_.model.operators;
  for (const KernelKind kind : kinds) {
    if (std::any_of(operators.begin(), operators.end(), [&](const Operator& op) { return op.kind == kind; })) {
      names.emplace_back(row_of(kind).name);
    }
  }
  set_list("recompute.kinds", names, where);
}

void TrainingDraft::recompute_operators(std::vector<std::string> names, const Where& where) {
  std::set<std::string_view> known;
  for (const Operator& op : context_.model.operators) {
    known.insert(op.name);
  }
  std::erase_if(names, [&](const std::string& name) { return !known.contains(name); });
  set_list("recompute.operators", names, where);
}

void TrainingDraft::modules(std::string_view key, std::span<const ModuleRow> known,
                            const std::vector<std::string>& names, const std::string& argument, const Where& where) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const auto row = std::find_if(known.begin(), known.end(), [&](const ModuleRow& one) { return one.name == name; });
    if (const std::string meant = misspelt(name, names_of(known)); !meant.empty()) {
      throw InputError(where,
                       "unknown module '" + excerpt(name) + "' of " + argument + "; did you mean '" + meant + "'?");
    }
    if (row == known.end()) {
      leave(argument + " " + excerpt(name));
    } else if (row->operators(context_.model).empty()) {
      leave(argument + " " + name + " (the model has none)");
    } else {
      found.push_back(name);
    }
  }
  set_list(key, found, where);
}

void TrainingDraft::recompute_blocks(int at_a_time, int first, const Where& where) {
  if (layers_ == 0) {
    set("recompute", "full", where); // nothing is numbered: all of a stage at once
  } else if (first > 0) {
    set("recompute.first", first, where);
  } else {
    set("recompute.blocks", at_a_time, where);
  }
}

void TrainingDraft::sequence_length(std::string_view key, int length, const Where& where) {
  const auto of_model = static_cast<int>(std::lround(tokens_of(context_.model)));
  if (of_model > 0 && length != of_model) {
    made_.conflicts.push_back(to_text(where) + ": " + std::string(key) + " " + std::to_string(length) +
                              ", but sequences of " + context_.model.name + " have " + std::to_string(of_model) +
                              " tokens; --seq " + std::to_string(length) + " takes it");
  }
}

void TrainingDraft::size(std::string_view key, long long of_file, std::optional<long long> of_model,
                         const Where& where) {
  if (of_model && *of_model != of_file) {
    made_.conflicts.push_back(to_text(where) + ": " + std::string(key) + " " + std::to_string(of_file) + ", but " +
                              context_.model.name + " has " + (*of_model > 0 ? std::to_string(*of_model) : "none"));
  }
}

void TrainingDraft::other_optimizer(const std::string& key, const std::string& name,
                                    const std::vector<std::string>& known, const Where& where) {
  if (const std::string meant = misspelt(name, known); !meant.empty()) {
    throw InputError(where, "unknown optimizer '" + excerpt(name) + "'; did you mean '" + meant + "'?");
  }
  set("optimizer", "adam", where);
  leave(key + " " + excerpt(name) + " (here it is Adam: two states of a parameter, and the time of its step)");
}

void TrainingDraft::expert_capacity(const std::string& key, double factor, bool padded, const Where& where) {
  const std::vector<Operator>& operators = context_.model.operators;
  if (std::none_of(operators.begin(), operators.end(), [](const Operator& op) { return op.routing.has_value(); })) {
    constexpr int kDigits = 6;
    leave(key + " " + to_digits(factor, kDigits) + " ('" + context_.model.name + "' has no experts)");
    return;
  }
  made_.experts = ExpertCapacity{factor, padded, where};
}

bool TrainingDraft::share_experts(const std::string& key, int degree, long long ranks, const Where& where) {
  const std::vector<Operator>& operators = context_.model.operators;
  if (std::none_of(operators.begin(), operators.end(), [](const Operator& op) { return op.routing.has_value(); })) {
    leave(key + " " + std::to_string(degree) + " ('" + context_.model.name + "' has no experts)");
    return false;
  }
  if (ranks % degree != 0) {
    throw InputError(
        where, "'" + key + "' " + std::to_string(degree) + " does not divide the " + std::to_string(ranks) +
                   " ranks that share experts; nearest that do: " + nearest_divisors(static_cast<int>(ranks), degree));
  }
  check_experts(key, degree, where);
  set("parallel.expert", degree, where);
  return true;
}

void TrainingDraft::check_experts(const std::string& key, int degree, const Where& where) const {
  const auto experts = static_cast<int>(sizes_of(context_.model).experts.value_or(0));
  if (experts > 0 && experts % degree != 0) {
    throw InputError(where, "'" + key + "' " + std::to_string(degree) + " does not divide the " +
                                count_of(experts, "expert") + " of " + context_.model.name +
                                "; nearest that do: " + nearest_divisors(experts, degree));
  }
}

int TrainingDraft::replicas_beside(const std::vector<NamedDegree>& degrees) const {
  return context_.devices /
         check_degrees(degrees, context_.devices, "the platform's " + count_of(context_.devices, "device"));
}

int check_degrees(const std::vector<NamedDegree>& degrees, int ranks, const std::string& in_words) {
  int product = 1;
  std::string before;
  for (const NamedDegree& one : degrees) {
    const int left = ranks / product;
    const std::string name = one.name + " " + std::to_string(one.degree);
    if (left % one.degree != 0) {
      throw InputError(one.where, name + (before.empty() ? "" : " beside " + before) + " does not divide " + in_words +
                                      "; nearest that do: " + nearest_divisors(left, one.degree));
    }
    product *= one.degree;
    before += one.degree > 1 ? (before.empty() ? "" : " x ") + name : "";
  }
  return product;
}

ConfigLeaves::ConfigLeaves(const yaml::Node& document, std::string_view what) : whole_(document.where) {
  if (document.kind != yaml::Node::Kind::map) {
    throw InputError(document.where, std::string(what) + " is no mapping; allowed: {key: value}");
  }
  collect(document, "");
}

void ConfigLeaves::collect(const yaml::Node& map, const std::string& section) {
  for (const yaml::Node::Entry& entry : map.entries) {
    if (entry.value.kind == yaml::Node::Kind::map) {
      sections_.emplace_back(entry.key, entry.where);
      collect(entry.value, entry.key);
      continue;
    }
    if (entry.value.kind == yaml::Node::Kind::null) {
      continue;
    }
    const std::size_t dot = entry.key.rfind('.'); // "training.seq_len", as on a command line
    const std::string name = dot == std::string::npos ? entry.key : entry.key.substr(dot + 1);
    const std::string before = dot == std::string::npos ? section : entry.key.substr(0, dot);
    leaves_.push_back({before.substr(before.rfind('.') + 1), name, &entry.value, entry.where});
  }
}

ConfigLeaf* ConfigLeaves::leaf(std::string_view section, std::string_view name) {
  if (std::none_of(known_.begin(), known_.end(), [&](const ConfigLeaf& one) { return one.name == name; })) {
    known_.push_back({std::string(section), std::string(name), nullptr, {}});
  }
  ConfigLeaf* found = nullptr;
  for (ConfigLeaf& one : leaves_) {
    if (one.name == name && (one.section == section || one.section.empty())) {
      if (found != nullptr) {
        throw InputError(one.where, "'" + std::string(name) + "' is given twice, also in line " +
                                        std::to_string(found->where.line) + "; allowed: once");
      }
      found = &one;
    }
  }
  return found;
}

const yaml::Node* ConfigLeaves::find(std::string_view section, std::string_view name) {
  ConfigLeaf* found = leaf(section, name);
  if (found == nullptr) {
    return nullptr;
  }
  found->taken = true;
  return found->value;
}

namespace {

// "32_000" is 32000, as Python's YAML reads it.
yaml::Node without_underscores(yaml::Node node) {
  const bool numeric = node.kind == yaml::Node::Kind::scalar && !node.text.empty() &&
                       node.text.find_first_not_of("0123456789_.") == std::string::npos && node.text.front() != '_';
  if (numeric) {
    std::erase(node.text, '_');
  }
  return node;
}

} // namespace

int ConfigLeaves::integer(std::string_view section, std::string_view name, int low, int high, int otherwise) {
  const yaml::Node* found = find(section, name);
  return found != nullptr ? yaml::integer(without_underscores(*found), name, low, high) : otherwise;
}

double ConfigLeaves::number(std::string_view section, std::string_view name, double otherwise) {
  const yaml::Node* found = find(section, name);
  return found != nullptr ? yaml::number(without_underscores(*found), name, yaml::kNotNegative) : otherwise;
}

bool ConfigLeaves::boolean(std::string_view section, std::string_view name, bool otherwise) {
  const yaml::Node* found = find(section, name);
  if (found == nullptr) {
    return otherwise;
  }
  const std::string text = lower_case(yaml::scalar(*found, name));
  if (text != "true" && text != "false") {
    throw InputError(found->where, "'" + std::string(name) + "' is '" + excerpt(text) + "'; allowed: true, false");
  }
  return text == "true";
}

std::string ConfigLeaves::text(std::string_view section, std::string_view name, std::string_view otherwise) {
  const yaml::Node* found = find(section, name);
  return found != nullptr ? yaml::scalar(*found, name) : std::string(otherwise);
}

std::string ConfigLeaves::choice(std::string_view section, std::string_view name, const std::vector<std::string>& known,
                                 std::string_view otherwise) {
  const yaml::Node* found = find(section, name);
  if (found == nullptr) {
    return std::string(otherwise);
  }
  const std::string given = yaml::scalar(*found, name);
  for (const std::string& one : known) {
    if (lower_case(one) == lower_case(given)) {
      return one;
    }
  }
  throw InputError(found->where, unknown_name(name, given, known));
}

Where ConfigLeaves::where(std::string_view section, std::string_view name) {
  const ConfigLeaf* found = leaf(section, name);
  return found != nullptr ? found->value->where : whole_;
}

void ConfigLeaves::ignore(std::string_view section, std::span<const std::string_view> names) {
  for (ConfigLeaf& one : leaves_) {
    one.taken = one.taken || ((one.section == section || one.section.empty()) &&
                              std::find(names.begin(), names.end(), one.name) != names.end());
  }
}

void ConfigLeaves::ignore_if(const std::function<bool(const ConfigLeaf&)>& has_no_effect) {
  for (ConfigLeaf& one : leaves_) {
    one.taken = one.taken || has_no_effect(one);
  }
}

std::vector<const ConfigLeaf*> ConfigLeaves::left() const {
  std::vector<const ConfigLeaf*> left;
  for (const ConfigLeaf& one : leaves_) {
    if (!one.taken) {
      left.push_back(&one);
    }
  }
  return left;
}

void ConfigLeaves::refuse_unknown(std::string_view what, bool (*is_refused)(const ConfigLeaf&)) const {
  std::vector<std::string> known;
  for (const ConfigLeaf& one : known_) {
    if (is_refused(one)) {
      known.push_back(one.name);
    }
  }
  for (const ConfigLeaf* one : left()) {
    if (is_refused(*one)) {
      refuse_elsewhere(*one);
      throw InputError(one->where, unknown_name(what, one->name, known));
    }
  }
}

// A key that is read, but not where it stands.
void ConfigLeaves::refuse_elsewhere(const ConfigLeaf& leaf) const {
  const auto asked =
      std::find_if(known_.begin(), known_.end(), [&](const ConfigLeaf& one) { return one.name == leaf.name; });
  if (asked != known_.end()) {
    throw InputError(leaf.where, "'" + path_of(leaf) + "' is not read in [" + excerpt(leaf.section) + "]; allowed: " +
                                     (asked->section.empty() ? "" : "in [" + asked->section + "], or ") +
                                     "above all sections");
  }
}

void ConfigLeaves::refuse_misspelt_sections(const std::vector<std::string>& known) const {
  for (const auto& [name, where] : sections_) {
    if (const std::string meant = misspelt(name, known); !meant.empty()) {
      throw InputError(where, "unknown section [" + excerpt(name) + "]; did you mean [" + meant + "]?");
    }
  }
}

void ConfigLeaves::refuse_misspelt(std::string_view what) const {
  for (const ConfigLeaf* one : left()) {
    std::vector<std::string> known;
    for (const ConfigLeaf& asked : known_) {
      if (one->section.empty() || asked.section.empty() || asked.section == one->section) {
        known.push_back(asked.name);
      }
    }
    if (const std::string meant = misspelt(one->name, known); !meant.empty()) {
      throw InputError(one->where,
                       "unknown " + std::string(what) + " '" + excerpt(one->name) + "'; did you mean '" + meant + "'?");
    }
  }
}

std::string path_of(const ConfigLeaf& leaf) {
  return excerpt(leaf.section.empty() ? leaf.name : leaf.section + "." + leaf.name);
}

bool is_off(const yaml::Node& value) {
  if (value.kind != yaml::Node::Kind::scalar) {
    return value.items.empty() && value.entries.empty();
  }
  const std::string text = lower_case(value.text);
  constexpr std::array<std::string_view, 9> kOff = {"", "false", "0", "0.0", "none", "null", "-1", "[]", "disabled"};
  return std::find(kOff.begin(), kOff.end(), text) != kOff.end();
}

} // namespace stagecraft
