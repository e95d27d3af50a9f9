// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/hugging_face.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::hugging_face {
namespace {

// Keys that change neither sizes nor work. Dropout of attention is inside its fused kernel.
constexpr std::string_view kHarmless[] = {"_name_or_path",
                                          "attention_dropout",
                                          "attention_multiplier",
                                          "attention_probs_dropout_prob",
                                          "attn_logit_softcapping",
                                          "attn_pdrop",
                                          "auto_map",
                                          "aux_loss_alpha",
                                          "begin_suppress_tokens",
                                          "bos_token_id",
                                          "cache_implementation",
                                          "classifier_dropout",
                                          "clip_qkv",
                                          "decoder_start_token_id",
                                          "dtype",
                                          "embd_layer_norm_epsilon",
                                          "embedding_multiplier",
                                          "encoder_stride",
                                          "eos_token_id",
                                          "ep_size",
                                          "gradient_checkpointing",
                                          "id2label",
                                          "initial_context_length",
                                          "initializer_factor",
                                          "initializer_range",
                                          "label2id",
                                          "layer_norm_eps",
                                          "layer_norm_epsilon",
                                          "logit_scale",
                                          "logits_scaling",
                                          "mamba_ssm_cache_dtype",
                                          "n_ctx",
                                          "n_group",
                                          "norm_eps",
                                          "norm_topk_prob",
                                          "num_logits_to_keep",
                                          "original_max_position_embeddings",
                                          "output_past",
                                          "output_router_logits",
                                          "pad_token_id",
                                          "pooler_act",
                                          "pooler_output_size",
                                          "pretraining_tp",
                                          "query_pre_attn_scalar",
                                          "relative_attention_max_distance",
                                          "reorder_and_upcast_attn",
                                          "residual_multiplier",
                                          "rescale_prenorm_residual",
                                          "residual_in_fp32",
                                          "rms_norm_eps",
                                          "rope_local_base_freq",
                                          "rope_parameters",
                                          "rope_scaling",
                                          "rope_theta",
                                          "rotary_emb_base",
                                          "routed_scaling_factor",
                                          "router_aux_loss_coef",
                                          "router_jitter_noise",
                                          "scale_attn_by_inverse_layer_idx",
                                          "scale_attn_weights",
                                          "scoring_func",
                                          "seq_aux",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "swiglu_limit",
                                          "task_specific_params",
                                          "time_step_floor",
                                          "time_step_limit",
                                          "time_step_max",
                                          "time_step_min",
                                          "topk_group",
                                          "topk_method",
                                          "torch_dtype",
                                          "transformers_version",
                                          "use_bfloat16",
                                          "use_cache",
                                          "use_mamba_kernels"};

struct NamedLack {
  std::string_view name, lack;
};

// Keys that make a model of any family another one than is built here, unless null, false, 0 or empty.
constexpr NamedLack kRefused[] = {{"quantization_config", "quantized weights"},
                                  {"num_experts", "a mixture of experts"},
                                  {"num_local_experts", "a mixture of experts"},
                                  {"n_routed_experts", "a mixture of experts"},
                                  {"kv_lora_rank", "latent attention"},
                                  {"is_encoder_decoder", "an encoder beside the decoder"},
                                  {"add_cross_attention", "attention to an encoder"},
                                  {"use_bidirectional_attention", "attention to later tokens"},
                                  {"alibi", "biases of attention by distance"},
                                  {"qk_layernorm", "layer norms of queries and keys"},
                                  {"vision_config", "images"}};

struct Activation {
  std::string_view name, kind;
};
constexpr std::array kActivations = {
    Activation{"silu", "silu"},          Activation{"swish", "silu"},          Activation{"gelu", "gelu"},
    Activation{"gelu_new", "gelu_tanh"}, Activation{"gelu_fast", "gelu_tanh"}, Activation{"gelu_pytorch_tanh", "gelu"},
    Activation{"relu", "relu"},          Activation{"relu2", "relu"}, // its square is one kernel with it
};

} // namespace

Config::Config(const json::Value& document, const json::Source& source)
    : object_(document, source, ""), all_(document), source_(source) {}

Config::Config(const json::Value& value, const json::Source& source, const std::string& path)
    : object_(value, source, path), all_(value), source_(source) {}

Config Config::inner(const std::string& key) {
  static const json::Value kEmpty = json::Value::object();
  const json::Value* value = given(key);
  return {value == nullptr ? kEmpty : *value, source_, key};
}

const json::Value* Config::given(const std::string& key) {
  asked_.insert(key);
  const json::Value* found = object_.find(key);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

bool Config::has(const std::string& key) const { return all_.contains(key); }

int Config::size(const std::string& key, int most) {
  given(key);
  return object_.integer(key, 1, most);
}

int Config::size(const std::string& key, int most, int otherwise) {
  return given(key) != nullptr ? object_.integer(key, 1, most) : otherwise;
}

int Config::count(const std::string& key, int most) {
  return given(key) != nullptr ? object_.integer(key, 0, most) : 0;
}

bool Config::flag(const std::string& key, bool otherwise) {
  return given(key) != nullptr ? object_.flag(key) : otherwise;
}

std::string Config::text(const std::string& key, const std::string& otherwise) {
  return given(key) != nullptr ? object_.text(key, otherwise) : otherwise;
}

bool Config::drops(const std::string& key, double otherwise) {
  return (given(key) != nullptr ? object_.amount(key) : otherwise) > 0;
}

double Config::rotary(const std::string& key, double otherwise) {
  const json::Value* inner = given("rope_parameters");
  if (inner != nullptr && inner->is_object() && inner->contains(kRotary)) {
    return fraction(json::Object(*inner, source_, "rope_parameters"), kRotary);
  }
  return given(key) != nullptr ? fraction(object_, key) : otherwise;
}

double Config::fraction(json::Object object, const std::string& key) {
  const double value = object.amount(key);
  if (!(value > 0 && value <= 1)) {
    throw object.error(key, std::string("must be ") + yaml::kFraction.text);
  }
  return value;
}

std::string Config::activation(const std::string& key, const std::string& otherwise, bool plain) {
  const std::string name = text(key, otherwise);
  std::vector<std::string> allowed;
  for (const Activation& row : kActivations) {
    const bool fits = plain || row.kind != "relu";
    if (fits && row.name == name) {
      return row.kind == "gelu_tanh" && !plain ? "gelu" : std::string(row.kind); // gates know two
    }
    if (fits) {
      allowed.emplace_back(row.name);
    }
  }
  throw error(key, "is '" + excerpt(on_one_line(name)) + "'; allowed: " + join(allowed));
}

int Config::sequence(const std::string& longest, const ImportOptions& options, int learned) {
  if (given(longest) == nullptr && !options.sequence) {
    throw error("", "missing key '" + longest + "', and no --seq N; allowed: one of them");
  }
  const int most = given(longest) != nullptr ? size(longest, kMostSequence) : 0;
  const int length = options.sequence.value_or(most);
  if (learned > 0 && length > learned) {
    throw error(longest, "the sequence of " + std::to_string(length) + " is longer than the " +
                             std::to_string(learned) + " positions that the model has learned; allowed: up to that");
  }
  return length;
}

void Config::refuse_what_is_not_modelled(std::span<const std::string_view> modelled) {
  for (const NamedLack& row : kRefused) {
    if (std::find(modelled.begin(), modelled.end(), row.name) != modelled.end()) {
      continue;
    }
    const json::Value* found = given(std::string(row.name));
    const bool off = found == nullptr || *found == false || *found == 0 ||
                     ((found->is_object() || found->is_array()) && found->empty());
    if (!off) {
      throw error(std::string(row.name),
                  "says that the model has " + std::string(row.lack) + ", which is not modelled; allowed: no such key");
    }
  }
}

std::vector<std::string> Config::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : all_.items()) {
    const bool off = value.is_null() || value == false;
    if (!off && !asked_.contains(key) &&
        std::find(std::begin(kHarmless), std::end(kHarmless), key) == std::end(kHarmless)) {
      keys.push_back(excerpt(on_one_line(key)));
    }
  }
  return keys;
}

} // namespace stagecraft::hugging_face
