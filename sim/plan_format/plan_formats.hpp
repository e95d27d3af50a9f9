// Plans in the forms of other tools: read to be checked and ranked beside ours, and ours written for them.
// docs/formats/plan.md, docs/formats/foreign-plans.md. A form is one file, one row in plan_formats.cpp, one CMake line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/yaml.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The text of a plan file, and what its names refer to.
class PlanSource {
public:
  PlanSource(std::string the_text, std::string the_file, const ModelGraph& the_model, const Platform& the_platform)
      : text(std::move(the_text)), file(std::move(the_file)), model(the_model), platform(the_platform) {}

  /// The text as YAML or JSON, parsed when first asked for; InputError where it is neither.
  const yaml::Node& document() const;

  const std::string text, file;
  const ModelGraph& model;
  const Platform& platform;

private:
  mutable std::optional<yaml::Node> document_;
};

/// A valid plan and what some forms say beside it.
struct PlanToWrite {
  const Plan& plan;
  const ModelGraph& model;
  const Platform& platform;
  const Training& training;
  int micro_batches = 1;
};

using WrittenPlan = std::variant<std::string, Infeasible>;

struct PlanFormat {
  std::string_view name, help;
  bool (*recognises)(const PlanSource& source); ///< by content; the rows above were asked before
  /// Throws InputError where the text makes no sense; whether the plan is one is plan_defects' to say.
  Plan (*read)(const PlanSource& source);
  WrittenPlan (*write)(const PlanToWrite& what); ///< or why this form cannot express the plan
  bool whole = true; ///< what is written reads back as the same stages; false: only what runs where
};

/// In the order in which a file's content is asked.
std::span<const PlanFormat> plan_formats();

/// Reads a plan in the form named, or with "" in the one that its content tells. A plan that names no strategy is
/// called after its file.
Plan load_plan(const std::filesystem::path& path, std::string_view format, const ModelGraph& model,
               const Platform& platform);
Plan read_plan_text(const PlanSource& source, std::string_view format);

/// The plan in a form, or why that form cannot express it. What is written has been read back and compared.
WrittenPlan write_plan(const PlanFormat& format, const PlanToWrite& what);

Plan read_stagecraft_plan(const PlanSource&);
WrittenPlan write_stagecraft_plan(const PlanToWrite&);
bool is_torchgpipe_plan(const PlanSource&);
Plan read_torchgpipe_plan(const PlanSource&);
WrittenPlan write_torchgpipe_plan(const PlanToWrite&);
bool is_pipedream_plan(const PlanSource&);
Plan read_pipedream_plan(const PlanSource&);
WrittenPlan write_pipedream_plan(const PlanToWrite&);
bool is_megatron_plan(const PlanSource&);
Plan read_megatron_plan(const PlanSource&);
WrittenPlan write_megatron_plan(const PlanToWrite&);
bool is_device_map(const PlanSource&);
Plan read_device_map(const PlanSource&);
WrittenPlan write_device_map(const PlanToWrite&);

/// Why a form that treats all stages and replicas alike cannot express the plan, or "": unequal shares, several rules
/// of recompute, tensor parallelism where the form has none.
std::string not_plain(const Plan& plan, std::string_view form, bool tensor_parallel);

} // namespace stagecraft
