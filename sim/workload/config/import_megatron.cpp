// Megatron-LM's arguments (megatron/training/arguments.py) as a training.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/named_table.hpp"
#include "sim/workload/config/megatron_training.hpp"

namespace stagecraft {
namespace {

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

ImportedTraining import_megatron(const ConfigSource& source, const ConfigContext& context) {
  const MegatronArguments arguments(source.text, source.file);
  std::vector<std::string> unheeded, dimensions;
  for (const std::string& name : arguments.others()) {
    if (is_in(unheeded_megatron_flags(), name)) {
      unheeded.push_back("--" + name);
    } else if (is_in(megatron_dimensions(), name)) {
      dimensions.push_back("--" + name);
    }
  }
  if (!dimensions.empty()) {
    unheeded.push_back(join(dimensions) + " (the study's model says its dimensions)");
  }
  return megatron_training(arguments, std::move(unheeded), context, "allgather"); // moe_token_dispatcher_type
}

} // namespace stagecraft
