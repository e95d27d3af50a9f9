// What is read of a framework's configuration, and what is read into.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/expert_capacity.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// A `training` mapping as a study has it, whose values stand where the file has them, what the file asks for that is
/// not taken over, one entry each, and the schedule that it names, as we call it; "" where it names none of ours.
struct ImportedTraining {
  yaml::Node training;
  std::vector<std::string> unheeded;
  std::string schedule;
  Where schedule_where;
  std::vector<std::string> conflicts{};    ///< sizes of the file that are not the model's, each with its place
  std::string framework{};                 ///< the recipe of the file's framework; "": there is none
  std::optional<ExpertCapacity> experts{}; ///< of every mixture; nothing: as the model says
};

/// What a configuration is for: files leave to the run how many devices there are and how many layers.
struct ConfigContext {
  const ModelGraph& model;
  int devices = 1;
  bool batch_given = false; ///< the study says how many samples an iteration has
};

/// The text of a configuration, and the row that is chosen where the file is a table.
class ConfigSource {
public:
  ConfigSource(std::string the_text, std::string the_file, const yaml::Node* the_row = nullptr)
      : text(std::move(the_text)), file(std::move(the_file)), row(the_row) {}

  /// The text as TOML where the name ends so, else as YAML or JSON; InputError if it is neither. Parsed on the first
  /// call.
  const yaml::Node& document() const;
  /// ".toml"; "" where the name has no ending.
  std::string ending() const;
  /// Whether the name ends as a document's does.
  bool is_document() const;

  const std::string text, file;
  const yaml::Node* row; ///< {column: value}, or null

private:
  mutable std::optional<yaml::Node> document_;
};

} // namespace stagecraft
