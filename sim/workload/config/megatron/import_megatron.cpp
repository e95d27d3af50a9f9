// Megatron-LM's arguments (megatron/training/arguments.py) as a training.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/config/megatron/megatron_yaml.hpp"
#include "sim/workload/config/megatron/unheeded_arguments.hpp"

namespace stagecraft {
ImportedTraining import_megatron(const ConfigSource& source, const ConfigContext& context) {
  const yaml::Node* const in_yaml = source.is_document() ? arguments_in(source.document()) : nullptr;
  const MegatronArguments arguments(in_yaml != nullptr ? typed_arguments(*in_yaml) : source.text, source.file);
  std::vector<std::string> unheeded;
  for (const std::string& name : arguments.others()) {
    if (std::string line = megatron_line(name); !line.empty()) {
      unheeded.push_back(std::move(line));
    }
  }
  ImportedTraining read =
      megatron_training(arguments, std::move(unheeded), context, "allgather"); // moe_token_dispatcher_type
  read.framework = "megatron-lm-2025";
  return read;
}

} // namespace stagecraft
