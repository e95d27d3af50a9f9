// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/torchtitan_before.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {
namespace {

struct MovedField {
  std::string_view section, name, today; ///< today: a dotted key
};
constexpr std::array kMovedFields = {
    MovedField{"training", "data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    MovedField{"training", "data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    MovedField{"training", "data_parallel_degree", "parallelism.data_parallel_shard_degree"}, // until August 2024
    MovedField{"training", "tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    MovedField{"training", "disable_loss_parallel", "parallelism.disable_loss_parallel"},
    MovedField{"experimental", "context_parallel_degree", "parallelism.context_parallel_degree"},
    MovedField{"experimental", "context_parallel_rotate_method", "parallelism.context_parallel_rotate_method"},
    MovedField{"experimental", "pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    MovedField{"training", "pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    MovedField{"experimental", "pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    MovedField{"experimental", "pipeline_parallel_schedule_csv", "parallelism.pipeline_parallel_schedule_csv"},
    MovedField{"experimental", "pipeline_parallel_split_points", "parallelism.pipeline_parallel_split_points"},
    MovedField{"experimental", "enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
    MovedField{"experimental", "enable_compiled_autograd", "parallelism.enable_compiled_autograd"},
    MovedField{"training", "fsdp_reshard_after_forward", "parallelism.fsdp_reshard_after_forward"},
};

yaml::Node::Entry* entry_in(yaml::Node& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const yaml::Node::Entry& entry) { return entry.key == key; });
  return found != map.entries.end() && map.kind == yaml::Node::Kind::map ? &*found : nullptr;
}

// Takes a field out of its section, where it has such a one.
std::optional<yaml::Node> taken(yaml::Node& document, std::string_view section, std::string_view name) {
  yaml::Node::Entry* const inside = entry_in(document, section);
  yaml::Node::Entry* const field = inside != nullptr ? entry_in(inside->value, name) : nullptr;
  if (field == nullptr) {
    return std::nullopt;
  }
  yaml::Node value = std::move(field->value);
  inside->value.entries.erase(inside->value.entries.begin() + (field - inside->value.entries.data()));
  return value;
}

} // namespace

yaml::Node with_sections_of_today(yaml::Node document) {
  if (document.kind != yaml::Node::Kind::map) {
    return document;
  }
  for (const MovedField& field : kMovedFields) {
    if (const auto value = taken(document, field.section, field.name)) {
      yaml::set(document, field.today, *value);
    }
  }
  if (const auto on = taken(document, "training", "enable_loss_parallel"); on && on->text == "false") {
    yaml::set(document, "parallelism.disable_loss_parallel", yaml::text_node("true", on->where));
  }
  if (const auto on = taken(document, "float8", "enable_float8_linear"); on && on->text == "true") {
    yaml::Node converters{.kind = yaml::Node::Kind::sequence, .where = on->where};
    converters.items.push_back(yaml::text_node("float8", on->where));
    yaml::set(document, "model.converters", converters);
  }
  return document;
}

} // namespace stagecraft
