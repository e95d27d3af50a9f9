// BERT, T5 and vision transformers: each family's config.json as a workload file, with the names of shipped ones.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <array>

#include "sim/base/utf8.hpp"
#include "sim/workload/import/hugging_face.hpp"
#include "sim/workload/import/workload_text.hpp"

namespace stagecraft::hugging_face {
namespace {

// Sizes that all three have.
struct Sizes {
  int layers = 0, hidden = 0, heads = 0, inside = 0;
};

Sizes read_sizes(Config& config) {
  Sizes s{config.size("num_hidden_layers", kMostLayers), config.size("hidden_size", kMostHidden),
          config.size("num_attention_heads", kMostHeads), config.size("intermediate_size", kMostIntermediate)};
  if (s.hidden % s.heads != 0) {
    throw config.error("hidden_size", std::to_string(s.hidden) + " does not split into " + std::to_string(s.heads) +
                                          " heads; allowed: a multiple of the number of heads");
  }
  return s;
}

// Attention of all tokens to all, and the sum with what the layer reads.
void write_attention(WorkloadText& text, const Sizes& s, bool qkv_bias, bool drops) {
  text.linear("qkv", 3 * s.hidden, qkv_bias);
  text.layer("attention", "attention", "heads: " + std::to_string(s.heads));
  text.linear("projection", s.hidden, true);
  text.add("1", "$input", "projection", drops);
}

// The feed-forward part, and the sum with the layer `from`.
void write_feed_forward(WorkloadText& text, const Sizes& s, const std::string& activation, const std::string& from,
                        bool drops) {
  text.linear("expand", s.inside, true);
  text.activation(activation);
  text.linear("contract", s.hidden, true);
  text.add("2", from, "contract", drops);
}

// RoBERTa's tables of positions have two rows at which no token stands.
constexpr int kSparePositions = 2;

constexpr std::string_view kMaskedLanguage = "BertForMaskedLM", kBothHeads = "BertForPreTraining";

// Norms behind each part; the heads are the masked words', which has the embedding's table, and of two sentences.
Written write_bert_like(Config& config, std::string_view architecture, const ImportOptions& options, int spare) {
  const Sizes s = read_sizes(config);
  const int positions = config.size("max_position_embeddings", kMostSequence);
  if (positions <= spare) {
    throw config.error("max_position_embeddings", "must be more than " + std::to_string(spare));
  }
  ImportOptions usable = options;
  usable.sequence = options.sequence.value_or(positions - spare);
  const int sequence = config.sequence("max_position_embeddings", usable, positions - spare);
  if (const std::string type = config.text("position_embedding_type", "absolute"); type != "absolute") {
    throw config.error("position_embedding_type",
                       "is '" + excerpt(on_one_line(type)) + "', which is not modelled; allowed: absolute");
  }
  const int words = config.size("vocab_size", kMostVocabulary);
  const int types = config.size("type_vocab_size", kMostHidden, 2);
  const std::string activation = config.activation("hidden_act", "gelu", true);
  const bool drops = config.drops("hidden_dropout_prob", 0.1);
  WorkloadText text;
  text.line("name: model\ninput: {shape: [" + std::to_string(sequence) +
            "]}\nblocks:\n  - name: transformer\n    layers:");
  write_attention(text, s, true, drops);
  text.layer("norm1", "layer_norm");
  write_feed_forward(text, s, activation, "norm1", drops);
  text.layer("norm2", "layer_norm");
  text.line("layers:");
  text.layer("embedding", "embedding",
             "vocabulary: " + std::to_string(words) + ", positions: " + std::to_string(positions) +
                 ", types: " + std::to_string(types) + ", features: " + std::to_string(s.hidden));
  text.layer("norm0", "layer_norm");
  if (drops) {
    text.layer("drop0", "dropout");
  }
  text.line("      - {block: transformer, name: layer, repeat: " + std::to_string(s.layers) + "}");
  const bool both = architecture == kBothHeads;
  if (both) {
    text.layer("first_token", "slice", "axis: 0, start: 0, end: 1");
    text.linear("pooler", s.hidden, true);
    text.layer("pooler_tanh", "tanh");
    text.linear("next_sentence", 2, true);
    text.layer("next_sentence_loss", "cross_entropy");
  }
  text.linear("transform", s.hidden, true, "inputs: [layer]");
  text.activation(activation, "transform_");
  text.layer("transform_norm", "layer_norm");
  const bool tied = config.flag("tie_word_embeddings", true);
  text.linear("masked_language", words, true, std::string("tied: ") + (tied ? "true" : "false"));
  text.layer(both ? "masked_language_loss" : "loss", "cross_entropy");
  if (both) {
    text.layer("loss", "add", "inputs: [masked_language_loss, next_sentence_loss]");
  }
  return {text.take(), std::to_string(sequence) + " tokens"};
}

Written write_bert(Config& config, std::string_view architecture, const ImportOptions& options) {
  return write_bert_like(config, architecture, options, 0);
}

Written write_roberta(Config& config, std::string_view architecture, const ImportOptions& options) {
  return write_bert_like(config, architecture, options, kSparePositions);
}

// The number of classes that the labels name; as many as transformers assumes where there are none.
int classes_of(Config& config) {
  constexpr int kUnnamed = 2;
  const json::Value* labels = config.given("id2label");
  return labels != nullptr && labels->is_object() && !labels->empty() ? static_cast<int>(labels->size()) : kUnnamed;
}

Written write_vit(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  constexpr int kMostPixels = 1 << 14, kMostChannels = 1024;
  const Sizes s = read_sizes(config);
  const int image = config.size("image_size", kMostPixels, 224);
  const int patch = config.size("patch_size", image, 16);
  const int channels = config.size("num_channels", kMostChannels, 3);
  if (image % patch != 0) {
    throw config.error("patch_size", std::to_string(patch) + " does not divide an image of " + std::to_string(image) +
                                         "; allowed: a divisor");
  }
  if (options.sequence) {
    throw config.error("", "--seq gives a number of tokens, and an image has as many as patches; allowed: no --seq");
  }
  const bool bias = config.flag("qkv_bias", true);
  const std::string activation = config.activation("hidden_act", "gelu", true);
  const bool drops = config.drops("hidden_dropout_prob", 0);
  const std::string side = std::to_string(image), hidden = std::to_string(s.hidden);
  WorkloadText text;
  text.line("name: model\ninput: {shape: [" + std::to_string(channels) + ", " + side + ", " + side +
            "]}\nblocks:\n  - name: transformer\n    layers:");
  text.layer("norm1", "layer_norm");
  write_attention(text, s, bias, drops);
  text.layer("norm2", "layer_norm");
  write_feed_forward(text, s, activation, "add1", drops);
  text.line("layers:");
  const int patches = (image / patch) * (image / patch);
  text.layer("patches", "conv2d",
             "channels: " + hidden + ", kernel: " + std::to_string(patch) + ", stride: " + std::to_string(patch));
  text.layer("rows", "reshape", "shape: [" + hidden + ", " + std::to_string(patches) + "]");
  text.layer("tokens", "transpose", "axes: [1, 0]");
  text.layer("positions", "learned_tokens", "tokens: 1");
  if (drops) {
    text.layer("drop0", "dropout");
  }
  text.line("      - {block: transformer, name: layer, repeat: " + std::to_string(s.layers) + "}");
  text.layer("norm", "layer_norm");
  text.layer("class_token", "slice", "axis: 0, end: 1");
  text.linear("head", classes_of(config), true);
  text.layer("loss", "cross_entropy");
  return {text.take(), "images of " + side + " x " + side};
}

// T5, by its own names of sizes.
class T5Writer {
public:
  T5Writer(Config& config, const ImportOptions& options, bool first)
      : hidden_(config.size("d_model", kMostHidden)), width_(config.size("d_kv", kMostHeadWidth)),
        heads_(config.size("num_heads", kMostHeads)), inside_(config.size("d_ff", kMostIntermediate)),
        encoders_(config.size("num_layers", kMostLayers)),
        decoders_(config.size("num_decoder_layers", kMostLayers, encoders_)),
        buckets_(config.size("relative_attention_num_buckets", kMostHidden, 32)),
        words_(config.size("vocab_size", kMostVocabulary)), sequence_(config.sequence("n_positions", options)),
        drops_(config.drops("dropout_rate", 0.1)), tied_(config.flag("tie_word_embeddings", first)) {
    const std::string feed_forward = config.text("feed_forward_proj", first ? "relu" : "gated-gelu");
    constexpr std::string_view kGated = "gated-";
    gated_ = feed_forward.starts_with(kGated);
    activation_ = gated_ ? feed_forward.substr(kGated.size()) : feed_forward;
    if (activation_ != "gelu" && activation_ != "silu" && (gated_ || activation_ != "relu")) {
      throw config.error("feed_forward_proj", "is '" + excerpt(on_one_line(feed_forward)) +
                                                  "'; allowed: relu, gelu, silu, gated-gelu, gated-silu");
    }
    for (const char* derived :
         {"is_gated_act", "dense_act_fn", "is_encoder_decoder"}) { // transformers writes them beside the above
      config.given(derived);
    }
  }

  Written write() {
    const std::string both = std::to_string(2 * sequence_), one = std::to_string(sequence_);
    text_.line("name: model\ninput: {shape: [" + both + "]}\nblocks:");
    for (const bool first : {true, false}) {
      begin(first ? "first_encoder" : "encoder", "");
      attend_to_itself(first, false);
      feed_forward("2", "add1");
    }
    for (const bool first : {true, false}) {
      begin(first ? "first_decoder" : "decoder", "    parameters: [encoder]");
      attend_to_itself(first, true);
      attend_to_encoder();
      feed_forward("3", "add2");
    }
    text_.line("layers:");
    text_.layer("source", "slice", "inputs: [input], axis: 0, end: " + one);
    embed("embedding", "drop", "");
    use("encoder", encoders_, "");
    text_.layer("encoder_norm", "rms_norm");
    drop("encoded");
    text_.layer("target", "slice", "inputs: [input], axis: 0, start: " + one + ", end: " + both);
    embed("target_embedding", "target_drop", ", tied: true");
    use("decoder", decoders_, std::string(", encoder: ") + (drops_ ? "encoded" : "encoder_norm"));
    text_.layer("norm", "rms_norm");
    drop("drop_out");
    text_.linear("head", words_, false, std::string("tied: ") + (tied_ ? "true" : "false"));
    text_.layer("loss", "cross_entropy");
    return {text_.take(), one + " + " + one + " tokens"};
  }

private:
  void drop(const std::string& name) {
    if (drops_) {
      text_.layer(name, "dropout");
    }
  }

  void begin(const std::string& name, const std::string& parameters) {
    text_.line("  - name: " + name);
    if (!parameters.empty()) {
      text_.line(parameters);
    }
    text_.line("    layers:");
  }

  // The first layer owns the biases of positions.
  void attend_to_itself(bool first, bool causal) {
    text_.layer("norm1", "rms_norm");
    text_.linear("qkv", 3 * heads_ * width_, false);
    text_.layer("attention", "attention",
                "heads: " + std::to_string(heads_) + ", biased: true" +
                    (first ? ", buckets: " + std::to_string(buckets_) : "") + (causal ? ", causal: true" : ""));
    text_.linear("projection", hidden_, false);
    text_.add("1", "$input", "projection", drops_);
  }

  void attend_to_encoder() {
    text_.layer("norm2", "rms_norm");
    text_.linear("query", heads_ * width_, false);
    text_.linear("key", heads_ * width_, false, "inputs: [$encoder]");
    text_.linear("value", heads_ * width_, false, "inputs: [$encoder]");
    text_.layer("cross", "attention", "inputs: [query, key, value], heads: " + std::to_string(heads_));
    text_.linear("cross_projection", hidden_, false);
    text_.add("2", "add1", "cross_projection", drops_);
  }

  void feed_forward(const std::string& number, const std::string& from) {
    text_.layer("norm" + number, "rms_norm");
    text_.linear("expand", (gated_ ? 2 : 1) * inside_, false);
    text_.layer(gated_ ? "gate" : activation_, gated_ ? "gated" : activation_,
                gated_ ? "activation: " + activation_ : "");
    drop("drop_inside");
    text_.linear("contract", hidden_, false);
    text_.add(number, from, "contract", drops_);
  }

  void embed(const std::string& name, const std::string& dropout, const std::string& more) {
    text_.layer(name, "embedding",
                "vocabulary: " + std::to_string(words_) + ", features: " + std::to_string(hidden_) + more);
    drop(dropout);
  }

  // The first layer, then the others.
  void use(const std::string& name, int layers, const std::string& more) {
    text_.line("      - {block: first_" + name + ", name: " + name + ", repeat: 1" + more + "}");
    if (layers > 1) {
      text_.line("      - {block: " + name + ", name: " + name + ", repeat: " + std::to_string(layers - 1) +
                 ", first: 1" + more + "}");
    }
  }

  int hidden_, width_, heads_, inside_, encoders_, decoders_, buckets_, words_, sequence_;
  bool drops_, tied_, gated_ = false;
  std::string activation_;
  WorkloadText text_;
};

// `first`: T5 of 2019; what follows it has a gate, and a head of its own, where the file does not say otherwise.
template <bool first>
Written write_t5(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  return T5Writer(config, options, first).write();
}

constexpr std::string_view kEncodes[] = {"is_encoder_decoder"};

constexpr std::array kEncoders = {
    Family{"bert", {kBothHeads, kMaskedLanguage}, write_bert},
    Family{"roberta", {"RobertaForMaskedLM"}, write_roberta},
    Family{"xlm-roberta", {"XLMRobertaForMaskedLM"}, write_roberta},
    Family{"t5", {"T5ForConditionalGeneration"}, write_t5<true>, kEncodes},
    Family{"mt5", {"MT5ForConditionalGeneration"}, write_t5<false>, kEncodes},
    Family{"vit", {"ViTForImageClassification"}, write_vit},
};

} // namespace

std::span<const Family> encoder_families() { return kEncoders; }

} // namespace stagecraft::hugging_face
