// Large language models: parameters summed by hand, and forward FLOPs against the formulas that papers count with.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/workload/model_flops.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// Sizes of a model of one kind of layer, as its paper names them.
struct Sizes {
  const char* name;
  double layers, hidden, heads, key_value_heads, head_width, intermediate, vocabulary, sequence;
  double parameters; ///< as published
};

// Parameters of the files on huggingface.co, which `model.num_parameters()` counts.
constexpr Sizes kGated[] = {
    {"tinyllama-1.1b", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 1100048384},
    {"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 6738415616},
    {"llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000, 4096, 68976648192},
    {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 8030261248},
    {"llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 8192, 70553706496},
    {"llama3-405b", 126, 16384, 128, 8, 128, 53248, 128256, 8192, 405853388800},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 4096, 7615616512},
    {"qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064, 4096, 32763876352},
    {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, 4096, 32762123264},
};

std::string text_of(const std::string& name) { return read_file(test::source_dir() / "workloads" / (name + ".yaml")); }

// The same model where every query sees every key.
ModelGraph without_mask(const std::string& name) {
  std::string text = text_of(name);
  const std::string mask = "causal: true";
  const std::size_t at = text.find(mask);
  REQUIRE(at != std::string::npos);
  return test::workload(text.replace(at, mask.size(), "causal: false"));
}

// Weights of a layer that products read: queries, keys and values; the output's projection; gate, up and down.
double products_of(const Sizes& m) {
  const double queries = m.heads * m.head_width;
  const double keys = m.key_value_heads * m.head_width;
  return m.hidden * (queries + 2 * keys) + queries * m.hidden + 3 * m.hidden * m.intermediate;
}

TEST_CASE("models of gated layers have the published parameters", "[workload][conformance]") {
  for (const Sizes& m : kGated) {
    INFO(m.name);
    const double head_norms = std::string(m.name).starts_with("qwen3") ? 2 * m.head_width : 0;
    const double biases =
        std::string(m.name).starts_with("qwen2.5") ? (m.heads + 2 * m.key_value_heads) * m.head_width : 0;
    const double layer = products_of(m) + 2 * m.hidden + head_norms + biases; // two norms
    const double embedding = m.vocabulary * m.hidden;
    const double sum = m.layers * layer + 2 * embedding + m.hidden; // the head has a table of its own; the last norm
    CHECK(sum == m.parameters);
    CHECK(totals_of(test::workload(text_of(m.name))).parameters == m.parameters);
  }
}

// Chowdhery et al. 2022 (PaLM), appendix B: 6 N + 12 L H Q T FLOPs a token for forward and backward, a third of that
// forward; L layers, H heads of Q features, T tokens. Attention counts every pair of a query and a key. N are the
// parameters that take part in products: a table that is only looked up does not (PaLM's is the head's too). What
// stands in no product (norms, rotary, gates, the loss) is left out by the formula and is below 0.1 % of it.
TEST_CASE("forward FLOPs of gated layers are PaLM's 2 N + 4 L H Q T a token", "[workload][conformance]") {
  for (const Sizes& m : kGated) {
    INFO(m.name);
    const double weights = m.layers * products_of(m) + m.vocabulary * m.hidden;
    const double width = m.heads * m.head_width;
    const double attention = 4 * m.layers * width * m.sequence;
    const ModelGraph full = without_mask(m.name);
    CHECK(2 * test::multiply_adds(full) == test::near(m.sequence * (2 * weights + attention)));
    CHECK(totals_of(full).forward.value == Approx(m.sequence * (2 * weights + attention)).epsilon(1e-3));
    // The shipped model computes, and counts, only the T (T + 1) / 2 pairs that the causal mask leaves.
    const double causal = attention * (m.sequence + 1) / (2 * m.sequence);
    const ModelGraph shipped = test::workload(text_of(m.name));
    CHECK(2 * test::multiply_adds(shipped) == test::near(m.sequence * (2 * weights + causal)));
    CHECK(totals_of(shipped).forward.value == Approx(m.sequence * (2 * weights + causal)).epsilon(1e-3));
  }
}

// The same formula, read off the shipped model in spite of its mask.
TEST_CASE("model FLOPs are PaLM's 6 N + 12 L H Q T a token", "[workload][conformance]") {
  for (const Sizes& m : kGated) {
    INFO(m.name);
    const double weights = m.layers * products_of(m) + m.vocabulary * m.hidden;
    const double attention = m.layers * m.heads * m.head_width * m.sequence;
    const ModelGraph model = test::workload(text_of(m.name));
    CHECK(tokens_of(model) == m.sequence);
    CHECK(model_flops(model).value == test::near(m.sequence * (6 * weights + 12 * attention)));
  }
}

// Every other of gpt-oss 20B's 24 layers looks at 128 tokens: 64 heads of 64 features.
TEST_CASE("attention in a window counts the keys of the window", "[workload]") {
  const ModelGraph model = load_model(test::source_dir() / "workloads/gpt-oss-20b.yaml");
  const double tokens = tokens_of(model), all = 12 * 64 * 64 * tokens * tokens, window = 12 * 64 * 64 * tokens * 128;
  double attention = 0;
  for (const Operator& op : model.operators) {
    attention += op.kind == KernelKind::attention ? 3 * product_flops(op).value : 0;
  }
  CHECK(attention == test::near(12 * (all + window)));
}

TEST_CASE("a model that looks nothing up has no tokens", "[workload]") {
  CHECK(tokens_of(test::workload(text_of("vgg16"))) == 0);
  CHECK(model_flops(test::workload(text_of("vgg16"))).value > 0);
}

// A mixture: `top` of `experts` beside each other, each of `inside` features.
struct Mixture {
  const char* name;
  double layers, hidden, heads, key_value_heads, experts, top, inside, vocabulary, sequence;
  double parameters, active; ///< as published, and of them what a token meets
};

// Parameters of the files on huggingface.co; heads of 128 features.
constexpr Mixture kMixtures[] = {
    {"mixtral-8x7b", 32, 4096, 32, 8, 8, 2, 14336, 32000, 4096, 46702792704, 12879925248},
    {"mixtral-8x22b", 56, 6144, 48, 8, 8, 2, 16384, 32000, 4096, 140620634112, 39152031744},
    {"qwen3-30b-a3b", 48, 2048, 32, 4, 128, 8, 768, 151936, 4096, 30532122624, 3353032704},
};

// Weights in products that a token meets, `experts` of each layer's.
double products_of(const Mixture& m, double experts) {
  constexpr double kWidth = 128;
  return m.hidden * kWidth * (2 * m.heads + 2 * m.key_value_heads) + m.hidden * m.experts +
         experts * 3 * m.hidden * m.inside;
}

TEST_CASE("mixtures of experts have the published parameters, and FLOPs of those that a token meets",
          "[workload][conformance]") {
  for (const Mixture& m : kMixtures) {
    INFO(m.name);
    const double head_norms = std::string(m.name).starts_with("qwen3") ? 2 * 128 : 0;
    const double rest = m.layers * (2 * m.hidden + head_norms) + 2 * m.vocabulary * m.hidden + m.hidden;
    CHECK(m.layers * products_of(m, m.experts) + rest == m.parameters);
    CHECK(m.layers * products_of(m, m.top) + rest == m.active);
    const ModelGraph model = test::workload(text_of(m.name));
    CHECK(totals_of(model).parameters == m.parameters);
    CHECK(totals_of(model).active == m.active);
    // PaLM's 2 N + 4 L H Q T a token, with the N that a token meets in products, and the pairs that the mask leaves.
    const double weights = m.layers * products_of(m, m.top) + m.vocabulary * m.hidden;
    const double attention = 2 * m.layers * m.heads * 128 * (m.sequence + 1);
    // A router's softmax, 5 a logit, stands in its product.
    const double routers = 5 * m.layers * m.experts;
    CHECK(2 * test::multiply_adds(model) == test::near(m.sequence * (2 * weights + attention + routers)));
    CHECK(totals_of(model).forward.value == Approx(m.sequence * (2 * weights + attention)).epsilon(2e-3));
  }
}

// DeepSeek-AI 2024: "671B total parameters with 37B activated for each token"; the files' main model counts
// 671,026,419,200. OpenAI 2025, table 1: 116.83 billion, 5.13 active; that table leaves the embedding out of the active
// ones, 201,088 x 2,880.
TEST_CASE("the largest mixtures have the published parameters", "[workload][conformance]") {
  const ModelTotals deepseek = totals_of(test::workload(text_of("deepseek-v3")));
  CHECK(deepseek.parameters == 671026419200);
  CHECK(deepseek.active == Approx(37e9).epsilon(0.02));
  const ModelTotals oss = totals_of(test::workload(text_of("gpt-oss-120b")));
  CHECK(oss.parameters == 116829156672);
  CHECK(oss.active - 201088. * 2880 == Approx(5.13e9).epsilon(1e-3));
  const ModelTotals small = totals_of(test::workload(text_of("gpt-oss-20b"))); // 20.91 billion, 3.61 active
  CHECK(small.parameters == 20914757184);
  CHECK(small.active - 201088. * 2880 == Approx(3.61e9).epsilon(1e-3));
}

// NVIDIA 2025: 31.6 billion parameters, 3.2 active, which leaves the embedding out. 23 mixers of state spaces, 23
// mixtures, 6 attentions, each behind a norm.
TEST_CASE("a hybrid of state spaces, attention and experts has the published parameters", "[workload][conformance]") {
  constexpr double h = 2688, kInner = 4096, kVectors = 2 * 8 * 128, kHeads = 64, kTokens = 8192;
  constexpr double kMixer = h * (2 * kInner + kVectors + kHeads) + kInner * h;        // products
  constexpr double kShared = 2 * h * 3712, kExpert = 2 * h * 1856, kRouter = h * 128; // products
  constexpr double kAttention = h * 128 * (2 * 32 + 2 * 2);
  constexpr double kElse = 5 * (kInner + kVectors) + 3 * kHeads + kInner + h;
  constexpr double kRest = 23 * kElse + 23 * (128 + h) + 6 * h + 2 * 131072 * h + h;
  const auto parameters = [&](double experts) {
    return 23 * kMixer + 23 * (experts * kExpert + kShared + kRouter) + 6 * kAttention + kRest;
  };
  const ModelGraph model = test::workload(text_of("nemotron-3-nano"));
  CHECK(parameters(128) == 31577940288);
  CHECK(totals_of(model).parameters == parameters(128));
  CHECK(totals_of(model).active == parameters(6));
  CHECK(parameters(6) - 131072 * h == Approx(3.2e9).epsilon(0.02));
  // 2 N a token, and of attention 4 of 32 heads of 128 features for each pair; chunks of 128 of a state space beside.
  const double weights = 23 * kMixer + 23 * (6 * kExpert + kShared + kRouter) + 6 * kAttention + 131072 * h;
  const double attention = 6 * 2 * 32 * 128 * (kTokens + 1);
  const double spaces = 23 * (2 * 128 * 128 * 8 + kHeads * (2 * 128 * 64 + 4 * 128 * 64));
  CHECK(totals_of(model).forward.value == Approx(kTokens * (2 * weights + attention + spaces)).epsilon(3e-3));
}

// Sums over layers of the published sizes; docs of each file say where they are from.
TEST_CASE("encoders, state spaces and multi-token prediction have the published parameters",
          "[workload][conformance]") {
  const auto parameters = [](const char* name) { return totals_of(test::workload(text_of(name))).parameters; };
  const double h = 1024;
  // torchvision's vit_l_16: patches of 16 x 16 x 3; a token and 197 positions; 24 layers; the last norm; 1000 classes.
  CHECK(parameters("vit-large") ==
        (3 * 256 * h + h) + h + 197 * h + 24 * (12 * h * h + 13 * h) + 2 * h + 1000 * (h + 1));
  CHECK(parameters("vit-large") == 304326632);
  // transformers' t5-large: one table; a layer of the encoder 4 h^2 + 2 * 4 h^2 + 2 h, of the decoder 4 h^2 and h more;
  // two tables of 32 biases for 16 heads; two last norms.
  CHECK(parameters("t5-large") ==
        32128 * h + 24 * (12 * h * h + 2 * h) + 24 * (16 * h * h + 3 * h) + 2 * 32 * 16 + 2 * h);
  CHECK(parameters("t5-large") == 737668096);
  // transformers' SwitchTransformers with NeuSight's switchxl4.json: as T5, 32 heads of 128 features, 16,384 inside; in
  // every second layer a router and four experts.
  constexpr double kAttention = 4 * 1024 * 4096, kInside = 2 * 1024 * 16384, kRouted = 4 * (1024 + kInside);
  CHECK(parameters("switch-xl-4") == 32128 * h + 24 * (kAttention + 2 * h) + 24 * (2 * kAttention + 3 * h) +
                                         2 * 12 * (kInside + kRouted) + 2 * 32 * 32 + 2 * h);
  CHECK(parameters("switch-xl-4") == 5267615744);
  // Multiply-adds of encoder and decoder: products of 512 tokens, of 4 * 64 rows of experts, attention of all pairs (24
  // of the encoder, 24 across) and of those before (24), routers, and the head.
  const ModelGraph switched = test::workload(text_of("switch-xl-4"));
  const double weights = 72 * kAttention + 24 * kInside + 24 * 4 * 1024 + 32128 * h;
  const double pairs = (24 + 24) * 512. * 512 + 24 * 512. * 513 / 2;
  CHECK(test::multiply_adds(switched) ==
        Approx(512 * weights + 24 * 256 * kInside + 2 * pairs * 4096).epsilon(1e-3)); // and biases of positions
  // state-spaces/mamba2-2.7b: d = 2560, inner 5120, 80 heads, vectors of 2 * 128, taps of 4 with a bias.
  const double d = 2560, inner = 5120;
  CHECK(parameters("mamba2-2.7b") ==
        50288 * d + d + 64 * (d * (2 * inner + 256 + 80) + (inner + 256) * 5 + 3 * 80 + inner + inner * d + d));
  CHECK(parameters("mamba2-2.7b") == 2702599680);
  // DeepSeek-V3's further layer: one of its sparse layers, a product of 2 h x h, three norms; embedding and head are
  // the model's. Its README: 11.5 billion.
  CHECK(parameters("deepseek-v3-mtp") - parameters("deepseek-v3") == Approx(11.5e9).epsilon(0.01));
}

// Layers of the kinds of Nemotron 3 Nano; tokens reach experts in a space of `latent` features. Published: 120.6 and
// 550 billion without the layers that predict further, which are of attention and experts behind a product of 2 h x h.
TEST_CASE("Nemotron 3 Super and Ultra have the published parameters", "[workload][conformance]") {
  struct HybridSizes {
    double h, latent, inside, shared, inner, spaces, attentions, published;
  };
  for (const auto& [name, of] :
       {std::pair{"nemotron-3-super", HybridSizes{4096, 1024, 2688, 5376, 8192, 40, 8, 120.6e9}},
        std::pair{"nemotron-3-ultra", HybridSizes{8192, 2048, 5120, 10240, 16384, 48, 12, 550e9}}}) {
    CAPTURE(name);
    const double h = of.h, heads = of.inner / 64, vectors = 2 * 8 * 128;
    const double mixer =
        h * (2 * of.inner + vectors + heads) + of.inner * h + 5 * (of.inner + vectors) + 3 * heads + of.inner + h;
    const double experts = 512 * 2 * of.latent * of.inside + 2 * h * of.latent + 2 * h * of.shared + 512 * (h + 1) + h;
    const double attention = h * 128 * (h / 128 + 2 * 2) + h * h + h;
    const double ahead = of.spaces * (mixer + experts) + of.attentions * attention + 2 * 131072 * h + h;
    const double further = 2 * h * h + attention + experts + 3 * h;
    CHECK(ahead == Approx(of.published).epsilon(2e-3));
    CHECK(totals_of(test::workload(text_of(name))).parameters == ahead + 2 * further);
  }
  const auto parameters = [](const char* name) { return totals_of(test::workload(text_of(name))).parameters; };
  const double h = 2688;
  const double experts = 128 * 2 * h * 1856 + 2 * h * 3712 + 128 * (h + 1) + h;
  const double attention = h * 128 * (2 * 32 + 2 * 2) + h;
  CHECK(parameters("nemotron-3.5-lightning") - parameters("nemotron-3-nano") ==
        2 * (2 * h * h + attention + experts + 3 * h));
}

// Where one operator does not tell its dimensions, ranks can share neither tokens nor experts.
TEST_CASE("operators of language models tell their dimensions", "[workload]") {
  for (const std::string name :
       {"gpt3-175b", "llama3-8b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v3", "deepseek-v3-mtp", "gpt-oss-20b",
        "t5-large", "mamba2-2.7b", "nemotron-3-nano", "nemotron-3-super"}) {
    for (const Operator& op : load_model(test::source_dir() / ("workloads/" + name + ".yaml")).operators) {
      INFO(name << ": " << op.name);
      CHECK(op.signature);
    }
  }
}

constexpr Sizes kGpt[] = {
    {"gpt3-175b", 96, 12288, 96, 96, 128, 4 * 12288, 51200, 2048, 174615846912},
    {"gpt3-1t", 128, 25600, 160, 160, 160, 4 * 25600, 51200, 2048, 1008038758400},
};

// Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), which leaves out the last
// normalization, 2 h. Table 1 gives 174.6 and 1008.0 billion.
TEST_CASE("GPT models have the parameters of Narayanan et al. 2021", "[workload][conformance]") {
  for (const Sizes& m : kGpt) {
    INFO(m.name);
    const double l = m.layers, h = m.hidden, V = m.vocabulary, s = m.sequence;
    CHECK(12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h == m.parameters);
    CHECK(totals_of(test::workload(text_of(m.name))).parameters == m.parameters);
  }
}

// Narayanan et al. 2021, equation 3: F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)) for an iteration with recompute:
// layers count forward four times (forward, recompute, twice for backward), the head, 6 B s h V, three times. So
// forward is 24 s l h^2 (1 + s / (6 h)) + 2 s h V a sequence, where every query sees every key.
TEST_CASE("forward FLOPs of GPT models are those of Narayanan et al. 2021", "[workload][conformance]") {
  for (const Sizes& m : kGpt) {
    INFO(m.name);
    const double l = m.layers, h = m.hidden, V = m.vocabulary, s = m.sequence;
    const double published = 24 * s * l * h * h * (1 + s / (6 * h)) + 2 * s * h * V;
    const ModelGraph full = without_mask(m.name);
    CHECK(2 * test::multiply_adds(full) == test::near(published));
    CHECK(totals_of(full).forward.value == Approx(published).epsilon(1e-3));
    // The shipped model counts the pairs that the causal mask leaves, s (s + 1) / 2 of s^2.
    const double hidden_pairs = 4 * s * s * l * h * (1 - (s + 1) / (2 * s));
    CHECK(2 * test::multiply_adds(test::workload(text_of(m.name))) == test::near(published - hidden_pairs));
  }
}

} // namespace
} // namespace stagecraft
