// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/decoder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/workload/import/import.hpp"
#include "sim/workload/import/workload_text.hpp"

namespace stagecraft {
namespace {

const char* text_of(bool value) { return value ? "true" : "false"; }

// The workload file of a decoder.
class Writer {
public:
  explicit Writer(const Decoder& decoder) : d_(decoder) {}

  std::string write() {
    text_.line("name: model\ninput: {shape: [" + std::to_string(d_.sequence) + "]}\nblocks:");
    for (const DecoderLayer& layer : d_.layers) {
      if (std::find(forms_.begin(), forms_.end(), layer) == forms_.end()) {
        forms_.push_back(layer);
        write_block(layer);
      }
    }
    text_.line("layers:");
    text_.layer("embedding", "embedding",
                "vocabulary: " + std::to_string(d_.vocabulary) + ", positions: " + std::to_string(d_.positions) +
                    ", features: " + std::to_string(d_.hidden));
    if (d_.embedding_norm) {
      norm("embedding_norm");
    }
    if (d_.embedding_dropout) {
      text_.layer("drop", "dropout");
    }
    write_uses();
    if (d_.predicts_further) {
      write_further();
    }
    norm("norm");
    text_.layer("head", "linear",
                "features: " + std::to_string(d_.vocabulary) + ", bias: " + text_of(d_.head_bias) +
                    ", tied: " + text_of(d_.tied));
    text_.layer(d_.further > 0 ? "next_loss" : "loss", "cross_entropy");
    write_predictions();
    if (d_.predicts_further) { // the head and the loss once more
      text_.layer("further_head", "linear",
                  "inputs: [norm], features: " + std::to_string(d_.vocabulary) + ", bias: false, tied: true");
      text_.layer("further_loss", "cross_entropy");
    }
    return text_.take();
  }

private:
  void norm(const std::string& name, const std::string& inputs = "") {
    const std::string bias = d_.norm == "layer_norm" && !d_.norm_bias ? "bias: false" : "";
    text_.layer(name, d_.norm, inputs + (inputs.empty() || bias.empty() ? "" : ", ") + bias);
  }

  // Dropout, if there is any, after the layer that ends a branch. Returns the branch's end.
  std::string end_branch(const std::string& last, const std::string& dropout) {
    if (d_.dropout) {
      text_.layer(dropout, "dropout");
    }
    return d_.dropout ? dropout : last;
  }

  // The norm behind a branch, if there is one. Returns the branch's end.
  std::string behind(const std::string& branch, const std::string& name) {
    if (d_.norms_behind) {
      norm(name);
    }
    return d_.norms_behind ? name : branch;
  }

  std::string block_of(const DecoderLayer& layer) const {
    return "form" + std::to_string(std::find(forms_.begin(), forms_.end(), layer) - forms_.begin());
  }

  void write_block(const DecoderLayer& layer) {
    text_.line("  - name: " + block_of(layer) + "\n    layers:");
    norm("norm1");
    if (layer.part != DecoderPart::both) {
      text_.layer("add1", "add", "inputs: [$input, " + write_part(layer) + "]");
      return;
    }
    if (d_.latent.key_value_rank > 0) {
      write_latent_attention();
    } else {
      write_attention(layer);
    }
    text_.linear("projection", d_.hidden, d_.projection_bias);
    attention_ = behind(end_branch("projection", "drop1"), "attention_norm");
    if (!d_.parallel) {
      text_.layer("add1", "add", "inputs: [$input, " + attention_ + "]");
    }
    norm_ = d_.one_norm ? "norm1" : "norm2";
    if (!d_.one_norm) {
      norm("norm2", d_.parallel ? "inputs: [$input]" : "");
    }
    const std::string terms = layer.sparse ? write_experts() : behind(write_feed_forward(), "feed_forward_norm");
    if (d_.parallel) {
      text_.layer("add", "add", "inputs: [$input, " + attention_ + ", " + terms + "]");
    } else {
      text_.layer("add2", "add", "inputs: [add1, " + terms + "]");
    }
  }

  // A part that is a layer by itself. Returns what the layer adds to its input.
  std::string write_part(const DecoderLayer& layer) {
    norm_ = "norm1";
    if (layer.part == DecoderPart::feed_forward) {
      return layer.sparse ? write_experts() : write_feed_forward();
    }
    if (layer.part == DecoderPart::state_space) {
      write_state_space();
    } else {
      write_attention(layer);
      text_.linear("projection", d_.hidden, d_.projection_bias);
    }
    return end_branch("projection", "drop1");
  }

  // Mamba-2's one product before the state space is written as four, of the same weights.
  void write_state_space() {
    const DecoderStateSpace& s = d_.state_space;
    const int inner = s.heads * s.head_width;
    const auto convolved = [&](const std::string& name, int features) {
      text_.linear(name, features, s.bias, "inputs: [norm1]");
      text_.layer(name + "_convolved", "short_convolution",
                  "taps: " + std::to_string(s.taps) + ", bias: " + text_of(s.convolution_bias));
      text_.layer(name + "_silu", "silu");
    };
    text_.linear("gate", inner, s.bias);
    text_.layer("gate_silu", "silu");
    text_.linear("steps", s.heads, s.bias, "inputs: [norm1]");
    convolved("vectors", 2 * s.groups * s.state);
    convolved("values", inner);
    text_.layer("state_space", "state_space",
                "inputs: [values_silu, vectors_silu, steps], heads: " + std::to_string(s.heads) +
                    ", groups: " + std::to_string(s.groups) + ", chunk: " + std::to_string(s.chunk));
    text_.layer("gated", "mul", "inputs: [state_space, gate_silu]");
    text_.layer("gated_norm", d_.norm, s.norm_groups > 1 ? "groups: " + std::to_string(s.norm_groups) : "");
    text_.linear("projection", d_.hidden, s.bias);
  }

  // Layers that follow one another and are alike are one use of their block.
  void write_uses() {
    for (std::size_t first = 0, end = 0; first < d_.layers.size(); first = end) {
      while (end < d_.layers.size() && d_.layers[end] == d_.layers[first]) {
        ++end;
      }
      text_.line("      - {block: " + block_of(d_.layers[first]) +
                 ", name: layer, repeat: " + std::to_string(end - first) + ", first: " + std::to_string(first) + "}");
    }
  }

  // The layer that predicts further reads the last one's result and the next token's embedding, whose norm reads as
  // much as that of the result. The product of both side by side is the sum of a product of each.
  void write_further() {
    const int last = static_cast<int>(d_.layers.size()) - 1;
    const std::string result = "inputs: [layer." + std::to_string(last) + "]";
    norm("further_norm", result);
    text_.linear("further_projection", d_.hidden, false);
    norm("further_token_norm", result);
    text_.linear("further_token_projection", d_.hidden, false);
    text_.layer("further_sum", "add", "inputs: [further_projection, further_token_projection]");
    text_.line("      - {block: " + block_of(d_.layers.back()) +
               ", name: layer, repeat: 1, first: " + std::to_string(last + 1) + "}");
  }

  // Eq. 21 to 24 of the report: a layer reads the state of the one before it and the embedding of the token that this
  // one predicted, each through a norm and both through one product.
  void write_predictions() {
    constexpr std::array<std::string_view, kMostMtpLayers> kTokens = {"second", "third",   "fourth", "fifth",
                                                                      "sixth",  "seventh", "eighth", "ninth"};
    const std::string vocabulary = std::to_string(d_.vocabulary), hidden = std::to_string(d_.hidden);
    std::string losses = "next_loss";
    for (int i = 0; i < d_.further; ++i) {
      const int layer = static_cast<int>(d_.layers.size()) + i;
      const std::string token(kTokens[static_cast<std::size_t>(i)]);
      text_.layer(token + "_embedding", "embedding",
                  "inputs: [input], vocabulary: " + vocabulary + ", features: " + hidden + ", tied: true");
      norm(token + "_token_norm");
      norm(token + "_state_norm", "inputs: [layer." + std::to_string(layer - 1) + "]");
      text_.layer(token + "_both", "concat", "inputs: [" + token + "_state_norm, " + token + "_token_norm], axis: 1");
      text_.linear(token + "_join", d_.hidden, false);
      text_.line("      - {block: " + block_of(d_.layers.back()) +
                 ", name: layer, repeat: 1, first: " + std::to_string(layer) + "}");
      norm(token + "_norm");
      text_.linear(token + "_head", d_.vocabulary, false, "tied: true");
      text_.layer(token + "_loss", "cross_entropy");
      losses += ", " + token + "_loss";
    }
    if (d_.further > 0) {
      text_.layer("loss", "add", "inputs: [" + losses + "]");
    }
  }

  void write_attention(const DecoderLayer& layer) {
    const std::string heads =
        "heads: " + std::to_string(d_.heads) + ", key_value_heads: " + std::to_string(d_.key_value_heads);
    text_.linear("qkv", (d_.heads + 2 * d_.key_value_heads) * d_.head_width, d_.qkv_bias);
    if (d_.query_key_norm) {
      text_.layer("query_key_norm", "query_key_norm", heads);
    }
    if (d_.rotary > 0 && layer.turns) {
      text_.layer("rotary", d_.scaled_rotary ? "scaled_rotary" : "rotary",
                  heads + ", part: " + nlohmann::json(d_.rotary).dump());
    }
    text_.layer("attention", "attention",
                heads + ", causal: true" + (layer.window > 0 ? ", window: " + std::to_string(layer.window) : "") +
                    (d_.sinks ? ", sinks: true" : ""));
  }

  void write_latent_attention() {
    const DecoderLatent& l = d_.latent;
    const int query = d_.heads * (l.without_rotary + l.rotary);
    if (l.query_rank > 0) {
      text_.linear("query_down", l.query_rank, d_.qkv_bias);
      norm("query_norm");
    }
    text_.linear("query_up", query, false);
    text_.linear("key_value_down", l.key_value_rank + l.rotary, d_.qkv_bias, "inputs: [norm1]");
    text_.layer("latent", "slice", "axis: 1, end: " + std::to_string(l.key_value_rank));
    norm("latent_norm");
    text_.linear("key_value_up", d_.heads * (l.without_rotary + l.value), false);
    text_.layer("rotary_key", "slice",
                "inputs: [key_value_down], axis: 1, start: " + std::to_string(l.key_value_rank) +
                    ", end: " + std::to_string(l.key_value_rank + l.rotary));
    text_.layer("attention", "latent_attention",
                "inputs: [query_up, key_value_up, rotary_key], heads: " + std::to_string(d_.heads) + ", causal: true");
  }

  std::string write_feed_forward() {
    text_.linear("expand", (d_.gated ? 2 : 1) * d_.intermediate, d_.mlp_bias, "inputs: [" + norm_ + "]");
    if (d_.gated) {
      text_.layer("gate", "gated", "activation: " + d_.activation);
    } else {
      text_.activation(d_.activation);
    }
    text_.linear("contract", d_.hidden, d_.mlp_bias);
    return end_branch("contract", "drop2");
  }

  // A mixture of experts. Returns what the layer adds to its input.
  std::string write_experts() {
    const DecoderExperts& e = d_.experts;
    const std::string experts = "experts: " + std::to_string(e.count);
    const auto product = [&](const char* name, const char* input, int features) {
      text_.layer(name, "expert_linear",
                  "inputs: [" + std::string(input) + ", router], " + experts +
                      ", features: " + std::to_string(features) + ", bias: " + text_of(e.bias));
    };
    const std::string groups =
        e.groups == 1 ? "" : ", groups: " + std::to_string(e.groups) + ", top_groups: " + std::to_string(e.top_groups);
    text_.layer("router", "router",
                experts + ", top: " + std::to_string(e.top) + groups + ", bias: " + text_of(e.router_bias));
    if (e.latent > 0) {
      text_.linear("narrow", e.latent, false, "inputs: [" + norm_ + "]");
    }
    text_.layer("dispatch", "dispatch", "inputs: [" + (e.latent > 0 ? "narrow" : norm_) + ", router]");
    product("expand", "dispatch", (d_.gated ? 2 : 1) * e.intermediate);
    if (d_.gated) {
      text_.layer("gate", d_.experts.clamped ? "clamped_gated" : "gated",
                  "inputs: [expand, router], activation: " + d_.activation);
    } else {
      text_.layer("gate", d_.activation);
    }
    product("contract", "gate", e.latent > 0 ? e.latent : d_.hidden);
    text_.layer("combine", "combine", "inputs: [contract, router]");
    if (e.latent > 0) {
      text_.linear("widen", d_.hidden, false);
    }
    return std::string(e.latent > 0 ? "widen" : "combine") + (e.shared > 0 ? ", " + write_shared_expert() : "");
  }

  std::string write_shared_expert() {
    const DecoderExperts& e = d_.experts;
    text_.linear("shared_expand", (d_.gated ? 2 : 1) * e.shared, d_.mlp_bias, "inputs: [" + norm_ + "]");
    text_.layer("shared_gate", d_.gated ? "gated" : d_.activation, d_.gated ? "activation: " + d_.activation : "");
    text_.linear("shared_contract", d_.hidden, d_.mlp_bias);
    if (!e.shared_gate) {
      return "shared_contract";
    }
    text_.linear("share", 1, false, "inputs: [" + norm_ + "]");
    text_.layer("share_sigmoid", "sigmoid");
    text_.layer("shared", "mul", "inputs: [shared_contract, share_sigmoid]");
    return "shared";
  }

  const Decoder& d_;
  WorkloadText text_;
  std::vector<DecoderLayer> forms_; ///< those that have a block, in its order
  std::string attention_;           ///< the layer that ends the branch of attention
  std::string norm_;                ///< the norm that the feed-forward part reads
};

} // namespace

std::string workload_of(const Decoder& decoder) { return Writer(decoder).write(); }

} // namespace stagecraft
