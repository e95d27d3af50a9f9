// The model of a row: a decoder of its family, with the sizes that the row states.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/workload/import/decoder.hpp"

namespace stagecraft {
namespace {

// Megatron-LM's GPT (Shoeybi et al. 2019), as GPT-2 and GPT-3 are.
void shape_gpt(Decoder& d) {
  d.norm = "layer_norm";
  d.activation = "gelu_tanh";
  d.gated = false;
  d.qkv_bias = d.projection_bias = d.mlp_bias = true;
  d.positions = d.sequence;
  d.rotary = 0;
  d.tied = d.dropout = d.embedding_dropout = true;
}

// OPT (Zhang et al. 2022): GPT-3's with ReLU.
void shape_opt(Decoder& d) {
  shape_gpt(d);
  d.activation = "relu";
}

// MosaicML's MPT (llm-foundry's configurations of its benchmarks): no biases, learned positions, no dropout.
void shape_mpt(Decoder& d) {
  d.norm = "layer_norm";
  d.activation = "gelu";
  d.gated = false;
  d.positions = d.sequence;
  d.rotary = 0;
  d.tied = true;
}

void shape_llama(Decoder& /*decoder*/) {}

// Two matrices and no gate, no biases, as Falcon (Almazrouei et al. 2023) and Apertus (2025).
void shape_without_gate(Decoder& d) {
  d.norm = "layer_norm";
  d.activation = "gelu";
  d.gated = false;
}

void shape_qwen2(Decoder& d) { d.qkv_bias = true; }

void shape_qwen3(Decoder& d) {
  constexpr int kHeadWidth = 128; // whatever the hidden size (its config.json)
  d.query_key_norm = true;
  d.head_width = kHeadWidth;
}

// Nemotron (Parmar et al. 2024, "Nemotron-4 15B technical report"): squared ReLU without a gate, half of a head turns.
void shape_nemotron(Decoder& d) {
  d.norm = "layer_norm";
  d.activation = "relu";
  d.gated = false;
  d.rotary = 0.5;
}

// Llama 4 (its config.json): one more expert that every token goes through. Every fourth layer has no positions and
// sees all tokens, the others those of their chunk. Of Maverick, with 128 experts, every second layer is dense.
void shape_llama4(Decoder& d) {
  constexpr int kChunk = 8192, kMany = 128;
  constexpr std::size_t kInterval = 4;
  d.experts.shared = d.experts.intermediate;
  for (std::size_t layer = 0; layer < d.layers.size(); ++layer) {
    d.layers[layer].sparse = d.layers[layer].sparse && (d.experts.count < kMany || layer % 2 == 1);
    d.layers[layer].turns = (layer + 1) % kInterval != 0;
    d.layers[layer].window = d.layers[layer].turns ? kChunk : 0;
  }
}

// DeepSeek-V2 and what follows it: latent attention (DeepSeek-AI 2024), the first layers dense.
void shape_latent(Decoder& d, int query_rank, int dense, int shared) {
  d.latent = {.query_rank = query_rank, .key_value_rank = 512, .without_rotary = 128, .rotary = 64, .value = 128};
  d.experts.shared = shared * d.experts.intermediate;
  for (int layer = 0; layer < std::min<int>(dense, static_cast<int>(d.layers.size())); ++layer) {
    d.layers[static_cast<std::size_t>(layer)].sparse = false;
  }
}
constexpr int kQueryRank = 1536;
void shape_deepseek_v3(Decoder& d) { shape_latent(d, kQueryRank, 3, 1); }
void shape_deepseek_v2(Decoder& d) { shape_latent(d, kQueryRank, 1, 2); }
void shape_kimi(Decoder& d) { shape_latent(d, kQueryRank, 1, 1); }
void shape_moonlight(Decoder& d) { shape_latent(d, 0, 1, 2); }

struct ModelFamily {
  std::string_view prefix;
  void (*shape)(Decoder& decoder);
  int feed_forward;     ///< where none is stated, so many times the hidden size; 0: it must be stated
  bool mixture = false; ///< all of its models have experts
};
// The first prefix that fits, whatever stands between letters: "GPT OSS", "gpt-oss". A blank in a prefix must be there.
constexpr std::array kFamilies = {
    ModelFamily{"gpt-oss", nullptr, 0},
    ModelFamily{"gpt", shape_gpt, 4},
    ModelFamily{"megatron", shape_gpt, 4},
    ModelFamily{"mpt", shape_mpt, 4},
    ModelFamily{"llama-4", shape_llama4, 0, true},
    ModelFamily{"llama", shape_llama, 0},
    ModelFamily{"internlm", shape_llama, 0},
    ModelFamily{"mistral", shape_llama, 0},
    ModelFamily{"mixtral", shape_llama, 0, true},
    ModelFamily{"qwen3-next", nullptr, 0}, // hybrids of linear and full attention
    ModelFamily{"qwen3.5", nullptr, 0},
    ModelFamily{"qwen3", shape_qwen3, 0},
    ModelFamily{"qwen", shape_qwen2, 0},
    ModelFamily{"deepseek-v3", shape_deepseek_v3, 0, true},
    ModelFamily{"deepseek-v2", shape_deepseek_v2, 0, true},
    ModelFamily{"kimi", shape_kimi, 0, true},
    ModelFamily{"moonlight", shape_moonlight, 0, true},
    ModelFamily{"nemotron 3", nullptr, 0}, // hybrids of state spaces and attention
    ModelFamily{"nemotron", shape_nemotron, 4},
    ModelFamily{"falcon-h1", nullptr, 0},
    ModelFamily{"falcon-mamba", nullptr, 0},
    ModelFamily{"falcon", shape_without_gate, 4},
    ModelFamily{"apertus", shape_without_gate, 0}, // xIELU
    ModelFamily{"starcoder", shape_gpt, 4},
    ModelFamily{"cerebras-gpt", shape_gpt, 4},
    ModelFamily{"opt", shape_opt, 4},
    ModelFamily{"bloom", shape_gpt, 4},
    ModelFamily{"pythia", shape_gpt, 4},
    ModelFamily{"turing", shape_gpt, 4},
};
// Beginnings of names of what is no decoder, or has more than one kind of layer.
constexpr auto kNoDecoders = std::to_array<std::string_view>(
    {// Language, in one direction or between two
     "albert", "bart", "bert", "deberta", "distilbert", "electra", "flan-t5", "gnmt", "jamba", "mamba", "minimax",
     "modernbert", "mt5", "roberta", "rwkv", "switch", "t5", "transformer-base", "transformer-big", "transformer-xl",
     "xlnet", "zamba",
     // Images, and what draws them
     "3d u-net", "3d-unet", "alexnet", "amoebanet", "clip", "convnext", "densenet", "dino", "dit", "efficientdet",
     "efficientnet", "faster r-cnn", "flux", "googlenet", "inception", "mask r-cnn", "maskrcnn", "mobilenet", "nnu-net",
     "nnunet", "resnet", "resnext", "retinanet", "se-resnext", "shufflenet", "siglip", "squeezenet", "ssd",
     "stable diffusion", "swin", "u-net", "unet", "v-net", "vgg", "vit", "vnet", "wide resnet", "wide-resnet",
     "wide_resnet", "yolo",
     // Speech
     "conformer", "deepspeech", "fastpitch", "hifi-gan", "hifigan", "jasper", "quartznet", "rnn-t", "rnnt", "tacotron",
     "wav2vec", "waveglow", "whisper",
     // Tables and graphs
     "dlrm", "graphsage", "ncf", "neumf", "rgat", "tft", "vae", "wide & deep"});
// Where no name fits: most decoders since 2023 are built as Llama's. All sizes must be stated.
constexpr ModelFamily kOther{"", shape_llama, 0};

// The text without what may stand between letters and digits.
std::string joined(std::string_view text) {
  std::string letters;
  std::copy_if(text.begin(), text.end(), std::back_inserter(letters),
               [](char c) { return std::string_view(" -_").find(c) == std::string_view::npos; });
  return letters;
}

const ModelFamily* family_of(const std::string& model) {
  const std::string letters = joined(model);
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const ModelFamily& family) {
    return family.prefix.find(' ') != std::string_view::npos ? model.starts_with(family.prefix)
                                                             : letters.starts_with(joined(family.prefix));
  });
  if (found != kFamilies.end()) {
    return found->shape == nullptr ? nullptr : &*found;
  }
  const bool known = model == "transformer" || // that of Vaswani et al. 2017, of an encoder and a decoder
                     std::any_of(kNoDecoders.begin(), kNoDecoders.end(),
                                 [&](std::string_view beginning) { return model.starts_with(beginning); });
  return known ? nullptr : &kOther;
}

// Models that tables name without all of their sizes.
struct PublishedModel {
  std::string_view name; ///< how the row's begins
  std::string_view source;
  TruthSizes sizes;
};
constexpr std::array kPublished = {
    PublishedModel{"moonlight 16b-a3b",
                   "moonshotai/Moonlight-16B-A3B config.json",
                   {.hidden = 2048,
                    .heads = 16,
                    .feed_forward = 11264,
                    .vocabulary = 163840,
                    .experts = 64,
                    .experts_active = 6,
                    .expert_hidden = 1408}},
    PublishedModel{"nemotron 3 nano",
                   "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 config.json",
                   {.hidden = 2688,
                    .heads = 32,
                    .feed_forward = 1856,
                    .vocabulary = 131072,
                    .experts = 128,
                    .experts_active = 6,
                    .expert_hidden = 1856}},
    PublishedModel{
        "switchxl4", "NeuSight's switchxl4.json", {.experts = 4, .experts_active = 1, .expert_hidden = 16384}},
    PublishedModel{"gpt-oss 20b",
                   "openai/gpt-oss-20b config.json",
                   {.hidden = 2880,
                    .heads = 64,
                    .feed_forward = 2880,
                    .vocabulary = 201088,
                    .experts = 32,
                    .experts_active = 4,
                    .expert_hidden = 2880}},
    PublishedModel{"internlm 7b", "internlm/internlm-7b config.json", {.feed_forward = 11008}},
};

// What a row must state of a decoder, by the columns' names.
std::string missing_sizes(const TruthSizes& sizes, const ModelFamily& family) {
  std::string missing;
  const auto need = [&](int size, const char* column) {
    missing += size > 0 ? "" : (missing.empty() ? "" : ", ") + std::string(column);
  };
  need(sizes.layers, "layers");
  need(sizes.hidden, "hidden");
  need(sizes.heads, "heads");
  need(sizes.sequence, "seq_len");
  need(family.feed_forward > 0 ? 1 : sizes.feed_forward, "ffn_hidden");
  if (family.mixture) {
    need(sizes.experts, "experts");
  }
  if (sizes.experts > 0) {
    need(sizes.experts_active, "experts_active");
    need(sizes.expert_hidden, "moe_ffn");
  }
  return missing;
}

int words_of(const TruthRow& row, bool pads, std::vector<std::string>& assumed) {
  constexpr int kGpt2Words = 50257, kStep = 128;
  int words = row.sizes.vocabulary;
  if (words == 0) {
    words = kGpt2Words;
    assumed.emplace_back("a vocabulary of 50257, as GPT-2's");
  }
  const int step = kStep * std::max(row.degrees.tensor, 1);
  return pads ? round_up(words, step) : words;
}

std::string with_indent(const std::string& text, const std::string& indent) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += indent + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

// Of a workload file of a decoder, the blocks alone, which read what an embedding would have written.
std::string blocks_alone(const std::string& workload, const Decoder& d) {
  const std::size_t layers = workload.rfind("\nlayers:\n") + 1;
  const std::size_t block = workload.find("- {block:", layers);
  const std::string tokens = "shape: [" + std::to_string(d.sequence) + "]";
  std::string text =
      workload.substr(0, layers) + "layers:\n  " + workload.substr(block, workload.find('\n', block) - block) + "\n";
  return text.replace(text.find(tokens), tokens.size(),
                      "shape: [" + std::to_string(d.sequence) + ", " + std::to_string(d.hidden) + "]");
}

// Whether the figure is one of layers, without embedding and head, as are shares of activations by Korthikanti et al.
// 2023, figure 7: those of table 2, per layer (of GPT 175B 2 / (10 + 24/8 + 80/8) = 8.7 % where all runs again).
bool is_of_layers(const TruthRow& row) {
  return row.metric.starts_with("layer_") || row.metric == "activation_memory_share";
}

// Megatron-Bridge's recipes of DeepSeek-V3 have one such layer (mtp_num_layers = 1), unless a row denies it.
bool predicts_further(const TruthRow& row) {
  constexpr auto kDenials = std::to_array<std::string_view>({"w/o mtp", "without mtp", "no mtp"});
  return joined(plain_words(row.model)).starts_with("deepseekv3") && row.mentions("megatron-bridge") &&
         std::none_of(kDenials.begin(), kDenials.end(), [&](std::string_view denial) { return row.mentions(denial); });
}

// SimuMax cuts mixtures down to a few layers of which the first is dense, whatever the whole model has
// (MooreThreads/SimuMax v1.2, simu_tools/megatron_scripts/scripts/run_pretrain_deepseekv2.sh: MOE_LAYER_FREQ).
void keep_one_dense(Decoder& d) {
  for (std::size_t layer = 1; layer < d.layers.size(); ++layer) {
    d.layers[layer].sparse = d.experts.count > 0;
  }
}

// The decoder of a row whose sizes are stated, but for its vocabulary.
Decoder decoder_of(const TruthRow& row, const ModelFamily& family) {
  const TruthSizes& sizes = row.sizes;
  Decoder d;
  d.hidden = sizes.hidden;
  d.intermediate = sizes.feed_forward > 0 ? sizes.feed_forward : family.feed_forward * sizes.hidden;
  d.sequence = sizes.sequence;
  d.heads = sizes.heads;
  d.key_value_heads = sizes.key_value_heads > 0 ? sizes.key_value_heads : sizes.heads;
  d.head_width = sizes.hidden / sizes.heads;
  d.layers.assign(static_cast<std::size_t>(sizes.layers), {.sparse = sizes.experts > 0});
  d.experts = {.count = sizes.experts, .top = sizes.experts_active, .intermediate = sizes.expert_hidden};
  d.predicts_further = predicts_further(row);
  family.shape(d);
  if (row.mentions("SimuMax")) {
    keep_one_dense(d);
  }
  // Nothing is dropped where nothing is trained, nor by NVIDIA's GPT-3 of MLPerf, whose hidden_dropout and
  // attention_dropout are 0 (benchmarks/gpt3, conf/megatron_gpt_config*.yaml).
  if (timed_parts(row) == TimedParts::forward || row.mentions("MLPerf")) {
    d.dropout = d.embedding_dropout = false;
  }
  return d;
}

// Megatron Core gives each rank of a tensor group that is larger than the key-value heads one of them, so that several
// ranks hold the same.
void replicate_key_value_heads(Decoder& d, int tensor, std::vector<std::string>& assumed) {
  if (tensor > d.key_value_heads && tensor % d.key_value_heads == 0 && d.heads % tensor == 0 &&
      d.latent.key_value_rank == 0) {
    assumed.push_back(count_of(tensor, "key-value head") + " for " + std::to_string(d.key_value_heads) +
                      ", one for each rank of a tensor group");
    d.key_value_heads = tensor;
  }
}

} // namespace

std::string adapters_of(const TruthRow& row, std::vector<std::string>& assumed) {
  if (!trains_adapters(row)) {
    return "";
  }
  constexpr int kUsual = 16;
  const int stated = number_after(row.note, "LoRA rank ");
  if (stated <= 0) {
    assumed.emplace_back("adapters of rank 16");
  }
  const std::string rank = std::to_string(stated > 0 ? stated : kUsual);
  return "  lora: " + (row.mentions("on attention") ? "{rank: " + rank + ", layers: [qkv, projection]}" : rank) + "\n";
}

bool is_decoder(const TruthRow& row) { return family_of(plain_words(row.model)) != nullptr; }

void fill_published_sizes(TruthRow& row) {
  const std::string name = plain_words(row.model);
  const auto model = std::find_if(kPublished.begin(), kPublished.end(),
                                  [&](const PublishedModel& one) { return name.starts_with(one.name); });
  if (model == kPublished.end()) {
    return;
  }
  constexpr std::array kSizes = {&TruthSizes::hidden,       &TruthSizes::heads,   &TruthSizes::feed_forward,
                                 &TruthSizes::vocabulary,   &TruthSizes::experts, &TruthSizes::experts_active,
                                 &TruthSizes::expert_hidden};
  for (const auto size : kSizes) {
    if (row.sizes.*size == 0 && model->sizes.*size > 0) {
      row.sizes.*size = model->sizes.*size;
      row.published = "sizes as in " + std::string(model->source);
    }
  }
}

std::variant<StudyPart, Infeasible> truth_model(const TruthRow& row, bool pads_vocabulary) {
  const std::string name = plain_words(row.model);
  const ModelFamily* family = family_of(name);
  if (family == nullptr) {
    return Infeasible{"the architecture of '" + row.model +
                      "' is not one that its columns describe; allowed: a decoder, or the name of a shipped workload"};
  }
  const TruthSizes& sizes = row.sizes;
  if (const std::string missing = missing_sizes(sizes, *family); !missing.empty()) {
    return Infeasible{"the row does not state " + missing};
  }
  constexpr int kMostLayers = 4096; // as of a config.json
  if (sizes.layers > kMostLayers) {
    return Infeasible{"layers is " + std::to_string(sizes.layers) + "; allowed: up to " + std::to_string(kMostLayers)};
  }
  constexpr int kMostFeatures = 1 << 24; // of which four times as many are still an int
  for (const auto& [size, column] :
       {std::pair{sizes.hidden, "hidden"}, {sizes.feed_forward, "ffn_hidden"}, {sizes.expert_hidden, "moe_ffn"}}) {
    if (size > kMostFeatures) {
      return Infeasible{std::string(column) + " is " + std::to_string(size) + "; allowed: up to " +
                        std::to_string(kMostFeatures)};
    }
  }
  StudyPart part;
  if (!row.published.empty()) {
    part.assumed.push_back(row.published);
  }
  if (family == &kOther) {
    part.assumed.emplace_back("a decoder built as Llama's");
  }
  Decoder d = decoder_of(row, *family);
  if (d.latent.key_value_rank == 0 && d.head_width == sizes.hidden / sizes.heads && sizes.hidden % sizes.heads != 0) {
    return Infeasible{"heads, " + std::to_string(sizes.heads) + ", do not divide hidden, " +
                      std::to_string(sizes.hidden)};
  }
  d.vocabulary = words_of(row, pads_vocabulary, part.assumed);
  if (d.predicts_further) {
    part.assumed.emplace_back("one layer that predicts the token after the next");
  }
  if (d.heads % d.key_value_heads != 0) {
    return Infeasible{"kv_heads, " + std::to_string(d.key_value_heads) + ", do not divide heads, " +
                      std::to_string(d.heads)};
  }
  if (d.experts.top > d.experts.count) {
    return Infeasible{"experts_active, " + std::to_string(d.experts.top) + ", are more than experts, " +
                      std::to_string(d.experts.count)};
  }
  replicate_key_value_heads(d, row.degrees.tensor, part.assumed);
  part.text = "model:\n" + adapters_of(row, part.assumed) + "  workload:\n" +
              with_indent(is_of_layers(row) ? blocks_alone(workload_of(d), d) : workload_of(d), "    ");
  return part;
}

} // namespace stagecraft
