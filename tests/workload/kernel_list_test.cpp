// The kernels that operators run: their shapes against the costs that the layers' own equations give.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/kernel_list.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

std::vector<std::string> lines_of(const std::string& text, double samples) {
  std::vector<std::string> lines;
  for (const Kernel& kernel : kernels_of(test::workload(text), Precision::bf16, samples)) {
    lines.push_back(to_text(kernel));
  }
  return lines;
}

TEST_CASE("a linear layer is one product forward and one for each gradient", "[workload][kernel]") {
  // 16 rows of 8 features a sample, 3 samples: y[48, 32] = x[48, 8] W[8, 32], dx = dy W', dW[8, 32] = x' dy. The first
  // layer has no gradient to hand on.
  CHECK(lines_of("name: t\ninput: {shape: [16, 8]}\nlayers:\n  - {name: a, kind: linear, features: 8}\n"
                 "  - {name: b, kind: linear, features: 32}\n",
                 3) == std::vector<std::string>{
                           "gemm forward bf16 batch=1 m=48 n=8 k=8", "gemm backward-weight bf16 batch=1 m=8 n=8 k=48",
                           "gemm forward bf16 batch=1 m=48 n=32 k=8", "gemm backward-input bf16 batch=1 m=48 n=8 k=32",
                           "gemm backward-weight bf16 batch=1 m=8 n=32 k=48"});
}

TEST_CASE("images multiply a convolution's first dimension, sequences an attention's", "[workload][kernel]") {
  CHECK(lines_of("name: t\ninput: {shape: [4, 9, 8]}\nlayers:\n"
                 "  - {name: a, kind: conv2d, channels: 6, kernel: 3, stride: 2, padding: 1, groups: 2}\n",
                 5)
            .front() == "convolution forward bf16 n=5 c=4 h=9 w=8 k=6 r=3 s=3 stride=2 padding=1 groups=2");
  CHECK(lines_of("name: t\ninput: {shape: [16, 48]}\nlayers:\n"
                 "  - {name: a, kind: attention, heads: 4, key_value_heads: 1, causal: true}\n",
                 5)
            .front() == "attention forward bf16 batch=5 sequence=16 heads=4 kv_heads=1 head_size=8 causal=1");
}

// 2 heads of 3 + 2 features for queries and keys and of 5 for values: 5 in the mean. Of 4 tokens each head's query and
// key turn 2 features.
TEST_CASE("latent attention is a kernel of its own, beside those that make its keys", "[workload][kernel]") {
  const ModelGraph model = test::latent_attention_model();
  const std::vector<KernelCall>& calls = test::find_operator(model, "x").forward.calls;
  const auto text = [&](std::size_t at) {
    return to_text(kernel_of(calls[at], KernelPass::forward, Precision::bf16, 3));
  };
  REQUIRE(calls.size() == 3);
  CHECK(text(0) == "attention forward bf16 batch=3 sequence=4 heads=2 kv_heads=2 head_size=5 causal=1");
  CHECK(calls[0].variant == kLatentAttention);
  CHECK(text(1) == "rotary forward bf16 rows=48 columns=2");
  CHECK(text(2) == "copy forward bf16 rows=12 columns=10");
}

TEST_CASE("a convolution that sees one position at a time is the product of its positions", "[workload][kernel]") {
  // Of 8 by 8 positions a stride of 2 keeps 16; 5 images have 80 rows.
  const auto first_line = [](const std::string& window) {
    return lines_of("name: t\ninput: {shape: [4, 8, 8]}\nlayers:\n"
                    "  - {name: a, kind: conv2d, channels: 6, " +
                        window + "}\n",
                    5)
        .front();
  };
  CHECK(first_line("kernel: 1") == "gemm forward bf16 batch=1 m=320 n=6 k=4");
  CHECK(first_line("kernel: 1, stride: 2") == "gemm forward bf16 batch=1 m=80 n=6 k=4");
  CHECK_THAT(first_line("kernel: 3, padding: 1"), Catch::StartsWith("convolution"));
  CHECK_THAT(first_line("kernel: 1, groups: 2"), Catch::StartsWith("convolution"));
  CHECK_THAT(first_line("kernel: 1, padding: 1"), Catch::StartsWith("convolution"));
}

TEST_CASE("a convolution that differs in its two directions has no such kernel", "[workload][kernel]") {
  CHECK(lines_of("name: t\ninput: {shape: [1, 8, 8]}\nlayers:\n"
                 "  - {name: a, kind: conv2d, channels: 1, kernel: [1, 7], padding: [0, 3]}\n",
                 1)
            .empty());
}

// Where there are kernels, their arithmetic is that of the pass; of the others the traffic is near.
void check_passes(const ModelGraph& model) {
  for (const Operator& op : model.operators) {
    const std::array passes = {&op.forward, &op.backward_input, &op.backward_weight};
    for (std::size_t i = 0; i < passes.size(); ++i) {
      double flops = 0;
      for (const KernelCall& call : passes[i]->calls) {
        flops += flops_of(kernel_of(call, kKernelPasses[i].pass, Precision::fp32, 3)).value;
      }
      if (row_of(op.kind).matrix && !passes[i]->calls.empty()) {
        CAPTURE(model.name, op.name, i);
        CHECK(flops == test::near(3 * passes[i]->flops.value));
      }
    }
  }
}

TEST_CASE("the kernels of every shipped workload do the arithmetic of its passes", "[workload][kernel][conformance]") {
  int products = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "workloads")) {
    if (entry.path().extension() == ".yaml") {
      const ModelGraph model = load_model(entry.path());
      check_passes(model);
      products += static_cast<int>(kernels_of(model, Precision::fp32, 1).size());
    }
  }
  CHECK(products > 100);
}

TEST_CASE("the batch of an ONNX file is taken out of its kernels", "[workload][kernel][onnx]") {
  const auto folder = test::source_dir() / "../shared/data/onnx";
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder.string() << " is absent");
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") {
      check_passes(load_model(entry.path()));
    }
  }
}

} // namespace
} // namespace stagecraft
