// Matrix products by cuBLASLt, in the layouts of the three passes. Matrices lie row by row, weights as output x input:
//   forward          Y[m,n] = X[m,k] W[n,k]'
//   backward-input  dX[m,n] = dY[m,k] W[k,n]
//   backward-weight dW[m,n] = dY[k,m]' X[k,n]
// cuBLASLt takes matrices column by column, so that it computes C' = B' A' with our B first. In fp8 devices of 9.0
// multiply only as forward does, so that the other passes too read operands that were transposed before.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64}
                                   << 20; // cuBLAS recommends this for devices of 9.0, less for earlier ones

void check_lt(int status, const char* call) {
  if (status != 0) {
    throw DeviceError(std::string("cuBLASLt: ") + call + " says " + std::to_string(status));
  }
}

struct Types {
  cudaDataType first, second, result;
  int compute;
};

// In fp8 gradients, the second operand of backward passes, have one more bit of exponent.
Types types_of(const Kernel& kernel) {
  switch (kernel.precision) {
  case Precision::fp8:
    return {CUDA_R_8F_E4M3, kernel.pass == Pass::forward ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2, CUDA_R_16BF,
            lt::kCompute32F};
  case Precision::bf16:
    return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, lt::kCompute32F};
  case Precision::fp16:
    return {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, lt::kCompute32F};
  case Precision::tf32:
    return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, lt::kCompute32FFastTf32};
  default:
    return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, lt::kCompute32F};
  }
}

/// cuBLASLt's descriptors of a product, which it destroys.
class Product {
public:
  Product(Session& session, const Kernel& kernel, int processors);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void choose_algorithm();
  void run(const void* a, const void* b, void* c, void* workspace, cudaStream_t stream) const;
  std::string variant() const;

private:
  lt::Layout layout(cudaDataType type, std::int64_t rows, std::int64_t columns) const;

  const CublasLt& lt_;
  lt::Handle handle_;
  std::int64_t batch_;
  lt::Description description_ = nullptr;
  lt::Layout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  lt::Heuristic choice_{};
};

Product::Product(Session& session, const Kernel& kernel, int processors)
    : lt_(session.lt), handle_(session.lt_handle()), batch_(kernel.shape[0]) {
  const std::int64_t m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  const Types types = types_of(kernel);
  const bool fp8 = kernel.precision == Precision::fp8;
  const int transpose_first = fp8 || kernel.pass == Pass::forward ? lt::kTransposeYes : lt::kTransposeNo;
  const int transpose_second = !fp8 && kernel.pass == Pass::backward_weight ? lt::kTransposeYes : lt::kTransposeNo;
  check_lt(lt_.description_create(&description_, types.compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const auto set = [&](int attribute, auto value) {
    check_lt(lt_.description_set(description_, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
  };
  set(lt::kDescriptionTransposeA, transpose_first);
  set(lt::kDescriptionTransposeB, transpose_second);
  if (processors > 0) {
    set(lt::kDescriptionSmCountTarget, processors);
  }
  if (fp8 && kernel.pass == Pass::forward) { // as frameworks do: sums of gradients are kept more exact
    set(lt::kDescriptionFastAccumulation, std::int8_t{1});
  }
  first_ = transpose_first == lt::kTransposeYes ? layout(types.first, k, n) : layout(types.first, n, k);
  second_ = transpose_second == lt::kTransposeYes ? layout(types.second, m, k) : layout(types.second, k, m);
  result_ = layout(types.result, n, m);
}

Product::~Product() {
  for (lt::Layout one : {first_, second_, result_}) {
    if (one != nullptr) {
      lt_.layout_destroy(one);
    }
  }
  if (description_ != nullptr) {
    lt_.description_destroy(description_);
  }
}

lt::Layout Product::layout(cudaDataType type, std::int64_t rows, std::int64_t columns) const {
  lt::Layout made = nullptr;
  check_lt(lt_.layout_create(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
           "cublasLtMatrixLayoutCreate");
  if (batch_ > 1) {
    const auto count = static_cast<std::int32_t>(batch_);
    const std::int64_t stride = rows * columns;
    check_lt(lt_.layout_set(made, lt::kLayoutBatchCount, &count, sizeof(count)), "cublasLtMatrixLayoutSetAttribute");
    check_lt(lt_.layout_set(made, lt::kLayoutBatchStride, &stride, sizeof(stride)), "cublasLtMatrixLayoutSetAttribute");
  }
  return made;
}

void Product::choose_algorithm() {
  lt::Preference preference = nullptr;
  check_lt(lt_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t most = kWorkspace;
  int found = 0;
  int status = lt_.preference_set(preference, lt::kPreferenceWorkspace, &most, sizeof(most));
  if (status == 0) {
    status = lt_.heuristic(handle_, description_, first_, second_, result_, result_, preference, 1, &choice_, &found);
  }
  lt_.preference_destroy(preference);
  check_lt(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0 || choice_.state != 0) {
    throw DeviceError("cuBLASLt knows no algorithm for this product");
  }
}

void Product::run(const void* a, const void* b, void* c, void* workspace, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  check_lt(lt_.matmul(handle_, description_, &one, b, first_, a, second_, &zero, c, result_, c, result_,
                      &choice_.algorithm, workspace, kWorkspace, stream),
           "cublasLtMatmul");
}

std::string Product::variant() const {
  const auto config = [&](int attribute) {
    std::int32_t value = -1;
    std::size_t written = 0;
    lt_.config(&choice_.algorithm, attribute, &value, sizeof(value), &written);
    return value;
  };
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "tile %d, stages %d, split-k %d, waves %.3g", config(lt::kConfigTile),
                config(lt::kConfigStages), config(lt::kConfigSplitK), static_cast<double>(choice_.waves));
  return text.data();
}

} // namespace

Operation prepare_gemm(Session& session, const Kernel& kernel, cudaStream_t stream, int processors) {
  const std::int64_t batch = kernel.shape[0], m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  const auto product = std::make_shared<Product>(session, kernel, processors);
  product->choose_algorithm();
  const void* a = session.arena.take_gaussian(kernel.precision, batch * m * k, stream);
  const void* b = session.arena.take_gaussian(kernel.precision, batch * k * n, stream);
  void* c = session.arena.take_gaussian(result_of(kernel.precision), batch * m * n, stream);
  session.workspace.reset();
  void* workspace = session.workspace.take(kWorkspace);
  return {[=](cudaStream_t on) { product->run(a, b, c, workspace, on); }, product->variant()};
}

} // namespace stagecraft::gpu
