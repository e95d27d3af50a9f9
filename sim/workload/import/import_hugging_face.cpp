// Hugging Face's config.json of decoder-only transformers: each becomes the workload file that one would write by
// hand, and is read as that. docs/formats/hugging-face.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>

#include "sim/base/json.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/decoder.hpp"
#include "sim/workload/import/import.hpp"

namespace stagecraft {
namespace {

// Far above published models, and so that no tensor has more elements than a model may have.
constexpr int kMostLayers = 4096, kMostHeads = 4096, kMostHeadWidth = 4096, kMostExperts = 4096;
constexpr int kMostHidden = 1 << 20, kMostIntermediate = 1 << 23, kMostVocabulary = 1 << 24;

constexpr const char *kRotary = "partial_rotary_factor", *kNeoxRotary = "rotary_pct";

// Keys that change neither sizes nor work. Dropout of attention is inside its fused kernel.
constexpr std::string_view kHarmless[] = {"_name_or_path",
                                          "attention_dropout",
                                          "attn_pdrop",
                                          "begin_suppress_tokens",
                                          "aux_loss_alpha",
                                          "bos_token_id",
                                          "classifier_dropout",
                                          "dtype",
                                          "embd_layer_norm_epsilon",
                                          "ep_size",
                                          "eos_token_id",
                                          "id2label",
                                          "initial_context_length",
                                          "initializer_range",
                                          "label2id",
                                          "layer_norm_eps",
                                          "layer_norm_epsilon",
                                          "n_ctx",
                                          "n_group",
                                          "norm_topk_prob",
                                          "original_max_position_embeddings",
                                          "output_router_logits",
                                          "pad_token_id",
                                          "pretraining_tp",
                                          "reorder_and_upcast_attn",
                                          "rms_norm_eps",
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
                                          "topk_group",
                                          "topk_method",
                                          "torch_dtype",
                                          "transformers_version",
                                          "use_cache"};

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
                                  {"vision_config", "images"}};

// Architectures that people have, and what of them there is no layer or block for.
constexpr NamedLack kNotModelled[] = {
    {"bert", "an encoder, and heads on it"},
    {"bloom", "biases of attention by distance"},
    {"falcon", "one norm for attention and feed-forward part"},
    {"gemma2", "norms behind both parts, and layers that differ in their windows"},
    {"gemma3", "images, norms behind both parts, and layers that differ in their windows"},
    {"gemma3_text", "norms behind both parts, and layers that differ in their windows"},
    {"llama4", "images and a mixture of experts"},
    {"mamba", "state space layers"},
    {"mamba2", "state space layers"},
    {"phi", "one norm for attention and feed-forward part"},
    {"t5", "an encoder, and attention to it"},
    {"vit", "images"},
};

// The document while it is read: what is null counts as absent, and each key asked for is noted.
class Config {
public:
  Config(const json::Value& document, const json::Source& source)
      : object_(document, source, ""), all_(document), source_(source) {}

  const json::Value* given(const std::string& key) {
    asked_.insert(key);
    const json::Value* found = object_.find(key);
    return found != nullptr && !found->is_null() ? found : nullptr;
  }
  bool has(const std::string& key) const { return all_.contains(key); }

  int size(const std::string& key, int most) {
    given(key);
    return object_.integer(key, 1, most);
  }
  int size(const std::string& key, int most, int otherwise) {
    return given(key) != nullptr ? object_.integer(key, 1, most) : otherwise;
  }
  bool flag(const std::string& key, bool otherwise) { return given(key) != nullptr ? object_.flag(key) : otherwise; }
  std::string text(const std::string& key, const std::string& otherwise) {
    return given(key) != nullptr ? object_.text(key, otherwise) : otherwise;
  }
  /// Whether a probability of dropout is more than 0.
  bool drops(const std::string& key, double otherwise) {
    return (given(key) != nullptr ? object_.amount(key) : otherwise) > 0;
  }
  /// The fraction of a head that turns: under its own key or, since transformers 5, among rope_parameters.
  double rotary(const std::string& key, double otherwise) {
    const json::Value* inner = given("rope_parameters");
    if (inner != nullptr && inner->is_object() && inner->contains(kRotary)) {
      return fraction(json::Object(*inner, source_, "rope_parameters"), kRotary);
    }
    return given(key) != nullptr ? fraction(object_, key) : otherwise;
  }
  InputError error(const std::string& key, const std::string& what) const { return object_.error(key, what); }

  /// `modelled`: keys of these that the family reads, or whose meaning for storage it leaves aside.
  void refuse_what_is_not_modelled(std::span<const std::string_view> modelled) {
    for (const NamedLack& row : kRefused) {
      if (std::find(modelled.begin(), modelled.end(), row.name) != modelled.end()) {
        continue;
      }
      const json::Value* found = given(std::string(row.name));
      const bool off = found == nullptr || *found == false || *found == 0 ||
                       ((found->is_object() || found->is_array()) && found->empty());
      if (!off) {
        throw error(std::string(row.name), "says that the model has " + std::string(row.lack) +
                                               ", which is not modelled; allowed: no such key");
      }
    }
  }

  /// Keys that nothing has asked for and that say something.
  std::vector<std::string> unread() const {
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

private:
  static double fraction(json::Object object, const std::string& key) {
    const double value = object.amount(key);
    if (!(value > 0 && value <= 1)) {
      throw object.error(key, std::string("must be ") + yaml::kFraction.text);
    }
    return value;
  }

  json::Object object_;
  const json::Value& all_;
  const json::Source& source_;
  std::set<std::string> asked_;
};

struct Activation {
  std::string_view name, kind;
};
constexpr std::array kActivations = {
    Activation{"silu", "silu"},     Activation{"swish", "silu"},     Activation{"gelu", "gelu"},
    Activation{"gelu_new", "gelu"}, Activation{"gelu_fast", "gelu"}, Activation{"gelu_pytorch_tanh", "gelu"},
    Activation{"relu", "relu"},
};

void read_activation(Config& config, const std::string& key, const std::string& otherwise, Decoder& decoder) {
  const std::string name = config.text(key, otherwise);
  std::vector<std::string> allowed;
  for (const Activation& row : kActivations) {
    const bool fits = !decoder.gated || row.kind != "relu";
    if (fits && row.name == name) {
      decoder.activation = row.kind;
      return;
    }
    if (fits) {
      allowed.emplace_back(row.name);
    }
  }
  throw config.error(key, "is '" + excerpt(on_one_line(name)) + "'; allowed: " + join(allowed));
}

// Sizes under the names that nearly all families use.
void read_sizes(Config& config, Decoder& d) {
  d.layers.resize(config.size("num_hidden_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("intermediate_size", kMostIntermediate);
  d.heads = config.size("num_attention_heads", kMostHeads);
}

// Heads of queries and of keys and values, and their width: `width` where the file gives none, a share of the hidden
// size where that is 0. Where the number of key and value heads is missing, only some families have as many as heads;
// the others mean the number of one of their models.
void read_heads(Config& config, Decoder& d, int width, bool may_be_missing) {
  if (!may_be_missing && !config.has("num_key_value_heads")) {
    throw config.error("", "missing key 'num_key_value_heads'; allowed: a number, or null for as many as heads");
  }
  d.key_value_heads = config.size("num_key_value_heads", d.heads, d.heads);
  if (d.heads % d.key_value_heads != 0) {
    throw config.error("num_key_value_heads", std::to_string(d.key_value_heads) + " does not divide the " +
                                                  std::to_string(d.heads) + " attention heads; allowed: a divisor");
  }
  d.head_width = config.size("head_dim", kMostHeadWidth, width);
}

void set_windows(Decoder& d, int window, int first = 0) {
  for (int layer = first; layer < static_cast<int>(d.layers.size()); ++layer) {
    d.layers[layer].window = window;
  }
}

// Which layers have the window, where the file lists it.
void read_layer_types(Config& config, Decoder& d, int window) {
  const json::Value* types = config.given("layer_types");
  if (types == nullptr) {
    return;
  }
  if (!types->is_array() || types->size() != d.layers.size()) {
    throw config.error("layer_types", "must be an array of " + std::to_string(d.layers.size()) +
                                          " texts, one for each of num_hidden_layers");
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    const json::Value& type = (*types)[i];
    if (type != "full_attention" && type != "sliding_attention") {
      throw config.error("layer_types[" + std::to_string(i) + "]",
                         "is " + excerpt(on_one_line(type.dump())) + "; allowed: full_attention, sliding_attention");
    }
    d.layers[i].window = type == "sliding_attention" ? window : 0;
  }
}

// The window where the key stands alone: of all layers, or none where it is null.
void read_window(Config& config, Decoder& d, int otherwise) {
  const bool absent = !config.has("sliding_window");
  const int window = config.size("sliding_window", kMostSequence, absent ? otherwise : 0);
  set_windows(d, window);
  read_layer_types(config, d, window);
}

// Qwen: layers from max_window_layers on have the window, if it is switched on.
void read_switched_window(Config& config, Decoder& d) {
  constexpr int kWindow = 4096, kFirst = 28;
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  const bool on = config.flag("use_sliding_window", false);
  const json::Value* from = config.given("max_window_layers");
  const int first = from != nullptr && *from == 0 ? 0 : config.size("max_window_layers", kMostSequence, kFirst);
  if (on) {
    set_windows(d, window, first);
  }
  read_layer_types(config, d, window);
}

// Llama and what follows its block: RMS norms, rotary embedding, grouped queries, a gated feed-forward part.
void read_llama_like(Config& config, Decoder& d, int head_width = 0, bool key_value_heads_may_be_missing = false) {
  read_sizes(config, d);
  read_heads(config, d, head_width, key_value_heads_may_be_missing);
  read_activation(config, "hidden_act", "silu", d);
  d.tied = config.flag("tie_word_embeddings", false);
}

void read_attention_bias(Config& config, Decoder& d) {
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", false);
}

void read_llama(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_attention_bias(config, d);
  d.mlp_bias = config.flag("mlp_bias", false);
}

void read_mistral(Config& config, Decoder& d) {
  constexpr int kWindow = 4096;
  read_llama_like(config, d);
  read_window(config, d, kWindow);
}

void read_qwen2(Config& config, Decoder& d) {
  read_llama_like(config, d);
  read_switched_window(config, d);
  d.qkv_bias = true;
}

void read_qwen3(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 128;
  read_llama_like(config, d, kHeadWidth);
  read_switched_window(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = true;
}

// The number of experts under the family's name for it, and how many of them a token goes to.
void read_experts(Config& config, Decoder& d, const char* count, int many, int top) {
  d.experts.count = config.size(count, kMostExperts, many);
  d.experts.top = config.size("num_experts_per_tok", kMostExperts, top);
  if (d.experts.top > d.experts.count) {
    throw config.error(config.has("num_experts_per_tok") ? "num_experts_per_tok" : count,
                       "a token cannot go to " + std::to_string(d.experts.top) + " of " +
                           std::to_string(d.experts.count) + " experts; allowed: at most to all of them");
  }
}

void read_mixtral(Config& config, Decoder& d) {
  constexpr int kExperts = 8, kTop = 2;
  read_llama_like(config, d);
  read_window(config, d, 0);
  read_experts(config, d, "num_local_experts", kExperts, kTop);
  d.experts.intermediate = d.intermediate;
  for (DecoderLayer& layer : d.layers) {
    layer.sparse = true;
  }
}

// Qwen: every decoder_sparse_step-th layer has experts, but for those in mlp_only_layers.
void read_sparse_step(Config& config, Decoder& d) {
  const int step = config.size("decoder_sparse_step", kMostLayers, 1);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].sparse = (i + 1) % step == 0;
  }
  const json::Value* dense = config.given("mlp_only_layers");
  for (std::size_t i = 0; dense != nullptr && i < dense->size(); ++i) {
    const json::Value* layer = dense->is_array() ? &(*dense)[i] : nullptr;
    if (layer == nullptr || !layer->is_number_integer() || *layer < 0 || *layer >= d.layers.size()) {
      throw config.error("mlp_only_layers",
                         "must be an array of numbers of layers, from 0 to " + std::to_string(d.layers.size() - 1));
    }
    d.layers[layer->get<std::size_t>()].sparse = false;
  }
}

void read_qwen2_moe(Config& config, Decoder& d) {
  constexpr int kExperts = 60, kTop = 4, kInside = 1408, kShared = 5632;
  read_qwen2(config, d);
  read_experts(config, d, "num_experts", kExperts, kTop);
  d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
  d.experts.shared = config.size("shared_expert_intermediate_size", kMostIntermediate, kShared);
  d.experts.shared_gate = true;
  read_sparse_step(config, d);
}

void read_qwen3_moe(Config& config, Decoder& d) {
  constexpr int kExperts = 128, kTop = 8, kInside = 768;
  read_llama_like(config, d);
  read_switched_window(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = true;
  read_experts(config, d, "num_experts", kExperts, kTop);
  d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
  read_sparse_step(config, d);
}

// Without layer_types every other layer has the window, the first one too.
void read_gpt_oss(Config& config, Decoder& d) {
  constexpr int kExperts = 128, kTop = 4, kWindow = 128, kHeadWidth = 64;
  read_llama_like(config, d, kHeadWidth);
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i] = {i % 2 == 0 ? window : 0, true};
  }
  read_layer_types(config, d, window);
  config.given("experts_per_token"); // another name of num_experts_per_tok in the published files
  read_experts(config, d, "num_local_experts", kExperts, kTop);
  d.experts.intermediate = d.intermediate;
  d.experts.router_bias = d.experts.bias = true;
  d.sinks = true;
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", true);
}

// Widths of latent attention. Without q_lora_rank queries are made of the token itself.
void read_latent(Config& config, Decoder& d) {
  constexpr int kMostRank = 1 << 16;
  DecoderLatent& latent = d.latent;
  const json::Value* rank = config.given("q_lora_rank");
  latent.query_rank = rank == nullptr ? 0 : config.size("q_lora_rank", kMostRank);
  latent.key_value_rank = config.size("kv_lora_rank", kMostRank);
  latent.without_rotary = config.size("qk_nope_head_dim", kMostHeadWidth);
  latent.rotary = config.size("qk_rope_head_dim", kMostHeadWidth);
  latent.value = config.size("v_head_dim", kMostHeadWidth);
  config.given("num_key_value_heads"); // as many as heads
  config.given("head_dim");
  d.key_value_heads = d.heads;
  d.head_width = latent.without_rotary + latent.rotary;
  d.rotary = 0; // a part of latent attention
}

void read_deepseek(Config& config, Decoder& d) {
  read_sizes(config, d);
  read_latent(config, d);
  read_activation(config, "hidden_act", "silu", d);
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", false);
  const json::Value* first = config.given("first_k_dense_replace");
  const bool from_start = first != nullptr && *first == 0;
  const int dense = from_start ? 0 : config.size("first_k_dense_replace", kMostLayers);
  const int step = config.size("moe_layer_freq", kMostLayers, 1);
  config.size("n_routed_experts", kMostExperts);
  read_experts(config, d, "n_routed_experts", 1, 1);
  const int inside = config.size("moe_intermediate_size", kMostIntermediate);
  d.experts.intermediate = inside;
  constexpr int kMostShared = 64;
  d.experts.shared =
      config.given("n_shared_experts") == nullptr ? 0 : config.size("n_shared_experts", kMostShared) * inside;
  for (int i = dense; i < static_cast<int>(d.layers.size()); ++i) {
    d.layers[i].sparse = i % step == 0;
  }
}

// Version 3 corrects the choice of experts by a bias for each; its last layers, which predict further tokens, are no
// part of the model of transformers.
void read_deepseek_v3(Config& config, Decoder& d) {
  read_deepseek(config, d);
  d.experts.router_bias = true;
}

void read_gemma(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 256;
  read_sizes(config, d);
  read_heads(config, d, kHeadWidth, false);
  config.given("hidden_act"); // GELU whatever it says: the first files had a wrong one
  read_activation(config, "hidden_activation", "gelu_pytorch_tanh", d);
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", true);
}

void read_phi3(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_window(config, d, 0);
  d.rotary = config.rotary(kRotary, 1);
  d.dropout = config.drops("resid_pdrop", 0);
  d.embedding_dropout = config.drops("embd_pdrop", 0);
}

void read_gpt_neox(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  read_sizes(config, d);
  d.key_value_heads = d.heads;
  read_activation(config, "hidden_act", "gelu", d);
  d.rotary = config.rotary(kNeoxRotary, 0.25);
  d.parallel = config.flag("use_parallel_residual", true);
  d.tied = config.flag("tie_word_embeddings", false);
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", true);
  d.mlp_bias = true;
  d.dropout = d.embedding_dropout = config.drops("hidden_dropout", 0);
}

void read_gpt2(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  d.rotary = 0;
  d.layers.resize(config.size("n_layer", kMostLayers));
  d.hidden = config.size("n_embd", kMostHidden);
  d.intermediate = config.size("n_inner", kMostIntermediate, 4 * d.hidden);
  d.heads = d.key_value_heads = config.size("n_head", kMostHeads);
  d.positions = config.size("n_positions", kMostSequence);
  read_activation(config, "activation_function", "gelu_new", d);
  d.tied = config.flag("tie_word_embeddings", true);
  d.qkv_bias = d.projection_bias = d.mlp_bias = true;
  d.dropout = config.drops("resid_pdrop", 0.1);
  d.embedding_dropout = config.drops("embd_pdrop", 0.1);
}

/// A family of models: what its files are called, and how one is read.
struct Family {
  std::string_view name;         ///< model_type
  std::string_view architecture; ///< with the head of a language model
  void (*read)(Config&, Decoder&);
  const char* hidden = "hidden_size";
  const char* positions = "max_position_embeddings";
  const char* rotary = kRotary;
  std::span<const std::string_view> modelled = {}; ///< of kRefused
};

constexpr std::string_view kLocalExperts[] = {"num_local_experts", "quantization_config"};
constexpr std::string_view kExperts[] = {"num_experts"};
constexpr std::string_view kDeepSeek[] = {"n_routed_experts", "kv_lora_rank", "quantization_config"};

constexpr std::array kFamilies = {
    Family{"llama", "LlamaForCausalLM", read_llama},
    Family{"mistral", "MistralForCausalLM", read_mistral},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2},
    Family{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Family{"mixtral", "MixtralForCausalLM", read_mixtral, "hidden_size", "max_position_embeddings", kRotary,
           std::span(kLocalExperts).first(1)},
    Family{"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe, "hidden_size", "max_position_embeddings", kRotary,
           kExperts},
    Family{"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe, "hidden_size", "max_position_embeddings", kRotary,
           kExperts},
    Family{"gpt_oss", "GptOssForCausalLM", read_gpt_oss, "hidden_size", "max_position_embeddings", kRotary,
           kLocalExperts},
    Family{"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek, "hidden_size", "max_position_embeddings", kRotary,
           kDeepSeek},
    Family{"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3, "hidden_size", "max_position_embeddings", kRotary,
           kDeepSeek},
    Family{"gemma", "GemmaForCausalLM", read_gemma},
    Family{"phi3", "Phi3ForCausalLM", read_phi3},
    Family{"gpt2", "GPT2LMHeadModel", read_gpt2, "n_embd", "n_positions"},
    Family{"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox, "hidden_size", "max_position_embeddings", kNeoxRotary},
};

// The family by model_type, or where that is missing, by the first of `architectures`.
const Family& find_family(Config& config) {
  const std::string type = config.text("model_type", "");
  const json::Value* list = config.given("architectures");
  if (list != nullptr && (!list->is_array() || std::any_of(list->begin(), list->end(),
                                                           [](const json::Value& one) { return !one.is_string(); }))) {
    throw config.error("architectures", "must be an array of texts");
  }
  const std::string first = list != nullptr && !list->empty() ? list->front().get<std::string>() : "";
  std::vector<std::string> known;
  for (const Family& family : kFamilies) {
    if (type.empty() ? family.architecture == first : family.name == type) {
      if (!first.empty() && family.architecture != first) {
        throw config.error("architectures[0]", "is '" + excerpt(on_one_line(first)) +
                                                   "', of which only the language model is modelled; allowed: " +
                                                   std::string(family.architecture));
      }
      return family;
    }
    known.emplace_back(type.empty() ? family.architecture : family.name);
  }
  for (const NamedLack& row : kNotModelled) {
    if (row.name == type) {
      throw config.error("model_type",
                         "'" + type + "' is not modelled: it has " + std::string(row.lack) + "; known: " + join(known));
    }
  }
  throw config.error(type.empty() ? "architectures" : "model_type",
                     unknown_name("architecture", excerpt(on_one_line(type.empty() ? first : type)), known));
}

// The width of a head where none is given, and whether a rotary embedding can turn it in pairs.
void complete_heads(Config& config, const Family& family, Decoder& d) {
  if (d.head_width == 0 && (d.hidden % d.heads != 0 || d.hidden / d.heads > kMostHeadWidth)) {
    throw config.error(family.hidden, std::to_string(d.hidden) + " does not split into " + std::to_string(d.heads) +
                                          " heads of at most " + std::to_string(kMostHeadWidth) +
                                          " features; allowed: a multiple of the number of heads");
  }
  d.head_width = d.head_width == 0 ? d.hidden / d.heads : d.head_width;
  const int turned = static_cast<int>(d.head_width * d.rotary);
  if (d.rotary > 0 && (turned == 0 || turned % 2 != 0)) {
    throw config.error(config.has(family.rotary) ? family.rotary
                       : config.has("head_dim")  ? "head_dim"
                                                 : family.hidden,
                       "a rotary embedding cannot turn " + std::to_string(turned) + " of the " +
                           std::to_string(d.head_width) + " features of a head; allowed: an even number");
  }
}

// The length asked for, or the longest that the model is made for.
void read_sequence(Config& config, const Family& family, const ImportOptions& options, Decoder& d) {
  const json::Value* longest = config.given(family.positions);
  if (longest == nullptr && !options.sequence) {
    throw config.error("", "missing key '" + std::string(family.positions) + "', and no --seq N; allowed: one of them");
  }
  const int most = longest != nullptr ? config.size(family.positions, kMostSequence) : 0;
  d.sequence = options.sequence.value_or(most);
  if (d.positions > 0 && d.sequence > d.positions) {
    throw config.error(family.positions, "the sequence of " + std::to_string(d.sequence) + " is longer than the " +
                                             std::to_string(d.positions) +
                                             " positions that the model has learned; allowed: up to that");
  }
}

// The name of the file, or of its folder where that is the usual config.json.
std::string name_of(const std::string& file, const Family& family) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  const std::string stem = path.stem().string();
  return stem != "config"                                    ? stem
         : folder.empty() || folder == "." || folder == ".." ? std::string(family.name)
                                                             : folder;
}

} // namespace

ModelGraph import_hugging_face(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  const json::Source source(bytes, file);
  const json::Value document = json::parse(source);
  Config config(document, source);
  const Family& family = find_family(config);
  config.refuse_what_is_not_modelled(family.modelled);
  Decoder decoder;
  family.read(config, decoder);
  decoder.vocabulary = config.size("vocab_size", kMostVocabulary);
  complete_heads(config, family, decoder);
  read_sequence(config, family, options, decoder);
  ModelGraph model = load_workload(yaml::parse(workload_of(decoder), file + ", as a workload"));
  const std::vector<std::string> unread = config.unread();
  model.name = name_of(file, family);
  model.description = std::string(family.name) + " of Hugging Face, " + std::to_string(decoder.sequence) + " tokens" +
                      (unread.empty() ? "" : "; keys not read: " + join(unread));
  return model;
}

} // namespace stagecraft
