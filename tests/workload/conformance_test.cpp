// Every shipped workload obeys the laws and matches what was published; a new file is tested without a new test.
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/import/onnx_operators.hpp"
#include "sim/workload/layer/layers.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "workloads")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_connected(const ModelGraph& graph) {
  std::vector<bool> seen(graph.operators.size(), false);
  std::vector<OperatorId> open = {0};
  seen[0] = true;
  while (!open.empty()) {
    const OperatorId v = open.back();
    open.pop_back();
    for (const auto* list : {&graph.predecessors[v], &graph.successors[v]}) {
      for (const OperatorId next : *list) {
        if (!seen[next]) {
          seen[next] = true;
          open.push_back(next);
        }
      }
    }
  }
  return std::all_of(seen.begin(), seen.end(), [](bool is_seen) { return is_seen; });
}

void check_pass(const Pass& pass) {
  CHECK((std::isfinite(pass.flops.value) && pass.flops.value >= 0));
  CHECK((std::isfinite(pass.moved_elements) && pass.moved_elements >= 0));
  CHECK((std::isfinite(pass.moved_parameters) && pass.moved_parameters >= 0));
  CHECK(pass.kernels >= 0);
}

TEST_CASE("every shipped workload is one connected, acyclic, positive graph", "[workload][conformance]") {
  REQUIRE(shipped().size() >= 12);
  for (const auto& file : shipped()) {
    INFO(file.filename());
    const yaml::Node document = yaml::load(file);
    CHECK(document.find("sources") != nullptr);
    const ModelGraph graph = load_workload(document);
    CHECK(graph.name == file.stem());
    CHECK_FALSE(graph.description.empty());
    CHECK(is_connected(graph));
    CHECK(graph.input_elements > 0);
    for (int v = 0; v < graph.size(); ++v) {
      const Operator& op = graph.operators[v];
      INFO(op.name);
      for (const OperatorId before : graph.predecessors[v]) {
        CHECK(before < v);
      }
      for (const Pass& pass : {op.forward, op.backward_input, op.backward_weight}) {
        check_pass(pass);
      }
      CHECK(op.output_elements > 0);
      CHECK(op.stash_elements >= 0);
      CHECK((op.parameters > 0) <= (op.backward_weight.kernels > 0));
    }
    CHECK(std::count_if(graph.successors.begin(), graph.successors.end(),
                        [](const auto& list) { return list.empty(); }) == 1); // the loss
  }
}

// Tables of measured runs find a file by letters and digits of its names.
TEST_CASE("no two workloads have a name in common", "[workload][conformance]") {
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    INFO(name);
    std::string letters;
    std::copy_if(name.begin(), name.end(), std::back_inserter(letters),
                 [](unsigned char c) { return std::isalnum(c) != 0; });
    CHECK(known.insert(lower_case(letters)).second);
  };
  for (const auto& file : shipped()) {
    const yaml::Node document = yaml::load(file);
    add(document.find("name")->text);
    for (const yaml::Node* other : yaml::Map(document, "workload").list("also_called")) {
      add(other->text);
    }
  }
  CHECK(known.size() > shipped().size());
}

struct Published {
  double parameters, giga_multiply_adds;
  double rest = 0.01; ///< what all else adds to the work of a forward pass, as a share of it
};

// Parameters: torchvision 0.14 and 0.15 (ImageNet), kuangliu/pytorch-cifar (CIFAR-10), Caffe's bvlc_googlenet
// (Inception-v1), transformers (GPT-2, BERT with both heads). Multiply-adds: the same sources; GPT-2 and BERT by the
// sums below.
const std::map<std::string, Published> kPublished = {
    {"alexnet", {61100840, 0.714}},
    {"vgg16", {138357544, 15.47}},
    {"vgg19", {143667240, 19.632}},
    {"resnet50", {25557032, 4.089}},
    {"resnet18", {11689512, 1.8141}},
    {"resnet34", {21797672, 3.6638}},
    {"resnet101", {44549160, 7.801}},
    {"resnet152", {60192808, 11.514}},
    {"wide-resnet50", {68883240, 11.398}},
    {"wide-resnet101", {126886696, 22.753}},
    {"resnext50-32x4d", {25028904, 4.2305}},
    {"resnext101-32x4d", {44177704, 7.970}},
    {"vgg11", {132863336, 7.6091}},
    {"vgg13", {133047848, 11.309}},
    {"efficientnet-b0", {5288548, 0.3858, 0.09}},
    {"efficientnet-b4", {19341616, 4.3938, 0.06}},
    {"mobilenet-v2", {3504872, 0.3008, 0.04}},
    // Models of NVIDIA's DeepLearningExamples, and of kakaobrain/torchgpipe, built and counted.
    {"se-resnext101-32x4d", {45251128, 7.9710}},
    {"ssd300-v1.1", {22894902, 20.151}},
    {"jasper-10x5", {332632349, 279.31}},
    {"amoebanet-d-18-128", {31694440, 3.799, 0.02}},
    {"amoebanet-d-18-208", {81505540, 10.0186}},
    {"amoebanet-d-18-256", {122470120, 15.1701}},
    {"densenet121", {7978856, 2.834}},
    {"squeezenet", {1248424, 0.819}},
    {"inception-v1", {6998552, 1.582}},
    {"inception-v3", {23834568, 5.713}},
    {"vgg16-cifar10", {14728266, 0.313}},
    {"resnet50-cifar10", {23520842, 1.298}},
    {"densenet121-cifar10", {6956298, 0.888}},
    // 4 * 2048 * 24 layers * 12 h^2 = 309.2 M weights for 512 tokens: 154.6 G; attention 24 * 2 * 512^2 * 1024 = 12.9
    // G; the masked-language head 512 * (1024^2 + 1024 * 30522) = 16.5 G: 184.0 G.
    {"bert-large", {336226108, 184.04}},
    // 512 * 12 layers * 12 * 768^2 = 43.5 G, attention 12 * 2 * 512^2 * 768 = 4.8 G, head 512 * (768^2 + 768 * 30522) =
    // 12.3 G. Then 384 tokens and two numbers for each, and 42 tokens and two for all.
    {"bert-base", {110106428, 60.6}},
    {"bert-base-squad", {108893186, 35.34}},
    {"bert-base-sentiment140", {109483778, 3.6}},
    // Filters 32 * 41 * 11 and 32^2 * 21 * 11 with biases, norms 2 * 2 * 32; LSTMs 2 * 4 * 1024 * (1312 + 1024 + 2),
    // then 4 of 2 * 4 * 1024 * 2050; norms 5 * 2048; letters 29 * 1024. Multiply-adds: 81 * 615 and 41 * 615 pixels of
    // filters, 615 steps of the rest.
    {"deepspeech2", {86618400, 59.76}},
    // 1024 tokens * (12 layers * 12 * 768^2 + 768 * 50257) = 126.5 G, causal attention 12 * 1024 * 1025 * 768 = 9.67 G.
    {"gpt2", {124439808, 136.17}},
    // 1024 * (24 * 12 * 1024^2 + 1024 * 50257) = 361.9 G, causal attention 24 * 1024 * 1025 * 1024 = 25.8 G.
    {"gpt2-medium", {354823168, 387.73}},
    // 1024 * (48 * 12 * 1600^2 + 1600 * 50257) = 1592.3 G, causal attention 48 * 1024 * 1025 * 1600 = 80.6 G.
    {"gpt2-xl", {1557611200, 1672.9}},
    // Embeddings 2 * 32320 * 1024; encoder 2 * 4 * 1024 * (2048 + 2) + 4 * 1024 * (3072 + 2) + 6 * 4 * 1024 * 2050;
    // decoder 4 * 1024 * 2050 + 7 * 4 * 1024 * 3074; attention 2 * 1024^2; classifier 32320 * 1025. Multiply-adds: 50
    // steps of all but embeddings and biases, and 2 * 50^2 * 1024 in attention.
    {"gnmt", {277716544, 10.57}},
};

// Parameters: pytorch-cifar100 says 1.3 M. A unit of c channels on s * s pixels has 2 (c/2)^2 + 9 c/2 weights, each
// used s^2 times; one that halves the size, of i to o channels, has i^2 that are used (2 s)^2 times and 18 i + i o of
// s^2.
TEST_CASE("ShuffleNetV2 for 32 x 32 has the parameters and products of its units", "[workload][conformance]") {
  struct Stage {
    double before, channels, units, size;
  };
  double products = 27 * 24 * 32 * 32 + 464 * 1024 * 4 * 4 + 1024 * 100, weights = 27 * 24 + 464 * 1024 + 1024 * 100;
  double others = 3 * (24 + 1024) + 100; // a bias and a norm's two for each channel of a convolution
  for (const auto& [i, o, units, s] : {Stage{24, 116, 3, 16}, Stage{116, 232, 7, 8}, Stage{232, 464, 3, 4}}) {
    const double unit = 2 * (o / 2) * (o / 2) + 9 * o / 2, down = 18 * i + i * o;
    products += (units * unit + down + 4 * i * i) * s * s;
    weights += units * unit + down + i * i;
    others += 3 * (units * 3 * o / 2 + 3 * i + o);
  }
  const ModelGraph graph = load_model(test::source_dir() / "workloads/shufflenetv2-cifar100.yaml");
  CHECK(weights + others == 1360896);
  CHECK(totals_of(graph).parameters == weights + others);
  CHECK(test::multiply_adds(graph) == products);
}

// Dai et al. 2019 with the sizes of NVIDIA's example, which calls the base model one of 192 M parameters. Each layer:
// queries, keys and values of segment and memory, keys of positions, the output, two norms, two products with biases.
// Once: two biases of positions, a bias for each word, and three clusters. Scores are of t queries and 2 t keys, by
// content and by position, of which each head has 64 features; then values. Words of a segment by cluster as the file
// says.
TEST_CASE("Transformer-XL has the parameters and products of its segments and memory", "[workload][conformance]") {
  struct Size {
    const char* name;
    double layers, width, inner, tokens, narrower;
    std::array<double, 4> words;
    double parameters;
  };
  for (const Size& m : {Size{"transformer-xl-base", 16, 512, 2048, 192, 1, {154, 10, 24, 4}, 191950298},
                        Size{"transformer-xl-large", 18, 1024, 4096, 384, 4, {308, 20, 47, 9}, 285167482}}) {
    INFO(m.name);
    const double d = m.width, t = m.tokens;
    double parameters = m.layers * (5 * d * d + 4 * d + 2 * d * m.inner + m.inner + d) + 2 * d + 267735 + 3 * d + 3;
    double products = m.layers * (6 * t * d * d + t * d * d + 2 * t * d * m.inner + 3 * 2 * t * t * d) + 3 * t * d;
    const std::array<double, 4> cluster = {19997, 20000, 160000, 67738};
    for (int i = 0; i < 4; ++i) {
      const double features = d / std::pow(m.narrower, i);
      const double heads = i == 0 ? t : m.words[i]; // each token chooses in the first
      parameters += cluster[i] * features;
      products += heads * cluster[i] * features;
      if (m.narrower > 1) { // to the width of the model, and back; the first of these is not shared
        parameters += features * d * (i == 0 ? 2 : 1);
        products += (m.words[i] + heads) * features * d;
      }
    }
    const ModelGraph graph = load_model(test::source_dir() / "workloads" / (std::string(m.name) + ".yaml"));
    CHECK(parameters == m.parameters);
    CHECK(totals_of(graph).parameters == m.parameters);
    CHECK(test::multiply_adds(graph) == test::near(products));
  }
}

// Two tables of the predictive factors and two of features for users and items; a product and a bias for each layer,
// and for the last (He et al. 2017). 32 factors and three layers for 6,040 users and 3,706 items of MovieLens-1M;
// NVIDIA's example has 64 and three for 138,493 and 26,744.
TEST_CASE("neural collaborative filtering has the parameters of its paper", "[workload][conformance]") {
  struct Size {
    const char* name;
    double rows, factors, features;
    std::array<double, 3> layers;
    double parameters;
  };
  for (const Size& m : {Size{"ncf-movielens-1m", 6040 + 3706, 32, 128, {128, 64, 32}, 1602657},
                        Size{"ncf-movielens-20m", 138493 + 26744, 64, 128, {256, 128, 64}, 31832577}}) {
    INFO(m.name);
    double products = 0, biases = 1, in = 2 * m.features;
    for (const double out : m.layers) {
      products += in * out;
      biases += out;
      in = out;
    }
    products += m.factors + in;
    const ModelGraph graph = load_model(test::source_dir() / "workloads" / (std::string(m.name) + ".yaml"));
    CHECK(m.rows * (m.factors + m.features) + products + biases == m.parameters);
    CHECK(totals_of(graph).parameters == m.parameters);
    CHECK(test::multiply_adds(graph) == products);
  }
}

TEST_CASE("shipped workloads have the published parameters and multiply-adds", "[workload][conformance]") {
  for (const auto& [name, published] : kPublished) {
    INFO(name);
    const ModelGraph graph = load_model(test::source_dir() / "workloads" / (name + ".yaml"));
    const ModelTotals totals = totals_of(graph);
    CHECK(totals.parameters == published.parameters);
    CHECK(test::multiply_adds(graph) / 1e9 == Approx(published.giga_multiply_adds).epsilon(0.01));
    CHECK(totals.forward.value / 2e9 == Approx(published.giga_multiply_adds).epsilon(published.rest));
  }
}

// Parameters: facebook/bart-large, roberta-base, roberta-large, distilbert-base-uncased and t5-base of transformers,
// each with its head of words; fairseq's and seq2seq's own count in NVIDIA's DeepLearningExamples; torchvision's
// vit_b_16.
TEST_CASE("encoders and decoders have the published parameters, and the products of their sizes",
          "[workload][conformance]") {
  const auto check = [](const char* name, double parameters, double products) {
    INFO(name);
    const ModelGraph graph = load_model(test::source_dir() / "workloads" / (std::string(name) + ".yaml"));
    CHECK(totals_of(graph).parameters == parameters);
    CHECK(test::multiply_adds(graph) == Approx(products).epsilon(1e-3)); // and biases of positions
  };
  // Weights of a layer are 12 d^2; of one of a decoder with its look at the encoder 16 d^2. Pairs count twice d.
  const auto encoder = [](double tokens, double layers, double d) {
    return layers * (tokens * 12 * d * d + 2 * tokens * tokens * d);
  };
  const auto decoder = [](double tokens, double layers, double d) {
    return layers * (tokens * 16 * d * d + 2 * tokens * tokens * d + tokens * (tokens + 1) * d);
  };
  check("roberta-base", 124697433, encoder(512, 12, 768) + 512 * (768 + 50265) * 768.);
  check("roberta-large", 355412057, encoder(512, 24, 1024) + 512 * (1024 + 50265) * 1024.);
  check("distilbert", 66985530, encoder(512, 6, 768) + 512 * (768 + 30522) * 768.);
  check("bart-large", 406291456, encoder(512, 12, 1024) + decoder(512, 12, 1024) + 512 * 50265 * 1024.);
  check("t5-base", 222903552, encoder(512, 12, 768) + decoder(512, 12, 768) + 512 * 32128 * 768.);
  check("transformer-big", 210808832, encoder(32, 6, 1024) + decoder(32, 6, 1024) + 32 * 33712 * 1024.);
  check("vit-base", 86567656, encoder(197, 12, 768) + 196 * 3 * 256 * 768. + 768 * 1000);
  // An LSTM has 8 h^2 weights, 12 h^2 where it reads twice as much: the encoder's first in two directions, its second,
  // its third and fourth, the decoder's first, its other three; then queries and keys. Of 50 x 50 pairs the additive
  // scores and the sum of contexts.
  constexpr double h = 1024;
  const double weights = (2 * 8 + 12 + 2 * 8 + 8 + 3 * 12 + 2) * h * h + 32320 * h;
  check("gnmt-v2", 160671297, 50 * weights + 2 * 50 * 50 * h);
}

// Ronneberger et al. 2015, figure 1, with transposed convolutions of 3 x 3: four levels down from 572 pixels, each
// convolution two pixels smaller, and up again.
TEST_CASE("the U-Net for cells has the parameters and products of its figure", "[workload][conformance]") {
  double parameters = 0, products = 0, size = 572, channels = 1;
  const auto convolve = [&](double in, double out, double window, double side) {
    parameters += in * out * window + out;
    products += in * out * window * side * side;
  };
  const auto twice = [&](double in, double out) {
    convolve(in, out, 9, size - 2);
    convolve(out, out, 9, size - 4);
    size -= 4;
    channels = out;
  };
  for (const double c : {64, 128, 256, 512}) {
    twice(channels, c);
    size /= 2;
  }
  twice(channels, 1024);
  for (const double c : {512, 256, 128, 64}) {
    convolve(channels, c, 9, size); // each pixel read writes a window
    size *= 2;
    twice(2 * c, c);
  }
  convolve(channels, 2, 1, size);
  CHECK(size == 388);
  const ModelGraph graph = load_model(test::source_dir() / "workloads/u-net-medical.yaml");
  CHECK(parameters == 34512258);
  CHECK(totals_of(graph).parameters == parameters);
  CHECK(test::multiply_adds(graph) == test::near(products));
}

// torchgpipe's U-Net (B, C): C 2^i channels on level i of five, twice as many for all but the last of the bottom, and
// half as many on the way up, where each level reads what is below it and what it wrote on the way down. No biases.
TEST_CASE("torchgpipe's U-Net has the parameters of its sizes", "[workload][conformance]") {
  constexpr double kConvolutions = 5, kChannels = 64;
  double parameters = 0, products = 0, size = 192, in = 3;
  const auto stack = [&](double first, double inner, double last) {
    const double weights = 9 * (first * inner + (kConvolutions - 2) * inner * inner + inner * last);
    parameters += weights;
    products += weights * size * size;
    in = last;
  };
  for (double c = kChannels; c <= 16 * kChannels; c *= 2) {
    stack(in, c, c);
    size /= 2;
  }
  stack(in, 32 * kChannels, 16 * kChannels);
  for (double c = 16 * kChannels; c >= kChannels; c /= 2) {
    size *= 2;
    stack(in + c, c / 2, c / 2);
  }
  parameters += in;
  products += in * size * size;
  const ModelGraph graph = load_model(test::source_dir() / "workloads/u-net-5-64.yaml");
  CHECK(parameters == 232687328);
  CHECK(totals_of(graph).parameters == parameters);
  CHECK(test::multiply_adds(graph) == test::near(products));
}

// torchgpipe counts 24 modules of AmoebaNet-D (18, D), which its balances divide.
TEST_CASE("AmoebaNet-D is a row of as many blocks as torchgpipe has modules", "[workload][conformance]") {
  const ModelGraph graph = load_model(test::source_dir() / "workloads/amoebanet-d-18-256.yaml");
  const LayerRow row = layer_row_of(graph);
  CHECK(row.layers.size() == 24);
  CHECK(row.before.empty());
  CHECK(row.after.size() == 1); // the loss
}

TEST_CASE("the table of workloads/README.md says what the files say", "[workload][conformance]") {
  const std::string readme = read_file(test::source_dir() / "workloads/README.md");
  for (const auto& file : shipped()) {
    const ModelGraph graph = load_model(file);
    std::string digits = to_text(totals_of(graph).parameters, 0);
    for (size_t at = digits.size(); at > 3; at -= 3) {
      digits.insert(at - 3, ",");
    }
    const std::string row =
        "| " + graph.name + " | " + digits + " | " + to_text(test::multiply_adds(graph) / 1e9, 3) + " |";
    CHECK_THAT(readme, Catch::Contains(row));
  }
}

TEST_CASE("docs/formats names every layer kind and every ONNX operator", "[workload][conformance]") {
  const std::string workload = read_file(test::source_dir() / "docs/formats/workload.md");
  for (const LayerKind& kind : layer_kinds()) {
    INFO(kind.name);
    CHECK_FALSE(kind.help.empty());
    CHECK(
        std::regex_search(workload, std::regex("\n\\| ([a-z0-9_]+, )*" + std::string(kind.name) + "(, [a-z0-9_]+)* ")));
  }
  const std::string onnx = read_file(test::source_dir() / "docs/formats/onnx.md");
  for (const OnnxOperator& row : onnx_operators()) {
    INFO(row.name);
    CHECK(find_by_name(layer_kinds(), row.kind, "kind", {}).name == row.kind);
    CHECK(std::regex_search(onnx, std::regex("\\b" + std::string(row.name) + "\\b")));
  }
}

TEST_CASE("the example of docs/formats/workload.md loads", "[workload][conformance]") {
  const std::string text = read_file(test::source_dir() / "docs/formats/workload.md");
  const std::string fence = "```yaml\n";
  const size_t begin = text.find(fence) + fence.size();
  // Two convolutions of 16 * 16 * 9 + 16 parameters, and 16 * 10 + 10.
  CHECK(totals_of(test::workload(text.substr(begin, text.find("```", begin) - begin))).parameters == 2 * 2320 + 170);
}

} // namespace
} // namespace stagecraft
