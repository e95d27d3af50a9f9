// Hugging Face's config.json: the model that becomes of each family, and what is refused where.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/workload/attention_kernels.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

// As published with Llama 3 8B.
constexpr const char* kLlama3 = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 8192,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.40.0.dev0",
  "use_cache": true,
  "vocab_size": 128256
})";

// As published with GPT-2.
constexpr const char* kGpt2 = R"({
  "activation_function": "gelu_new",
  "architectures": ["GPT2LMHeadModel"],
  "attn_pdrop": 0.1,
  "bos_token_id": 50256,
  "embd_pdrop": 0.1,
  "eos_token_id": 50256,
  "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2",
  "n_ctx": 1024,
  "n_embd": 768,
  "n_head": 12,
  "n_layer": 12,
  "n_positions": 1024,
  "resid_pdrop": 0.1,
  "summary_activation": null,
  "summary_first_dropout": 0.1,
  "summary_proj_to_labels": true,
  "summary_type": "cls_index",
  "summary_use_proj": true,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257
})";

ModelGraph read_text(const std::string& text, const ImportOptions& options = {}) {
  return import_hugging_face(text, "f.json", options);
}
ModelGraph read(const Json& config, const ImportOptions& options = {}) { return read_text(config.dump(), options); }

// The config with some keys changed.
Json with(const char* text, const Json& changes) {
  Json config = Json::parse(text);
  config.update(changes);
  return config;
}

void check_same(const Pass& a, const Pass& b) {
  CHECK(a.flops == b.flops);
  CHECK(a.moved_elements == b.moved_elements);
  CHECK(a.moved_parameters == b.moved_parameters);
  CHECK(a.kernels == b.kernels);
  CHECK(a.calls == b.calls);
}

void check_same(const ModelGraph& a, const ModelGraph& b) {
  REQUIRE(a.size() == b.size());
  CHECK(a.predecessors == b.predecessors);
  CHECK(a.successors == b.successors);
  CHECK(a.input_elements == b.input_elements);
  for (int v = 0; v < a.size(); ++v) {
    const Operator &one = a.operators[v], &other = b.operators[v];
    INFO(one.name);
    CHECK(one.name == other.name);
    CHECK(one.type == other.type);
    CHECK(one.kind == other.kind);
    check_same(one.forward, other.forward);
    check_same(one.backward_input, other.backward_input);
    check_same(one.backward_weight, other.backward_weight);
    CHECK(one.parameters == other.parameters);
    CHECK(one.output_elements == other.output_elements);
    CHECK(one.stash_elements == other.stash_elements);
    CHECK(one.weight_elements == other.weight_elements);
  }
}

ModelGraph shipped(const char* name) {
  return load_model(test::source_dir() / "workloads" / (std::string(name) + ".yaml"));
}

TEST_CASE("a published config.json gives the graph of the shipped workload", "[workload][hugging-face]") {
  check_same(read_text(kLlama3), shipped("llama3-8b"));
  check_same(read_text(kGpt2), shipped("gpt2"));
  check_same(read(with(kGpt2, {{"n_embd", 1600}, {"n_head", 25}, {"n_layer", 48}})), shipped("gpt2-xl"));
  // The sizes in which Llama 3 70B and Llama 2 7B, which has as many key and value heads as heads, differ.
  check_same(read(with(kLlama3, {{"hidden_size", 8192},
                                 {"intermediate_size", 28672},
                                 {"num_attention_heads", 64},
                                 {"num_hidden_layers", 80}})),
             shipped("llama3-70b"));
  Json llama2 = with(kLlama3, {{"intermediate_size", 11008}, {"max_position_embeddings", 4096}, {"vocab_size", 32000}});
  llama2.erase("num_key_value_heads");
  check_same(read(llama2), shipped("llama2-7b"));
  check_same(read(with(kLlama3, {{"architectures", {"Qwen3ForCausalLM"}},
                                 {"model_type", "qwen3"},
                                 {"head_dim", 128},
                                 {"hidden_size", 5120},
                                 {"intermediate_size", 25600},
                                 {"max_window_layers", 64},
                                 {"num_attention_heads", 64},
                                 {"num_hidden_layers", 64},
                                 {"sliding_window", nullptr},
                                 {"use_sliding_window", false},
                                 {"vocab_size", 151936}}),
                  {.sequence = 4096}),
             shipped("qwen3-32b"));
}

TEST_CASE("the name is the file's, or its folder's", "[workload][hugging-face]") {
  CHECK(read_text(kLlama3).name == "f");
  CHECK(import_hugging_face(kLlama3, "models/Llama-3-8B/config.json", {}).name == "Llama-3-8B");
  CHECK(import_hugging_face(kLlama3, "config.json", {}).name == "llama");
}

double parameters_of(const Json& config) { return totals_of(read(config)).parameters; }

// Parameters of published files, and where they come from: each sum is V h for the embedding (twice without a tied
// head), L times a layer, and the last norm.
TEST_CASE("each family has the parameters of a published model", "[workload][hugging-face]") {
  const Json sizes = Json::parse(R"({"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096})");
  const auto changed = [&](const char* type, const char* changes) {
    Json config = sizes;
    config["model_type"] = type;
    config.update(Json::parse(changes));
    return config;
  };
  // Mistral 7B: 2 * 32000 h + 32 (2 h^2 + 2 * 1024 h + 3 * 14336 h + 2 h) + h, h = 4096
  CHECK(parameters_of(changed("mistral", "{}")) == 7241732096);
  // Qwen2 7B: biases of queries, keys and values, 3584 + 2 * 512
  CHECK(parameters_of(changed("qwen2", R"({"hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
      "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064})")) == 7615616512);
  // Gemma 2B: a tied head, one key and value head of 256, hidden_act as the first files have it
  CHECK(parameters_of(changed("gemma", R"({"hidden_size": 2048, "intermediate_size": 16384, "num_attention_heads": 8,
      "num_hidden_layers": 18, "num_key_value_heads": 1, "vocab_size": 256000, "head_dim": 256,
      "hidden_act": "gelu"})")) == 2506172416);
  // Phi-3 mini
  CHECK(parameters_of(changed("phi3", R"({"hidden_size": 3072, "intermediate_size": 8192, "num_key_value_heads": 32,
      "vocab_size": 32064})")) == 3821079552);
  // GPT-NeoX 20B: 12 h^2 + 13 h a layer, h = 6144; both tables
  CHECK(parameters_of(changed("gpt_neox", R"({"hidden_size": 6144, "intermediate_size": 24576,
      "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432, "rotary_pct": 0.25})")) == 20554567680);
}

// Numbers of parameters as transformers counts them, a tied table once. Sizes are those of the published files.
TEST_CASE("families since Llama have the parameters of a published model", "[workload][hugging-face]") {
  const auto parameters = [](const char* config) { return parameters_of(Json::parse(config)); };
  // Gemma 2 2B: 256000 h + 26 (2 h (2048 + 1024) + 3 * 9216 h + 4 h) + h, h = 2304
  CHECK(parameters(R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "head_dim": 256,
      "num_attention_heads": 8, "num_key_value_heads": 4, "num_hidden_layers": 26, "vocab_size": 256000,
      "max_position_embeddings": 8192})") == 2614341888);
  // Gemma 3 1B: 262144 h + 26 (2 h (1024 + 256) + 3 * 6912 h + 4 h + 2 * 256) + h, h = 1152
  CHECK(parameters(R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "head_dim": 256,
      "num_attention_heads": 4, "num_key_value_heads": 1, "num_hidden_layers": 26, "vocab_size": 262144,
      "sliding_window": 512, "max_position_embeddings": 32768})") == 999885952);
  // SmolLM3 3B: 128256 h + 36 (2 h (h + 512) + 3 * 11008 h + 2 h) + h, h = 2048
  CHECK(parameters(R"({"model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008,
      "num_attention_heads": 16, "num_key_value_heads": 4, "num_hidden_layers": 36, "vocab_size": 128256,
      "max_position_embeddings": 65536})") == 3075098624);
  // OPT 125M: (50272 + 2050) h + 12 (12 h^2 + 13 h) + 2 h, h = 768
  CHECK(parameters(R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_attention_heads": 12,
      "num_hidden_layers": 12, "vocab_size": 50272, "max_position_embeddings": 2048})") == 125239296);
  // Phi-2: 51200 (2 h + 1) + 32 (12 h^2 + 11 h) + 2 h, h = 2560
  CHECK(parameters(R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32,
      "num_hidden_layers": 32, "vocab_size": 51200, "partial_rotary_factor": 0.4,
      "max_position_embeddings": 2048})") == 2779683840);
  // Falcon 7B: 65024 h + 32 (2 h^2 + 2 * 64 h + 8 h^2 + 2 h) + 2 h, h = 4544: one key and value head, one norm
  CHECK(parameters(R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32,
      "vocab_size": 65024, "max_position_embeddings": 2048})") == 6921720704);
  // Falcon 40B: 65024 h + 60 (2 h^2 + 2 * 512 h + 8 h^2 + 4 h) + 2 h, h = 8192: eight of them, a norm for each part
  CHECK(parameters(R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8,
      "num_hidden_layers": 60, "vocab_size": 65024, "new_decoder_architecture": true,
      "max_position_embeddings": 2048})") == 41303293952);
  // StarCoder2 7B: 49152 h + 32 (2 h^2 + 2 * 512 h + 8 h^2 + 2 h + 2 * 512 + 5 h + 4 h) + 2 h, h = 4608
  CHECK(parameters(R"({"model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432,
      "num_attention_heads": 36, "num_key_value_heads": 4, "num_hidden_layers": 32, "vocab_size": 49152,
      "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 16384})") == 7173923840);
  // StableLM 3B: 2 * 50304 h + 32 (4 h^2 + 3 * 6912 h + 4 h) + 2 h, h = 2560
  CHECK(parameters(R"({"model_type": "stablelm", "hidden_size": 2560, "intermediate_size": 6912,
      "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 32, "vocab_size": 50304,
      "max_position_embeddings": 4096})") == 2795443200);
  // Kimi K2: 2 * 163840 h + 61 layers of latent attention, a dense one first, then 384 experts and a shared one
  const double h = 7168, attention = h * 1536 + 1536 + 1536 * 64 * 192 + h * 576 + 512 + 512 * 64 * 256 + 64 * 128 * h;
  CHECK(parameters(R"({"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432,
      "moe_intermediate_size": 2048, "num_attention_heads": 64, "num_hidden_layers": 61, "n_routed_experts": 384,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
      "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "vocab_size": 163840, "max_position_embeddings": 131072})") ==
        2 * 163840 * h + 61 * (attention + 2 * h) + 3 * 18432 * h + 60 * (385 * 3 * 2048 * h + 384 * h + 384) + h);
  // GLM-4.5 Air without the layer that predicts further: biases of queries, keys and values
  const double g = 4096, grouped = g * (96 + 16) * 128 + (96 + 16) * 128 + 96 * 128 * g;
  CHECK(parameters(R"({"model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944,
      "moe_intermediate_size": 1408, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
      "num_hidden_layers": 46, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
      "first_k_dense_replace": 1, "attention_bias": true, "vocab_size": 151552,
      "max_position_embeddings": 131072})") ==
        2 * 151552 * g + 46 * (grouped + 2 * g) + 3 * 10944 * g + 45 * (129 * 3 * 1408 * g + 128 * g + 128) + g);
}

// As above, of single laboratories: Llama's block under other names of keys.
TEST_CASE("decoders of single laboratories have the parameters of a published model", "[workload][hugging-face]") {
  const auto parameters = [](const char* config) { return parameters_of(Json::parse(config)); };
  // InternLM2 7B: 2 * 92544 h + 32 (2 h^2 + 2 * 1024 h + 3 * 14336 h + 2 h) + h, h = 4096
  CHECK(parameters(R"({"model_type": "internlm2", "hidden_size": 4096, "intermediate_size": 14336, "bias": false,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 92544,
      "max_position_embeddings": 32768})") == 7737708544);
  // Baichuan2 7B: 2 * 125696 h + 32 (4 h^2 + 3 * 11008 h + 2 h) + h, h = 4096
  CHECK(parameters(R"({"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
      "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 125696, "model_max_length": 4096,
      "max_position_embeddings": 4096})") == 7505973248);
  // ChatGLM3 6B: 2 * 65024 h + 28 (2 h^2 + 2 * 256 h + (4096 + 512) + 3 * 13696 h + 2 h) + h, h = 4096
  CHECK(parameters(R"({"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696, "kv_channels": 128,
      "num_attention_heads": 32, "num_layers": 28, "multi_query_attention": true, "multi_query_group_num": 2,
      "add_qkv_bias": true, "padded_vocab_size": 65024, "seq_length": 8192})") == 6243584000);
  // GLM-4 9B of 2025, four norms a layer: 2 * 151552 h + 40 (2 h^2 + 2 * 256 h + h + 512 + 3 * 13696 h + 4 h) + h
  CHECK(parameters(R"({"model_type": "glm4", "hidden_size": 4096, "intermediate_size": 13696, "head_dim": 128,
      "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2, "vocab_size": 151552,
      "attention_bias": true, "max_position_embeddings": 32768})") == 9400279040);
  // ERNIE 4.5 0.3B: 103424 h + 18 (2 * 2048 h + 2 * 256 h + 3 * 3072 h + 2 h) + h, h = 1024
  CHECK(parameters(R"({"model_type": "ernie4_5", "hidden_size": 1024, "intermediate_size": 3072, "head_dim": 128,
      "num_attention_heads": 16, "num_hidden_layers": 18, "num_key_value_heads": 2, "vocab_size": 103424,
      "max_position_embeddings": 131072})") == 360748032);
  // Hunyuan 7B: 128167 h + 32 (2 h^2 + 2 * 1024 h + 3 * 14336 h + 2 h + 2 * 128) + h, h = 4096
  CHECK(parameters(R"({"model_type": "hunyuan_v1_dense", "hidden_size": 4096, "intermediate_size": 14336,
      "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "vocab_size": 128167, "max_position_embeddings": 32768, "tie_word_embeddings": true})") == 7504568320);
  // GPT-J 6B: 50400 (2 h + 1) + 28 (12 h^2 + 7 h) + 2 h, h = 4096: biases of the feed-forward part alone
  CHECK(parameters(R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048,
      "rotary_dim": 64, "vocab_size": 50400})") == 6050882784);
  // StarCoder 15B: (49152 + 8192) h + 40 (2 h^2 + 2 * 128 h + 8 h^2 + 2 * 128 + 11 h) + 2 h, h = 6144
  CHECK(parameters(R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576,
      "n_positions": 8192, "vocab_size": 49152, "multi_query": true, "activation_function": "gelu"})") == 15517456384);
  // BLOOM 7B: 250880 h + 30 (12 h^2 + 13 h) + 4 h, h = 4096: a norm behind the embedding
  CHECK(parameters(R"({"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880,
      "seq_length": 2048})") == 7069016064);
  // MPT 7B: 50432 h + 32 (12 h^2 + 2 h) + h, h = 4096: no bias, in norms neither
  CHECK(parameters(R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "max_seq_len": 2048,
      "vocab_size": 50432, "no_bias": true, "attn_config": {"alibi": true}})") == 6649286656);
  // Command R7B: 256000 h + 32 (2 h^2 + 2 * 1024 h + 3 * 14336 h + h) + h, h = 4096: one norm a layer
  CHECK(parameters(R"({"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336, "head_dim": 128,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 256000,
      "max_position_embeddings": 8192})") == 8028033024);
  // RoBERTa large: (50265 + 514 + 1) h + 24 (12 h^2 + 13 h) + 2 h + h^2 + 3 h + 50265, h = 1024
  CHECK(parameters(R"({"model_type": "roberta", "hidden_size": 1024, "intermediate_size": 4096,
      "num_attention_heads": 16, "num_hidden_layers": 24, "vocab_size": 50265, "max_position_embeddings": 514,
      "type_vocab_size": 1, "architectures": ["RobertaForMaskedLM"]})") == 355412057);
}

TEST_CASE("mixtures since Mixtral have the parameters of a published model", "[workload][hugging-face]") {
  const auto parameters = [](const char* config) { return parameters_of(Json::parse(config)); };
  // Phi-3.5 MoE: biases of attention, of norms and of the head
  const double h = 4096;
  CHECK(parameters(R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "attention_bias": true,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 16,
      "num_experts_per_tok": 2, "lm_head_bias": true, "vocab_size": 32064, "max_position_embeddings": 131072})") ==
        32064 * (2 * h + 1) + 32 * (2 * h * h + 2 * 1024 * h + 2 * h + 2 * 1024 + 16 * 3 * 6400 * h + 16 * h + 4 * h) +
            2 * h);
  // DBRX: norms without a bias
  const double b = 6144;
  CHECK(parameters(R"({"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "max_seq_len": 32768,
      "vocab_size": 100352, "attn_config": {"kv_n_heads": 8},
      "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})") ==
        2 * 100352 * b + 40 * (2 * b * b + 2 * 1024 * b + 16 * 3 * 10752 * b + 16 * b + 2 * b) + b);
  // dots.llm1
  CHECK(parameters(R"({"model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
      "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "n_routed_experts": 128, "n_shared_experts": 2,
      "num_experts_per_tok": 6, "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 32,
      "vocab_size": 152064, "max_position_embeddings": 32768})") ==
        2 * 152064 * h + 62 * (4 * h * h + 2 * 128 + 2 * h) + 3 * 10944 * h +
            61 * (130 * 3 * 1408 * h + 128 * h + 128) + h);
  // Hunyuan A13B: lists of a number for each layer
  Json hunyuan = Json::parse(R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
      "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_experts": 64,
      "vocab_size": 128167, "max_position_embeddings": 32768, "tie_word_embeddings": true})");
  hunyuan["moe_topk"] = std::vector<int>(32, 8);
  hunyuan["moe_intermediate_size"] = std::vector<int>(32, 3072);
  hunyuan["num_shared_expert"] = std::vector<int>(32, 1);
  CHECK(parameters_of(hunyuan) ==
        128167 * h + 32 * (2 * h * h + 2 * 1024 * h + 2 * 128 + 2 * h + 65 * 3 * 3072 * h + 64 * h) + h);
  hunyuan["moe_topk"][3] = 4;
  CHECK_THAT(test::error_of([&] { read(hunyuan); }),
             Catch::Contains("moe_topk: ") && Catch::Contains("layers that differ"));
  // Llama 4 Maverick: every other layer has 128 experts and a shared one, the others are larger
  const double l = 5120;
  CHECK(parameters(R"({"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2, "head_dim": 128, "num_attention_heads": 40,
      "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 1,
      "vocab_size": 202048, "max_position_embeddings": 8192})") ==
        2 * 202048 * l + 48 * (2 * l * l + 2 * 1024 * l + 2 * l) + 24 * (129 * 3 * 8192 * l + 128 * l) +
            24 * 3 * 16384 * l + l);
}

TEST_CASE("Mamba-2's file gives the parameters of the shipped workload", "[workload][hugging-face]") {
  const Json config = Json::parse(R"({"model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64,
      "state_size": 128, "head_dim": 64, "num_heads": 80, "n_groups": 1, "vocab_size": 50288,
      "tie_word_embeddings": true})");
  CHECK(totals_of(read(config, {.sequence = 2048})).parameters == totals_of(shipped("mamba2-2.7b")).parameters);
  CHECK_THAT(test::error_of([&] { read(config); }), Catch::Contains("no --seq"));
  Json odd = config;
  odd["num_heads"] = 81;
  CHECK_THAT(test::error_of([&] { read(odd, {.sequence = 8}); }), Catch::Contains("num_heads: 81 heads of 64"));
}

TEST_CASE("layers of Llama 4 see their chunk, but for every fourth, which has no positions",
          "[workload][hugging-face]") {
  const ModelGraph model = read(Json::parse(R"({"model_type": "llama4_text", "hidden_size": 16,
      "intermediate_size": 8, "intermediate_size_mlp": 24, "head_dim": 4, "num_attention_heads": 4,
      "num_hidden_layers": 4, "num_key_value_heads": 2, "num_local_experts": 2, "vocab_size": 10,
      "attention_chunk_size": 3, "max_position_embeddings": 8})"));
  CHECK(test::find_operator(model, "layer.0.attention").forward.flops.value == 64 * 21); // as a window of three
  CHECK(test::find_operator(model, "layer.3.attention").forward.flops.value == 64 * 36);
  CHECK(std::none_of(model.operators.begin(), model.operators.end(),
                     [](const Operator& op) { return op.name == "layer.3.rotary"; }));
}

TEST_CASE("what is published with a nested object is refused at its key", "[workload][hugging-face]") {
  const auto error = [](const char* attention) {
    Json config = {{"model_type", "mpt"}, {"d_model", 16},    {"n_layers", 1},
                   {"n_heads", 4},        {"vocab_size", 10}, {"max_seq_len", 8}};
    config["attn_config"] = Json::parse(attention);
    return test::error_of([&] { read(config); });
  };
  CHECK_THAT(error("[]"), Catch::Contains("attn_config"));
  CHECK_THAT(error(R"({"attn_type": "grouped_query_attention", "kv_n_heads": 3})"),
             Catch::Contains("attn_config.kv_n_heads"));
  CHECK_THAT(error(R"({"attn_type": "linear"})"), Catch::Contains("attn_config.attn_type"));
}

const Json kSmall = Json::parse(R"({"model_type": "llama", "hidden_size": 16, "intermediate_size": 24,
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 10,
    "max_position_embeddings": 8})");

Json small(const Json& changes) {
  Json config = kSmall;
  config.update(changes);
  return config;
}

TEST_CASE("GPT-NeoX adds both parts to the layer's input and turns a quarter of each head",
          "[workload][hugging-face]") {
  const Json config = {{"model_type", "gpt_neox"}, {"hidden_size", 32},           {"intermediate_size", 64},
                       {"vocab_size", 10},         {"num_attention_heads", 4},    {"num_hidden_layers", 1},
                       {"hidden_act", "gelu"},     {"max_position_embeddings", 8}};
  const ModelGraph model = read(config);
  const auto index = [&](const std::string& name) {
    return static_cast<OperatorId>(&test::find_operator(model, "layer.0." + name) - model.operators.data());
  };
  CHECK(model.predecessors[index("norm2")] == std::vector<OperatorId>{0}); // the embedding
  CHECK(model.predecessors[index("add")] == std::vector<OperatorId>{0, index("projection"), index("contract")});
  // 8 positions, queries and keys of 4 heads, 2 of 8 features each: 128 elements, 3 operations for each.
  CHECK(model.operators[index("rotary")].forward.flops == Flops{3 * 8 * (4 + 4) * 2});
  Json serial = config;
  serial["use_parallel_residual"] = false;
  serial["hidden_dropout"] = 0.1;
  serial["rope_parameters"] = {{"rope_theta", 10000}, {"partial_rotary_factor", 0.5}};
  const ModelGraph other = read(serial);
  CHECK(test::find_operator(other, "layer.0.add2").forward.flops == Flops{8 * 32});
  CHECK(test::find_operator(other, "layer.0.drop2").kind == KernelKind::elementwise);
  CHECK(test::find_operator(other, "layer.0.rotary").forward.flops == Flops{3 * 8 * (4 + 4) * 4});
}

TEST_CASE("Gemma 2 has a norm behind each part, and a window in every other layer", "[workload][hugging-face]") {
  const ModelGraph model = read(small({{"model_type", "gemma2"}, {"head_dim", 4}, {"sliding_window", 3}}));
  const auto index = [&](const std::string& name) {
    return static_cast<OperatorId>(&test::find_operator(model, name) - model.operators.data());
  };
  CHECK(model.predecessors[index("layer.1.attention_norm")] == std::vector{index("layer.1.projection")});
  CHECK(model.predecessors[index("layer.1.add1")] ==
        std::vector{index("layer.0.add2"), index("layer.1.attention_norm")});
  CHECK(model.predecessors[index("layer.1.add2")] ==
        std::vector{index("layer.1.add1"), index("layer.1.feed_forward_norm")});
  // Of 8 queries each sees all before it, 36 pairs, or three keys at most, 1 + 2 + 6 * 3; 64 FLOPs a pair as below.
  CHECK(test::find_operator(model, "layer.0.attention").forward.flops.value == 64 * 21);
  CHECK(test::find_operator(model, "layer.1.attention").forward.flops.value == 64 * 36);
}

TEST_CASE("both parts of Phi read one norm, and its head has a bias", "[workload][hugging-face]") {
  const ModelGraph model = read(small({{"model_type", "phi"}, {"partial_rotary_factor", 0.5}}));
  const auto index = [&](const std::string& name) {
    return static_cast<OperatorId>(&test::find_operator(model, name) - model.operators.data());
  };
  CHECK(model.predecessors[index("layer.0.qkv")] == std::vector{index("layer.0.norm1")});
  CHECK(model.predecessors[index("layer.0.expand")] == std::vector{index("layer.0.norm1")});
  CHECK(test::find_operator(model, "head").parameters == 10 * 16 + 10);
}

TEST_CASE("every fourth layer of SmolLM3 has no positions, or those that the file lists", "[workload][hugging-face]") {
  const auto turning = [](const Json& changes) {
    Json config = small({{"model_type", "smollm3"}, {"num_hidden_layers", 4}});
    config.update(changes);
    const ModelGraph model = read(config);
    std::string layers;
    for (const Operator& op : model.operators) {
      layers += op.name.ends_with(".rotary") ? op.name.substr(6, 1) : "";
    }
    return layers;
  };
  CHECK(turning(Json::object()) == "012");
  CHECK(turning({{"no_rope_layers", {0, 1, 0, 1}}}) == "13");
  CHECK_THAT(test::error_of([&] { turning({{"no_rope_layers", {1, 2, 0, 1}}}); }), Catch::Contains("0 or 1"));
}

TEST_CASE("what a family has that is not modelled is refused where its file says it", "[workload][hugging-face]") {
  const auto error = [](const Json& changes) { return test::error_of([&] { read(small(changes)); }); };
  CHECK_THAT(error({{"model_type", "falcon"}, {"alibi", true}}), Catch::Contains("biases of attention by distance"));
  CHECK_THAT(error({{"model_type", "phi"}, {"qk_layernorm", true}}), Catch::Contains("norms of queries and keys"));
  CHECK_THAT(error({{"model_type", "opt"}, {"ffn_dim", 32}, {"do_layer_norm_before", false}}),
             Catch::Contains("norms stand behind both parts"));
  CHECK_THAT(error({{"model_type", "opt"}, {"ffn_dim", 32}, {"word_embed_proj_dim", 8}}), Catch::Contains("the same"));
  CHECK_THAT(error({{"model_type", "gemma3"}}), Catch::Contains("text_config alone is a gemma3_text"));
  CHECK_THAT(error({{"model_type", "opt"}, {"ffn_dim", 32}, {"layer_norm_elementwise_affine", false}}),
             Catch::Contains("norms have no parameters"));
  CHECK_THAT(error({{"model_type", "glm4_moe"},
                    {"n_routed_experts", 4},
                    {"first_k_dense_replace", 1},
                    {"moe_intermediate_size", 8}}),
             Catch::Contains("num_experts_per_tok"));
}

TEST_CASE("attention is found whatever kernels it has", "[workload]") {
  CHECK(has_attention(read(small({{"model_type", "llama"}}))));
  CHECK(has_attention(shipped("transformer-xl-base"))); // products, a softmax, products
  CHECK(has_attention(shipped("mamba2-2.7b")));         // a state space stands in its place
  CHECK_FALSE(has_attention(shipped("resnet50")));
  CHECK_FALSE(has_attention(shipped("ncf-movielens-1m")));
  CHECK_FALSE(has_attention(shipped("shufflenetv2-cifar100")));
}

// FLOPs of attention with heads of 4: 2 * pairs * (16 + 16).
double pairs_of(const Json& config) {
  return test::find_operator(read(config), "layer.1.attention").forward.flops.value / 64;
}

TEST_CASE("a window of all layers is modelled, whichever keys say it", "[workload][hugging-face]") {
  const double all = 36, three = 1 + 2 + 6 * 3; // 8 queries
  CHECK(pairs_of(small({{"model_type", "mistral"}, {"sliding_window", 3}})) == three);
  CHECK(pairs_of(small({{"model_type", "mistral"}, {"sliding_window", nullptr}})) == all);
  CHECK(pairs_of(small({{"model_type", "phi3"}, {"sliding_window", 3}})) == three);
  // Mistral's default is 4096: of 4098 queries two see one and two keys less than all before them.
  CHECK(pairs_of(small({{"model_type", "mistral"}, {"max_position_embeddings", 4098}})) == 4098. * 4099 / 2 - 1 - 2);
  const auto qwen = [](bool on, int from) {
    return small(
        {{"model_type", "qwen2"}, {"sliding_window", 3}, {"use_sliding_window", on}, {"max_window_layers", from}});
  };
  CHECK(pairs_of(qwen(false, 0)) == all);
  CHECK(pairs_of(qwen(true, 0)) == three);
  CHECK(pairs_of(qwen(true, 2)) == all); // of two layers none comes after the second
  Json listed = qwen(false, 2);
  listed["layer_types"] = {"sliding_attention", "sliding_attention"};
  CHECK(pairs_of(listed) == three);
  listed["layer_types"] = {"full_attention", "full_attention"};
  CHECK(pairs_of(listed) == all);
}

TEST_CASE("layers may differ in their windows", "[workload][hugging-face]") {
  const double all = 36, three = 1 + 2 + 6 * 3; // 8 queries
  const auto pairs = [](const Json& config) {
    const ModelGraph model = read(config);
    std::vector<double> result;
    for (const char* name : {"layer.0.attention", "layer.1.attention"}) {
      result.push_back(test::find_operator(model, name).forward.flops.value / 64);
    }
    return result;
  };
  CHECK(
      pairs(small(
          {{"model_type", "qwen2"}, {"sliding_window", 3}, {"use_sliding_window", true}, {"max_window_layers", 1}})) ==
      std::vector{all, three});
  CHECK(pairs(small({{"model_type", "qwen3"},
                     {"head_dim", 4},
                     {"sliding_window", 3},
                     {"layer_types", {"sliding_attention", "full_attention"}}})) == std::vector{three, all});
  // Without a list of types every other layer of gpt-oss has the window, the first one too.
  CHECK(pairs(small({{"model_type", "gpt_oss"}, {"head_dim", 4}, {"sliding_window", 3}})) == std::vector{three, all});
}

// As published with Mixtral 8x7B v0.1; the other sizes of its family are those of the model with the same name here.
constexpr const char* kMixtral = R"({
  "architectures": ["MixtralForCausalLM"],
  "attention_dropout": 0.0,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "max_position_embeddings": 32768,
  "model_type": "mixtral",
  "num_attention_heads": 32,
  "num_experts_per_tok": 2,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "num_local_experts": 8,
  "output_router_logits": false,
  "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.02,
  "sliding_window": null,
  "tie_word_embeddings": false,
  "vocab_size": 32000
})";

// As published with DeepSeek-V3.
constexpr const char* kDeepSeekV3 = R"({
  "architectures": ["DeepseekV3ForCausalLM"],
  "attention_bias": false,
  "aux_loss_alpha": 0.001,
  "ep_size": 1,
  "first_k_dense_replace": 3,
  "hidden_act": "silu",
  "hidden_size": 7168,
  "intermediate_size": 18432,
  "kv_lora_rank": 512,
  "max_position_embeddings": 163840,
  "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048,
  "moe_layer_freq": 1,
  "n_group": 8,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "norm_topk_prob": true,
  "num_attention_heads": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 61,
  "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8"},
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "seq_aux": true,
  "tie_word_embeddings": false,
  "topk_group": 4,
  "topk_method": "noaux_tc",
  "v_head_dim": 128,
  "vocab_size": 129280
})";

TEST_CASE("a published config.json with experts gives the graph of the shipped workload", "[workload][hugging-face]") {
  const ImportOptions sequence{.sequence = 4096};
  check_same(read_text(kMixtral, sequence), shipped("mixtral-8x7b"));
  check_same(read(with(kMixtral, {{"hidden_size", 6144},
                                  {"intermediate_size", 16384},
                                  {"num_attention_heads", 48},
                                  {"num_hidden_layers", 56}}),
                  sequence),
             shipped("mixtral-8x22b"));
  check_same(read(with(kLlama3, {{"architectures", {"Qwen3MoeForCausalLM"}},
                                 {"model_type", "qwen3_moe"},
                                 {"decoder_sparse_step", 1},
                                 {"head_dim", 128},
                                 {"hidden_size", 2048},
                                 {"intermediate_size", 6144},
                                 {"max_window_layers", 48},
                                 {"mlp_only_layers", Json::array()},
                                 {"moe_intermediate_size", 768},
                                 {"num_experts", 128},
                                 {"num_experts_per_tok", 8},
                                 {"num_hidden_layers", 48},
                                 {"num_key_value_heads", 4},
                                 {"sliding_window", nullptr},
                                 {"use_sliding_window", false},
                                 {"vocab_size", 151936}}),
                  sequence),
             shipped("qwen3-30b-a3b"));
  check_same(read(with(kLlama3, {{"architectures", {"GptOssForCausalLM"}},
                                 {"model_type", "gpt_oss"},
                                 {"attention_bias", true},
                                 {"experts_per_token", 4},
                                 {"head_dim", 64},
                                 {"hidden_size", 2880},
                                 {"intermediate_size", 2880},
                                 {"num_attention_heads", 64},
                                 {"num_experts_per_tok", 4},
                                 {"num_hidden_layers", 36},
                                 {"num_local_experts", 128},
                                 {"quantization_config", {{"quant_method", "mxfp4"}}},
                                 {"sliding_window", 128},
                                 {"vocab_size", 201088}}),
                  sequence),
             shipped("gpt-oss-120b"));
  check_same(read(with(kLlama3, {{"architectures", {"GptOssForCausalLM"}},
                                 {"model_type", "gpt_oss"},
                                 {"head_dim", 64},
                                 {"hidden_size", 2880},
                                 {"intermediate_size", 2880},
                                 {"num_attention_heads", 64},
                                 {"attention_bias", true},
                                 {"num_hidden_layers", 24},
                                 {"num_local_experts", 32},
                                 {"sliding_window", 128},
                                 {"vocab_size", 201088}}),
                  sequence),
             shipped("gpt-oss-20b"));
  check_same(read_text(kDeepSeekV3, sequence), shipped("deepseek-v3-mtp"));
  check_same(read_text(kDeepSeekV3, {.sequence = 4096, .mtp_layers = 0}), shipped("deepseek-v3"));
}

// README of DeepSeek-V3: "685B, which includes 671B of the Main Model weights and 14B of the Multi-Token Prediction
// (MTP) Module weights"; README_WEIGHTS: 11.5B of these are unique, beside copies of the embedding and the head of 0.9B
// each, which a framework shares with the main model.
TEST_CASE("layers that predict further tokens are those of the file, or fewer", "[workload][hugging-face]") {
  const auto model_with = [](std::optional<int> layers, const Json& changes = Json::object()) {
    return read(with(kDeepSeekV3, changes), {.sequence = 4096, .mtp_layers = layers});
  };
  const auto parameters = [&](std::optional<int> layers, const Json& changes = Json::object()) {
    return totals_of(model_with(layers, changes)).parameters;
  };
  constexpr double kTable = 129280. * 7168;
  CHECK(parameters(0) == Approx(671e9).epsilon(1e-3));
  CHECK(parameters({}) - parameters(0) == Approx(11.5e9).epsilon(0.01));
  CHECK(parameters({}) + 2 * kTable == Approx(685e9).epsilon(1e-3));
  CHECK(parameters(1) == parameters({}));
  // Each layer more is of the same kind and reads the one before it.
  CHECK(parameters({}, {{"num_nextn_predict_layers", 3}}) - parameters(0) == 3 * (parameters(1) - parameters(0)));
  CHECK(parameters(1, {{"num_nextn_predict_layers", 3}}) == parameters(1));
  CHECK(parameters({}, {{"num_nextn_predict_layers", 0}}) == parameters(0));

  CHECK(
      model_with({}).description ==
      "deepseek_v3 of Hugging Face, 4096 tokens, with its layer that predicts a further token (11610.07 M parameters; "
      "embedding and head are the model's, and not counted again); keys not read: quantization_config");
  CHECK(model_with(0).description == "deepseek_v3 of Hugging Face, 4096 tokens, without its layer that predicts a "
                                     "further token; keys not read: quantization_config");
  CHECK_THAT(model_with(2, {{"num_nextn_predict_layers", 3}}).description,
             Catch::Contains("with 2 of its 3 layers that predict further tokens (23220.14 M parameters"));
  CHECK_THAT(test::error_of([&] { model_with(2); }),
             Catch::Contains("num_nextn_predict_layers: 2 layers that predict further tokens are asked for, of which "
                             "there are 1; allowed: 0 to as many"));
  CHECK_THAT(test::error_of([&] {
               model_with({}, {{"num_nextn_predict_layers", -1}});
             }),
             Catch::Contains("num_nextn_predict_layers"));
  CHECK_THAT(test::error_of([] { read_text(kLlama3, {.mtp_layers = 1}); }), Catch::Contains("of which there are 0"));
  CHECK(totals_of(read_text(kLlama3, {.mtp_layers = 0})).parameters == totals_of(read_text(kLlama3)).parameters);
  CHECK_THAT(test::error_of([] { load_model(test::source_dir() / "workloads/deepseek-v3.yaml", {.mtp_layers = 0}); }),
             Catch::Contains("files of the format 'yaml' say it themselves; allowed: no 'mtp_layers'"));
}

// As published with Nemotron 3 Nano, but for what its own code reads alone.
constexpr const char* kNemotron3 = R"({
  "architectures": ["NemotronHForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "chunk_size": 128,
  "conv_kernel": 4,
  "expand": 2,
  "head_dim": 128,
  "hidden_dropout": 0.0,
  "hidden_size": 2688,
  "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
  "intermediate_size": 1856,
  "mamba_head_dim": 64,
  "mamba_hidden_act": "silu",
  "mamba_num_heads": 64,
  "mamba_proj_bias": false,
  "mamba_ssm_cache_dtype": "float32",
  "max_position_embeddings": 262144,
  "mlp_bias": false,
  "mlp_hidden_act": "relu2",
  "model_type": "nemotron_h",
  "moe_intermediate_size": 1856,
  "moe_shared_expert_intermediate_size": 3712,
  "n_group": 1,
  "n_groups": 8,
  "n_routed_experts": 128,
  "n_shared_experts": 1,
  "norm_eps": 1e-05,
  "num_attention_heads": 32,
  "num_experts_per_tok": 6,
  "num_hidden_layers": 52,
  "num_key_value_heads": 2,
  "partial_rotary_factor": 1.0,
  "sliding_window": null,
  "ssm_state_size": 128,
  "tie_word_embeddings": false,
  "time_step_floor": 0.0001,
  "topk_group": 1,
  "use_bias": false,
  "use_conv_bias": true,
  "use_mamba_kernels": true,
  "vocab_size": 131072
})";

// Super's experts see 1,024 of 4,096 features, here 16 of 64: two products of 64 x 16 in front and behind, and experts
// of two of 16 x 32 instead of 64 x 32.
TEST_CASE("experts of a hybrid may see a token in fewer features", "[workload][hugging-face]") {
  const auto parameters = [](const std::string& latent) {
    return totals_of(read_text(R"({"model_type": "nemotron_h", "hybrid_override_pattern": "E", "num_hidden_layers": 1,
      "hidden_size": 64, "intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "vocab_size": 128, "n_routed_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 48, "n_shared_experts": 1)" +
                                   latent + "}",
                               {.sequence = 32}))
        .parameters;
  };
  const double whole = parameters(""), narrow = parameters(R"(, "moe_latent_size": 16)");
  CHECK(parameters(R"(, "moe_latent_size": null)") == whole);
  CHECK(narrow - whole == 2 * 64 * 16 + 8 * 2 * (16 - 64) * 32);
}

TEST_CASE("a hybrid's pattern says what each layer is", "[workload][hugging-face]") {
  const ImportOptions sequence{.sequence = 8192};
  check_same(read_text(kNemotron3, sequence), shipped("nemotron-3-nano"));
  CHECK(read_text(kNemotron3, sequence).description == "nemotron_h of Hugging Face, 8192 tokens");
  // Nemotron-H 4B (NVIDIA 2025): M 3072 * (2 * 7168 + 2 * 8 * 128 + 112) + 5 * (7168 + 2048) + 3 * 112 + 7168 + 7168 *
  // 3072;
  // * 3072 * 128 * (2 * 32 + 2 * 8); - 2 * 3072 * 12288; each with a norm, 24, 4 and 24 times; two tables and a norm.
  const double h = 3072, inner = 7168, vectors = 2048;
  const double mixer = h * (2 * inner + vectors + 112) + 5 * (inner + vectors) + 3 * 112 + inner + inner * h + h;
  const Json dense =
      with(kNemotron3, {{"hybrid_override_pattern", "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"},
                        {"hidden_size", 3072},
                        {"intermediate_size", 12288},
                        {"mamba_num_heads", 112},
                        {"n_routed_experts", nullptr},
                        {"num_key_value_heads", 8}});
  CHECK(totals_of(read(dense, sequence)).parameters ==
        24 * mixer + 4 * (h * 128 * (2 * 32 + 2 * 8) + h) + 24 * (2 * h * 12288 + h) + 2 * 131072 * h + h);
}

TEST_CASE("a hybrid's pattern is refused where it says something else", "[workload][hugging-face]") {
  const auto refused = [](const Json& changes, const std::string& expected) {
    CHECK_THAT(test::error_of([&] { read(with(kNemotron3, changes), {.sequence = 8}); }), Catch::Contains(expected));
  };
  refused({{"num_hidden_layers", 51}},
          "hybrid_override_pattern: has 52 letters; allowed: one for each of the 51 layers");
  refused({{"num_hidden_layers", 2}, {"hybrid_override_pattern", "MQ"}},
          "hybrid_override_pattern: has 'Q'; allowed: M, *, - and E");
  refused({{"hybrid_override_pattern", nullptr}}, "missing key 'hybrid_override_pattern'");
  refused({{"n_groups", 7}}, "n_groups: 7 does not divide the 64 heads of a state space");
  refused({{"mamba_hidden_act", "gelu"}}, "mamba_hidden_act: is 'gelu'; allowed: silu");
  refused({{"n_routed_experts", nullptr}}, "n_routed_experts");
}

// As published with bert-large-uncased, T5-large, and vit-large-patch16-224, which has labels of a thousand classes.
const Json kBert = Json::parse(R"({"architectures": ["BertForPreTraining"], "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 1024,
    "initializer_range": 0.02, "intermediate_size": 4096, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
    "model_type": "bert", "num_attention_heads": 16, "num_hidden_layers": 24, "pad_token_id": 0,
    "position_embedding_type": "absolute", "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522})");
const Json kT5 = Json::parse(R"({"architectures": ["T5ForConditionalGeneration"], "d_ff": 4096, "d_kv": 64,
    "d_model": 1024, "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions": 512, "num_heads": 16,
    "num_layers": 24, "output_past": true, "pad_token_id": 0, "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"num_beams": 4}}, "vocab_size": 32128})");

Json vit() {
  Json config = Json::parse(R"({"architectures": ["ViTForImageClassification"], "hidden_act": "gelu",
      "hidden_dropout_prob": 0.0, "hidden_size": 1024, "image_size": 224, "intermediate_size": 4096, "model_type": "vit",
      "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 24, "patch_size": 16, "qkv_bias": true})");
  for (int label = 0; label < 1000; ++label) {
    config["id2label"][std::to_string(label)] = "label";
  }
  return config;
}

TEST_CASE("a published config.json of an encoder gives the graph of the shipped workload", "[workload][hugging-face]") {
  check_same(read(kBert), shipped("bert-large"));
  check_same(read(kT5), shipped("t5-large"));
  check_same(read(vit()), shipped("vit-large"));
  CHECK(read(kT5).description == "t5 of Hugging Face, 512 + 512 tokens");
  CHECK(read(vit()).description == "vit of Hugging Face, images of 224 x 224");
}

TEST_CASE("variants of encoders have the published parameters", "[workload][hugging-face]") {
  const auto changed = [](Json config, const char* changes) {
    config.update(Json::parse(changes));
    return config;
  };
  // bert-large-uncased with masked words alone: without the pooler, h^2 + h, and the head of sentences, 2 h + 2.
  CHECK(parameters_of(changed(kBert, R"({"architectures": ["BertForMaskedLM"]})")) ==
        336226108 - (1024 * 1024 + 1024) - (2 * 1024 + 2));
  CHECK(parameters_of(changed(kBert, R"({"architectures": ["BertForMaskedLM"]})")) == 335174458);
  // flan-t5-large: gated, and a head of its own.
  CHECK(parameters_of(changed(kT5, R"({"d_ff": 2816, "feed_forward_proj": "gated-gelu",
      "tie_word_embeddings": false})")) == 783150080);
  // vit-base-patch16-224
  CHECK(parameters_of(changed(vit(), R"({"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
      "num_hidden_layers": 12})")) == 86567656);
}

TEST_CASE("what an encoder's config.json cannot be is refused where it stands", "[workload][hugging-face]") {
  const auto refused = [](Json config, const char* key, const Json& value, const char* expected) {
    INFO(key << " " << value);
    config[key] = value;
    CHECK_THAT(test::error_of([&] { read(config); }), Catch::StartsWith("f.json:1:") && Catch::Contains(expected));
  };
  refused(kBert, "position_embedding_type", "relative_key",
          "is 'relative_key', which is not modelled; allowed: absolute");
  refused(kBert, "num_attention_heads", 15, "hidden_size: 1024 does not split into 15 heads");
  refused(kBert, "architectures", {"BertForQuestionAnswering"}, "allowed: BertForPreTraining, BertForMaskedLM");
  refused(kT5, "feed_forward_proj", "gated-relu", "allowed: relu, gelu, silu, gated-gelu, gated-silu");
  refused(vit(), "patch_size", 15, "15 does not divide an image of 224");
  CHECK_THAT(test::error_of([] { read(vit(), {.sequence = 100}); }),
             Catch::Contains("an image has as many as patches"));
  CHECK_THAT(test::error_of([] { read(kBert, {.sequence = 513}); }), Catch::Contains("longer than the 512 positions"));
  CHECK(read(kT5, {.sequence = 1024}).input_elements == 2048);
}

// Parameters that `model.num_parameters()` of transformers counts.
TEST_CASE("experts beside a shared one, and queries without a short vector, have the published parameters",
          "[workload][hugging-face]") {
  // Qwen1.5-MoE-A2.7B: 60 experts of 1408, a shared one of 5632 with its gate, biases of queries, keys and values.
  const Json qwen = with(kLlama3, {{"architectures", {"Qwen2MoeForCausalLM"}},
                                   {"model_type", "qwen2_moe"},
                                   {"hidden_size", 2048},
                                   {"intermediate_size", 5632},
                                   {"moe_intermediate_size", 1408},
                                   {"shared_expert_intermediate_size", 5632},
                                   {"num_attention_heads", 16},
                                   {"num_experts", 60},
                                   {"num_experts_per_tok", 4},
                                   {"num_hidden_layers", 24},
                                   {"num_key_value_heads", 16},
                                   {"vocab_size", 151936}});
  CHECK(parameters_of(qwen) == 14315784192);
  // DeepSeek-V2-Lite: no q_lora_rank; one dense layer, 64 experts and two that all share.
  const Json lite = with(kDeepSeekV3, {{"architectures", {"DeepseekV2ForCausalLM"}},
                                       {"model_type", "deepseek_v2"},
                                       {"first_k_dense_replace", 1},
                                       {"hidden_size", 2048},
                                       {"intermediate_size", 10944},
                                       {"moe_intermediate_size", 1408},
                                       {"n_routed_experts", 64},
                                       {"n_shared_experts", 2},
                                       {"num_attention_heads", 16},
                                       {"num_experts_per_tok", 6},
                                       {"num_hidden_layers", 27},
                                       {"q_lora_rank", nullptr},
                                       {"vocab_size", 102400}});
  CHECK(parameters_of(lite) == 15706484224);
}

TEST_CASE("which layers have experts follows from the file", "[workload][hugging-face]") {
  const auto sparse = [](const Json& changes) {
    const ModelGraph model = read(small(changes));
    std::vector<int> layers;
    for (const Operator& op : model.operators) {
      if (op.type == "router") {
        layers.push_back(std::stoi(op.name.substr(op.name.find('.') + 1)));
      }
    }
    return layers;
  };
  const Json qwen = {{"model_type", "qwen3_moe"},
                     {"head_dim", 4},
                     {"num_hidden_layers", 5},
                     {"num_experts", 4},
                     {"num_experts_per_tok", 2}};
  const auto changed = [&](const Json& changes) {
    Json config = qwen;
    config.update(changes);
    return config;
  };
  CHECK(sparse(qwen) == std::vector{0, 1, 2, 3, 4});
  CHECK(sparse(changed({{"decoder_sparse_step", 2}})) == std::vector{1, 3});
  CHECK(sparse(changed({{"mlp_only_layers", {0, 3}}})) == std::vector{1, 2, 4});
}

TEST_CASE("biases, tied heads and head widths are as the file says", "[workload][hugging-face]") {
  // Heads of 4: queries 16, keys and values 8 each; a layer 16 * 32 + 16 * 16 + 3 * 16 * 24 + 2 * 16 = 1952.
  const double plain = 2 * 160 + 2 * 1952 + 16;
  CHECK(parameters_of(kSmall) == plain);
  CHECK(parameters_of(small({{"tie_word_embeddings", true}})) == plain - 160);
  CHECK(parameters_of(small({{"attention_bias", true}})) == plain + 2 * (32 + 16));
  CHECK(parameters_of(small({{"mlp_bias", true}})) == plain + 2 * (48 + 16));
  // Heads of 6 add half to what attention has.
  CHECK(parameters_of(small({{"head_dim", 6}})) == plain + 2 * (16 * 16 + 8 * 16));
  // Qwen 3 has a weight for queries and one for keys, and heads of 128 unless the file says otherwise.
  CHECK(parameters_of(small({{"model_type", "qwen3"}, {"head_dim", 4}})) == plain + 2 * (4 + 4));
  CHECK(parameters_of(small({{"model_type", "qwen3"}})) == plain + 2 * (128 + 128) + 2 * (16 * (32 + 16)) * 31);
}

TEST_CASE("a length of sequences may be given, up to what the model has learned", "[workload][hugging-face]") {
  CHECK(read(kSmall).input_elements == 8);
  CHECK(read(kSmall, {.sequence = 5}).input_elements == 5);
  CHECK(read(kSmall, {.sequence = 100}).input_elements == 100); // rotary embeddings have no last position
  Json silent = kSmall;
  silent.erase("max_position_embeddings");
  CHECK(read(silent, {.sequence = 5}).input_elements == 5);
  CHECK_THAT(test::error_of([&] { read(silent); }),
             Catch::Contains("missing key 'max_position_embeddings'") && Catch::Contains("--seq N"));
  CHECK(read_text(kGpt2, {.sequence = 1024}).input_elements == 1024);
  CHECK_THAT(test::error_of([] { read_text(kGpt2, {.sequence = 1025}); }),
             Catch::StartsWith("f.json:15:18: n_positions: the sequence of 1025 is longer than the 1024 positions"));
  CHECK(load_model(test::source_dir() / "workloads/gpt2.yaml", {.sequence = 5}).input_elements == 5);
  CHECK_THAT(test::error_of([] { load_model(test::source_dir() / "workloads/vgg16.yaml", {.sequence = 5}); }),
             Catch::Contains("a length of sequences is given, but a sample has the shape"));
}

TEST_CASE("keys that are not read are named", "[workload][hugging-face]") {
  CHECK(read_text(kLlama3).description == "llama of Hugging Face, 8192 tokens");
  CHECK(read(small({{"unsloth_version", "2025.1"}, {"use_mrope", false}})).description ==
        "llama of Hugging Face, 8 tokens; keys not read: unsloth_version");
}

TEST_CASE("a config of another architecture says what it has and what is known", "[workload][hugging-face]") {
  const std::string known = "known: llama, mistral, qwen2, qwen3, mixtral, qwen2_moe, qwen3_moe, gpt_oss, "
                            "deepseek_v2, deepseek_v3, nemotron_h, kimi_k2, glm4_moe, gemma, gemma2, gemma3_text, "
                            "smollm3, granite, seed_oss, phi3, internlm2, internlm3, baichuan, ernie4_5, glm, glm4, "
                            "hunyuan_v1_dense, chatglm, mamba2, phimoe, granitemoe, granitemoeshared, dots1, "
                            "ernie4_5_moe, hunyuan_v1_moe, llama4_text, gpt2, gpt_neox, opt, phi, falcon, starcoder2, "
                            "stablelm, nemotron, gptj, gpt_bigcode, bloom, mpt, dbrx, cohere, cohere2, bert, roberta, "
                            "xlm-roberta, t5, mt5, vit";
  CHECK(test::error_of([] { read_text(std::string("{\n \"model_type\": \"rwkv\"}")); }) ==
        "f.json:2:16: model_type: 'rwkv' is not modelled: it has a recurrence in place of attention; " + known);
  CHECK(test::error_of([] { read_text(std::string("{\"model_type\": \"lama\"}")); }) ==
        "f.json:1:16: model_type: unknown architecture 'lama'; did you mean 'llama'? " + known);
  CHECK_THAT(test::error_of([] { read_text(std::string(R"({"architectures": ["RwkvForCausalLM"]})")); }),
             Catch::StartsWith("f.json:1:19: architectures: unknown architecture 'RwkvForCausalLM'; ") &&
                 Catch::Contains("known: LlamaForCausalLM, "));
  CHECK(test::error_of([] { read_text("{\"hidden_size\": 8}"); }) ==
        "f.json:1:1: the document: missing keys 'model_type' and 'architectures'; allowed: one of them, as beside "
        "weights");
  Json classifier = small({{"architectures", {"LlamaForSequenceClassification"}}});
  CHECK_THAT(test::error_of([&] { read(classifier); }),
             Catch::Contains("architectures[0]: is 'LlamaForSequenceClassification'") &&
                 Catch::EndsWith("allowed: LlamaForCausalLM"));
  Json unnamed = small({{"architectures", {"LlamaForCausalLM"}}});
  unnamed.erase("model_type");
  check_same(read(unnamed), read(kSmall));
}

TEST_CASE("what is not modelled is refused where it stands", "[workload][hugging-face]") {
  const auto refused = [](const Json& changes, const std::string& expected) {
    INFO(changes);
    const std::string error = test::error_of([&] { read(small(changes)); });
    CHECK_THAT(error, Catch::StartsWith("f.json:1:") && Catch::Contains(expected));
  };
  refused({{"quantization_config", {{"bits", 4}}}}, "quantization_config: says that the model has quantized weights");
  refused({{"num_local_experts", 8}}, "num_local_experts: says that the model has a mixture of experts");
  refused({{"is_encoder_decoder", true}}, "is_encoder_decoder");
  refused({{"model_type", "gemma"}, {"use_bidirectional_attention", true}}, "attention to later tokens");
  refused({{"hidden_act", "relu"}}, "hidden_act: is 'relu'; allowed: silu, swish, gelu");
  refused({{"num_key_value_heads", 3}}, "num_key_value_heads: 3 does not divide the 4 attention heads");
  refused({{"num_key_value_heads", 5}}, "num_key_value_heads: must be an integer from 1 to 4, got 5");
  refused({{"num_attention_heads", 3}, {"num_key_value_heads", 3}}, "hidden_size: 16 does not split into 3 heads");
  refused({{"head_dim", 5}}, "head_dim: a rotary embedding cannot turn 5 of the 5 features of a head");
  refused({{"model_type", "phi3"}, {"partial_rotary_factor", 0.1}}, "partial_rotary_factor: a rotary embedding cannot");
  refused({{"model_type", "phi3"}, {"partial_rotary_factor", 1.5}}, "partial_rotary_factor: must be more than 0, at");
  refused({{"model_type", "phi3"}, {"rope_parameters", {{"partial_rotary_factor", 0}}}},
          "rope_parameters.partial_rotary_factor: must be more than 0, at");
  refused({{"model_type", "qwen3"}, {"layer_types", {"full_attention"}}},
          "layer_types: must be an array of 2 texts, one for each of num_hidden_layers");
  refused({{"model_type", "qwen3"}, {"layer_types", {"full_attention", "linear_attention"}}},
          "layer_types[1]: is \"linear_attention\"; allowed: full_attention, sliding_attention");
  refused({{"model_type", "qwen3"}, {"layer_types", 7}}, "layer_types");
  refused({{"architectures", "llama"}}, "architectures: must be an array of texts");
  refused({{"model_type", 7}}, "model_type: must be text");
}

TEST_CASE("a missing number of key and value heads means that of the heads only in some families",
          "[workload][hugging-face]") {
  for (const char* family : {"llama", "phi3", "mistral", "qwen2", "qwen3", "gemma"}) {
    INFO(family);
    Json config = small({{"model_type", family}, {"num_key_value_heads", nullptr}, {"head_dim", 4}});
    const double qkv = test::find_operator(read(config), "layer.0.qkv").output_elements;
    CHECK(qkv == 8 * 3 * 16);
    config.erase("num_key_value_heads");
    if (std::string(family) == "llama" || std::string(family) == "phi3") {
      CHECK(test::find_operator(read(config), "layer.0.qkv").output_elements == qkv);
    } else {
      CHECK_THAT(test::error_of([&] { read(config); }), Catch::Contains("missing key 'num_key_value_heads'"));
    }
  }
}

TEST_CASE("sizes of a config.json are within physical ranges", "[workload][hugging-face]") {
  const auto refused = [](const char* key, const Json& value) {
    INFO(key << " " << value);
    CHECK_THAT(test::error_of([&] { read(small({{key, value}})); }), Catch::Contains(std::string(key) + ": must be"));
  };
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                          "max_position_embeddings"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1e18), Json(1LL << 40), Json(2.5), Json("8"), Json(nullptr)}) {
      if (!(value.is_null() && std::string(key) == "max_position_embeddings")) {
        refused(key, value);
      }
    }
    Json missing = kSmall;
    missing.erase(key);
    CHECK_THAT(test::error_of([&] { read(missing); }), Catch::Contains("missing key '" + std::string(key) + "'"));
  }
  refused("num_hidden_layers", 4097);
  refused("head_dim", 4097);
  // All at their largest: still a model, whose amounts are finite.
  const ModelGraph largest = read(small({{"hidden_size", 1 << 20},
                                         {"intermediate_size", 1 << 23},
                                         {"num_attention_heads", 4096},
                                         {"num_key_value_heads", 4096},
                                         {"head_dim", 4096},
                                         {"vocab_size", 1 << 24},
                                         {"max_position_embeddings", 1 << 24}}));
  CHECK(std::isfinite(totals_of(largest).backward.value));
}

} // namespace
} // namespace stagecraft
