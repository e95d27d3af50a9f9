// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/config/megatron/megatron_formats.hpp"
#include "sim/workload/config/megatron/megatron_yaml.hpp"

namespace stagecraft {
namespace {

constexpr std::array kConfigFormats = {
    ConfigFormat{"torchtitan",
                 "TorchTitan: TOML, or the fields of today as YAML or JSON",
                 ConfigShape::document,
                 {"tensor_parallel_degree", "data_parallel_shard_degree", "data_parallel_replicate_degree",
                  "pipeline_parallel_degree", "context_parallel_degree", "local_batch_size", "selective_ac_option",
                  "parallelism", "num_tokens_per_microbatch_per_dp_rank"},
                 import_torchtitan,
                 write_torchtitan,
                 ".toml"},
    ConfigFormat{"deepspeed",
                 "DeepSpeed's JSON",
                 ConfigShape::document,
                 {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization",
                  "gradient_accumulation_steps_per_gpu", "zero_allow_untested_optimizer", "autotp_size",
                  "gradient_predivide_factor", "wall_clock_breakdown", "steps_per_print"},
                 import_deepspeed,
                 write_deepspeed,
                 ".json"},
    ConfigFormat{"maxtext",
                 "MaxText's base.yml, or overrides of it",
                 ConfigShape::document,
                 {"per_device_batch_size", "base_emb_dim", "ici_fsdp_parallelism", "ici_tensor_parallelism",
                  "dcn_data_parallelism", "ici_data_parallelism", "remat_policy", "ici_pipeline_parallelism",
                  "base_config"},
                 import_maxtext,
                 write_maxtext,
                 ".yml"},
    ConfigFormat{"megatron-bridge",
                 "Megatron-Bridge: sections of a ConfigContainer as YAML or JSON",
                 ConfigShape::document,
                 {"tensor_model_parallel_size", "pipeline_model_parallel_size", "micro_batch_size", "global_batch_size",
                  "context_parallel_size", "expert_model_parallel_size", "recompute_granularity",
                  "virtual_pipeline_model_parallel_size", "use_distributed_optimizer"},
                 import_megatron_bridge,
                 write_megatron_bridge,
                 ".yaml",
                 kRankOrders},
    ConfigFormat{"nemo",
                 "a row of NeMo's recommended_model_configs",
                 ConfigShape::table,
                 {"tp_size", "pp_size", "cp_size", "vp_size", "mbs", "gbs", "num_gpus", "tp", "pp"},
                 import_nemo,
                 write_nemo,
                 ".csv"},
    ConfigFormat{"megatron",
                 "Megatron-LM's arguments, in a file, a launch script, or YAML as its recipes",
                 ConfigShape::script,
                 {"micro-batch-size", "global-batch-size", "tensor-model-parallel-size", "pipeline-model-parallel-size",
                  "num-layers", "use-distributed-optimizer", "recompute-granularity", "sequence-parallel",
                  "context-parallel-size"},
                 import_megatron},
    ConfigFormat{"mlperf",
                 "MLPerf's config_*.sh: exported variables, read and never executed",
                 ConfigShape::script,
                 {"MINIBS", "TENSOR_MODEL_PARALLEL", "PIPELINE_MODEL_PARALLEL", "DGXNNODES", "DGXNGPU", "DGXSYSTEM",
                  "CONTEXT_PARALLEL", "MICRO_BATCH_SIZE", "GLOBAL_BATCH_SIZE"},
                 import_mlperf,
                 write_mlperf,
                 ".sh",
                 kRankOrders},
};

// Megatron-LM's arguments in a document are what stands there as a script.
ConfigShape shape_of(const ConfigSource& source) {
  if (source.ending() == ".csv") {
    return ConfigShape::table;
  }
  return source.is_document() && arguments_in(source.document()) == nullptr ? ConfigShape::document
                                                                            : ConfigShape::script;
}

// Whether a key of the mapping, or of a mapping in it, is one of the marks.
bool has_key(const yaml::Node& node, const ConfigFormat& format) {
  return std::any_of(node.entries.begin(), node.entries.end(), [&](const yaml::Node::Entry& entry) {
    const std::string_view name = std::string_view(entry.key).substr(entry.key.rfind('.') + 1);
    return std::find(format.marks.begin(), format.marks.end(), name) != format.marks.end() ||
           has_key(entry.value, format);
  });
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Whether a word of the line is one of the marks; leading dashes and the choice between - and _ are no matter.
bool has_word(std::string_view line, const ConfigFormat& format) {
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t end = begin;
    while (end < line.size() && is_letter(line[end])) {
      ++end;
    }
    std::string word(line.substr(begin, end - begin));
    word.erase(0, std::min(word.find_first_not_of('-'), word.size()));
    std::string dashed = word;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    for (const std::string_view mark : format.marks) {
      if (!word.empty() && (word == mark || dashed == mark)) {
        return true;
      }
    }
    begin = end + 1;
  }
  return false;
}

bool has_word_in_code(std::string_view text, const ConfigFormat& format) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (has_word(line.substr(0, line.find('#')), format)) {
      return true;
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

const ConfigFormat& recognised(const ConfigSource& source) {
  const auto found = std::find_if(kConfigFormats.begin(), kConfigFormats.end(),
                                  [&](const ConfigFormat& format) { return shows(format, source); });
  if (found == kConfigFormats.end()) {
    std::string known;
    for (const ConfigFormat& format : kConfigFormats) {
      if (format.shape == shape_of(source)) {
        known +=
            (known.empty() ? "'" : ", '") + std::string(format.marks.front()) + "' (" + std::string(format.name) + ")";
      }
    }
    throw InputError({source.file, 1, 1}, "no configuration of a framework that is known here; such files are known by "
                                          "what they say, as by " +
                                              known + "; or name it, {file: FILE, format: NAME}");
  }
  return *found;
}

} // namespace

std::span<const ConfigFormat> config_formats() { return kConfigFormats; }

bool shows(const ConfigFormat& format, const ConfigSource& source) {
  if (format.shape != shape_of(source)) {
    return false;
  }
  if (format.shape == ConfigShape::document) {
    return has_key(source.document(), format);
  }
  const std::string_view text = source.text;
  return format.shape == ConfigShape::table ? has_word(text.substr(0, text.find('\n')), format)
                                            : has_word_in_code(text, format);
}

ImportedTraining read_config(const ConfigSource& source, std::string_view format, const ConfigContext& context) {
  check_utf8(source.text, source.file);
  const ConfigFormat& row = format.empty()
                                ? recognised(source)
                                : find_by_name(kConfigFormats, format, "format of configurations", {source.file, 0, 0});
  return row.read(source, context);
}

NamedConfig load_config(const yaml::Node& node, const ConfigContext& context) {
  const bool is_map = node.kind == yaml::Node::Kind::map;
  const yaml::Node* name = &node;
  const yaml::Node* row = nullptr;
  std::string_view format;
  if (is_map) {
    yaml::Map map(node, "config");
    name = &map.node("file");
    row = map.find("row");
    format = map.has("format") ? map.choice("format", kConfigFormats).name : "";
    map.finish();
  }
  const std::filesystem::path file = yaml::scalar(*name, "config");
  // A value of --set is at no line, or at one of its own text where it is a mapping.
  const bool from_command_line = name->where.line == 0 || name->where.file.starts_with("--set ");
  if (file.empty() || (file.has_parent_path() && !from_command_line)) {
    throw InputError(name->where, "'" + file.string() + "' is no file beside this one; allowed: its name alone");
  }
  const std::filesystem::path path =
      from_command_line ? file : std::filesystem::path(name->where.file).parent_path() / file;
  const ConfigSource source(read_file(path), path.string(), row);
  return {file.string(), read_config(source, format, context)};
}

} // namespace stagecraft
