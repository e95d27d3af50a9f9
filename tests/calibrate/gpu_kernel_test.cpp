// The harness for GPUs builds without the simulator; a line of a shape list must mean the same to both.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "sim/base/kernel/kernel.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft {
namespace {

// What the harness objects to in a line, or "".
std::string refusal(const std::string& line) {
  try {
    gpu::parse_kernel(line);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool simulator_refuses(const std::string& line) {
  try {
    parse_kernel(line, {"shapes.txt", 1, 1});
  } catch (const InputError&) {
    return true;
  }
  return false;
}

TEST_CASE("the harness and the simulator have the same ops, dimensions, passes and precisions", "[gpu][kernel]") {
  REQUIRE(gpu::kOps.size() == kKernelOps.size());
  for (std::size_t op = 0; op < kKernelOps.size(); ++op) {
    CHECK(gpu::kOps[op].name == kKernelOps[op].name);
    CHECK(gpu::kOps[op].op == static_cast<gpu::Op>(op));
    CHECK(gpu::kOps[op].dimensions == kKernelOps[op].dimensions);
  }
  REQUIRE(gpu::kPasses.size() == kKernelPasses.size());
  for (std::size_t pass = 0; pass < kKernelPasses.size(); ++pass) {
    CHECK(gpu::kPasses[pass] == kKernelPasses[pass].name);
  }
  REQUIRE(gpu::kPrecisions.size() == kPrecisions.size() + 1); // and fp8, for products
  for (std::size_t precision = 0; precision < gpu::kPrecisions.size(); ++precision) {
    CHECK(gpu::kPrecisions[precision] == kNumberFormats[precision].name);
    CHECK(static_cast<double>(gpu::bytes_of(static_cast<gpu::Precision>(precision))) ==
          kNumberFormats[precision].bytes);
  }
}

TEST_CASE("every kernel of the sweep is a line that both read and write alike", "[gpu][kernel]") {
  for (const gpu::Group& group : gpu::plan_sweep({}, {})) {
    for (const gpu::Point& point : group.points) {
      if (const auto* measured = std::get_if<gpu::KernelPoint>(&point)) {
        const std::string line = gpu::to_text(measured->kernel);
        INFO(line);
        const Kernel read = parse_kernel(line, {"shapes.txt", 1, 1});
        CHECK(to_text(read) == line);
        CHECK(gpu::parse_kernel(line) == measured->kernel);
        if (measured->kernel.op <= gpu::Op::attention) {
          CHECK(gpu::flops_of(measured->kernel) == Approx(flops_of(read).value));
        }
      }
    }
  }
}

TEST_CASE("what the simulator refuses in a shape list, the harness refuses", "[gpu][kernel]") {
  const std::string good = "gemm forward bf16 batch=1 m=128 n=256 k=64";
  CHECK(refusal(good).empty());
  CHECK_FALSE(simulator_refuses(good));
  for (const std::string& bad :
       {std::string("gemm"), std::string("gem forward bf16 batch=1 m=128 n=256 k=64"),
        std::string("gemm sideways bf16 batch=1 m=128 n=256 k=64"),
        std::string("gemm forward fp64 batch=1 m=128 n=256 k=64"), std::string("gemm forward bf16 batch=1 m=128 n=256"),
        good + " k=64", good + " c=3", good + " x", std::string("gemm forward bf16 batch=1 m=128 n=256 k=0"),
        std::string("gemm forward bf16 batch=1 m=128 n=256 k=-1"),
        std::string("gemm forward bf16 batch=1 m=128 n=256 k=064"),
        std::string("gemm forward bf16 batch=1 m=128 n=256 k=1.5"),
        std::string("gemm forward bf16 batch=1 m=128 n=256 k=3000000000"), std::string("launch forward fp32 rows=1")}) {
    INFO(bad);
    CHECK(!refusal(bad).empty());
    CHECK(simulator_refuses(bad));
  }
  CHECK(refusal("gem forward bf16").find("allowed: gemm, convolution, attention") != std::string::npos);
}

TEST_CASE("the work of the largest convolution is no overflow", "[gpu][kernel]") {
  const gpu::Kernel kernel = gpu::parse_kernel("convolution forward fp32 n=1 c=1 h=2147483647 w=2147483647 k=1 r=1 s=1 "
                                               "stride=1 padding=2147483647 groups=1");
  const double places = 3.0 * 2147483647 * 3.0 * 2147483647; // more than 2^63
  CHECK(gpu::flops_of(kernel) == Approx(2 * places));
  CHECK(gpu::bytes_of(kernel) == Approx(4 * (2147483647.0 * 2147483647.0 + places + 1)));
}

TEST_CASE("a shape list is read line by line, without comments and repetitions", "[gpu][kernel]") {
  const auto kernels = gpu::parse_shape_list("# of a model\n\n"
                                             "relu forward bf16 rows=3 columns=4 # after the first layer\r\n"
                                             "launch forward fp32\n"
                                             "relu forward bf16 rows=3 columns=4",
                                             "shapes.txt");
  REQUIRE(kernels.size() == 2);
  CHECK(gpu::to_text(kernels[0]) == "relu forward bf16 rows=3 columns=4");
  CHECK(gpu::to_text(kernels[1]) == "launch forward fp32");
  CHECK_THROWS_WITH(gpu::parse_shape_list("\n\nrelu forward bf16 rows=3", "shapes.txt"),
                    "shapes.txt:3: 'columns' is missing or 0; allowed: 1 or more");
}

} // namespace
} // namespace stagecraft
