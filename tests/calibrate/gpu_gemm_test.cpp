// Matrix products in the layouts of the three passes, computed by a fake cuBLASLt that follows its documentation.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include "tests/calibrate/fake_cuda.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

using Index = std::function<std::int64_t(std::int64_t, std::int64_t)>;

// Largest difference of what was computed from C[i,j] = sum over p of a[a_at(i,p)] b[b_at(p,j)], row by row.
double worst(const Kernel& kernel, const fake::Product& product, const Index& a_at, const Index& b_at) {
  const std::int64_t batch = kernel.shape[0], m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  double difference = 0;
  for (std::int64_t one = 0; one < batch; ++one) {
    const float* a = static_cast<const float*>(product.second) + one * m * k;
    const float* b = static_cast<const float*>(product.first) + one * k * n;
    const float* c = static_cast<const float*>(product.result) + one * m * n;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(a[a_at(i, p)]) * static_cast<double>(b[b_at(p, j)]);
        }
        difference = std::max(difference, std::abs(sum - static_cast<double>(c[i * n + j])));
      }
    }
  }
  return difference;
}

fake::Product run(const std::string& line, int processors = 0) {
  static Session session(0, {});
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  const Operation operation = prepare(session, parse_kernel(line), stream, processors);
  operation.launch(stream);
  return fake::state().product;
}

TEST_CASE("forward is X[m,k] times W[n,k] transposed", "[gpu][gemm]") {
  const std::int64_t k = 7;
  const std::string line = "gemm forward fp32 batch=2 m=3 n=5 k=7";
  CHECK(worst(
            parse_kernel(line), run(line), [&](auto i, auto p) { return i * k + p; },
            [&](auto p, auto j) { return j * k + p; }) < 1e-4);
}

TEST_CASE("backward-input is dY[m,k] times W[k,n]", "[gpu][gemm]") {
  const std::int64_t n = 5, k = 7;
  const std::string line = "gemm backward-input fp32 batch=1 m=3 n=5 k=7";
  CHECK(worst(
            parse_kernel(line), run(line), [&](auto i, auto p) { return i * k + p; },
            [&](auto p, auto j) { return p * n + j; }) < 1e-4);
}

TEST_CASE("backward-weight is dY[k,m] transposed times X[k,n]", "[gpu][gemm]") {
  const std::int64_t m = 3, n = 5;
  const std::string line = "gemm backward-weight fp32 batch=2 m=3 n=5 k=7";
  CHECK(worst(
            parse_kernel(line), run(line), [&](auto i, auto p) { return p * m + i; },
            [&](auto p, auto j) { return p * n + j; }) < 1e-4);
}

TEST_CASE("the heuristic of a partition is told how many multiprocessors it has", "[gpu][gemm]") {
  CHECK(run("gemm forward fp32 batch=1 m=3 n=5 k=7", 16).processors == 16);
  CHECK(run("gemm forward fp32 batch=1 m=3 n=5 k=7").processors == 0);
}

TEST_CASE("in fp8 every pass is the product that the device knows, forward with fast sums", "[gpu][gemm]") {
  CHECK(run("gemm forward fp8 batch=1 m=32 n=48 k=64").fast);
  CHECK_FALSE(run("gemm backward-input fp8 batch=1 m=32 n=48 k=64").fast);
  CHECK_FALSE(run("gemm backward-weight fp8 batch=1 m=32 n=48 k=64").fast);
  CHECK_THROWS_WITH(run("gemm forward fp8 batch=1 m=32 n=48 k=60"), "cuBLASLt knows no algorithm for this product");
}

TEST_CASE("kernels that do not fit are refused before anything is multiplied out", "[gpu][gemm]") {
  CHECK_THROWS_WITH(run("gemm forward fp32 batch=2000000000 m=2000000000 n=2000000000 k=2000000000"),
                    "does not fit into device memory");
}

} // namespace
} // namespace stagecraft::gpu
