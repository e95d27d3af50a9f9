// Megatron-LM's arguments (megatron/training/arguments.py) as a training.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/workload/config/megatron_training.hpp"
#include "sim/workload/config/names_without_effect.hpp"
#include "sim/workload/config/training_draft.hpp"

namespace stagecraft {
namespace {

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

ImportedTraining import_megatron(const ConfigSource& source, const ConfigContext& context) {
  const MegatronArguments arguments(source.text, source.file);
  std::vector<std::string> unheeded;
  for (const std::string& name : arguments.others()) {
    if (is_in(unheeded_megatron_flags(), name)) {
      unheeded.push_back("--" + name);
    } else if (!is_megatron_name_without_effect(name) && !is_in(megatron_dimensions(), name)) {
      unheeded.push_back("--" + excerpt(name) + std::string(kNotKnown));
    }
  }
  ImportedTraining read =
      megatron_training(arguments, std::move(unheeded), context, "allgather"); // moe_token_dispatcher_type
  read.framework = "megatron-lm-2025";
  return read;
}

} // namespace stagecraft
