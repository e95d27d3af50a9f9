// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/decoder.hpp"

#include <nlohmann/json.hpp>

namespace stagecraft {
namespace {

// The workload file of a decoder.
class Writer {
public:
  explicit Writer(const Decoder& decoder) : d_(decoder) {}

  std::string write() {
    text_ = "name: model\ninput: {shape: [" + std::to_string(d_.sequence) +
            "]}\nblocks:\n  - name: transformer\n    layers:\n";
    write_attention();
    write_feed_forward();
    text_ += "layers:\n";
    add("embedding", "embedding",
        "vocabulary: " + std::to_string(d_.vocabulary) + ", positions: " + std::to_string(d_.positions) +
            ", features: " + std::to_string(d_.hidden));
    if (d_.embedding_dropout) {
      add("drop", "dropout");
    }
    text_ += "      - {block: transformer, name: layer, repeat: " + std::to_string(d_.layers) + "}\n";
    add("norm", d_.norm);
    add("head", "linear",
        "features: " + std::to_string(d_.vocabulary) + ", bias: false, tied: " + (d_.tied ? "true" : "false"));
    add("loss", "cross_entropy");
    return text_;
  }

private:
  void add(const std::string& name, const std::string& kind, const std::string& attributes = "") {
    text_ += "      - {name: " + name + ", kind: " + kind + (attributes.empty() ? "" : ", " + attributes) + "}\n";
  }

  void add_linear(const std::string& name, int features, bool bias) {
    add(name, "linear", "features: " + std::to_string(features) + ", bias: " + (bias ? "true" : "false"));
  }

  // Dropout, if there is any, after the layer that ends a branch. Returns the branch's end.
  std::string end_branch(const std::string& last, const std::string& dropout) {
    if (d_.dropout) {
      add(dropout, "dropout");
    }
    return d_.dropout ? dropout : last;
  }

  void write_attention() {
    const std::string heads =
        "heads: " + std::to_string(d_.heads) + ", key_value_heads: " + std::to_string(d_.key_value_heads);
    add("norm1", d_.norm);
    add_linear("qkv", (d_.heads + 2 * d_.key_value_heads) * d_.head_width, d_.qkv_bias);
    if (d_.query_key_norm) {
      add("query_key_norm", "query_key_norm", heads);
    }
    if (d_.rotary > 0) {
      add("rotary", "rotary", heads + ", part: " + nlohmann::json(d_.rotary).dump());
    }
    add("attention", "attention",
        heads + ", causal: true" + (d_.window > 0 ? ", window: " + std::to_string(d_.window) : ""));
    add_linear("projection", d_.hidden, d_.projection_bias);
    attention_ = end_branch("projection", "drop1");
    if (!d_.parallel) {
      add("add1", "add", "inputs: [$input, " + attention_ + "]");
    }
  }

  void write_feed_forward() {
    add("norm2", d_.norm, d_.parallel ? "inputs: [$input]" : "");
    add_linear("expand", (d_.gated ? 2 : 1) * d_.intermediate, d_.mlp_bias);
    if (d_.gated) {
      add("gate", "gated", "activation: " + d_.activation);
    } else {
      add(d_.activation, d_.activation);
    }
    add_linear("contract", d_.hidden, d_.mlp_bias);
    const std::string end = end_branch("contract", "drop2");
    if (d_.parallel) {
      add("add", "add", "inputs: [$input, " + attention_ + ", " + end + "]");
    } else {
      add("add2", "add", "inputs: [add1, " + end + "]");
    }
  }

  const Decoder& d_;
  std::string text_;
  std::string attention_; ///< the layer that ends the branch of attention
};

} // namespace

std::string workload_of(const Decoder& decoder) { return Writer(decoder).write(); }

} // namespace stagecraft
