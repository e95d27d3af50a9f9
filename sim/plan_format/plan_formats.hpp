// Plans in the formats of other tools. Theirs are read, checked and ranked beside ours; ours are written for them.
// docs/formats/plan.md, docs/formats/foreign-plans.md. A format is one file, one row in plan_formats.cpp and one line
// of CMake.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/format/yaml.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The text of a plan file, with the model and platform that its names refer to.
class PlanSource {
public:
  PlanSource(std::string the_text, std::string the_file, const ModelGraph& the_model, const Platform& the_platform)
      : text(std::move(the_text)), file(std::move(the_file)), model(the_model), platform(the_platform) {}

  /// The text parsed as YAML or JSON on the first call; InputError if it is neither.
  const yaml::Node& document() const;

  const std::string text, file;
  const ModelGraph& model;
  const Platform& platform;

private:
  mutable std::optional<yaml::Node> document_;
};

/// A valid plan, and what some formats need beside it.
struct PlanToWrite {
  const Plan& plan;
  const ModelGraph& model;
  const Platform& platform;
  const Training& training;
  int micro_batches = 1;
  std::string schedule{}; ///< under which it runs; "": not known
};

using WrittenPlan = std::variant<std::string, Infeasible>;

struct PlanFormat {
  std::string_view name, help;
  bool (*recognises)(const PlanSource& source); ///< from the content; called only if no row above recognises the text
  /// Throws InputError if the text makes no sense; plan_defects decides whether the plan is valid.
  Plan (*read)(const PlanSource& source);
  WrittenPlan (*write)(const PlanToWrite& what); ///< or the reason why this format cannot express the plan
  bool whole = true; ///< the written plan reads back as the same stages; false: it only says what runs where
};

/// The table of formats, in the order in which they are tried on a file.
std::span<const PlanFormat> plan_formats();

/// Reads a plan in the format called `format`, or for "" in the one that its content shows. A plan without a strategy
/// takes the name of its file as such.
Plan load_plan(const std::filesystem::path& path, std::string_view format, const ModelGraph& model,
               const Platform& platform);
Plan read_plan_text(const PlanSource& source, std::string_view format);

/// The plan in a format, or why the format cannot express it. The text has been read back and compared with the plan.
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

/// Why a format that treats all stages and replicas alike cannot express the plan: unequal shares, several recompute
/// rules, or tensor parallelism if the format has none. "" if it can.
std::string not_plain(const Plan& plan, std::string_view form, bool tensor_parallel);

} // namespace stagecraft
