// cuBLASLt without a device: it multiplies small matrices of fp32 on the host, as its documentation says.
// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fake_cuda.hpp"

#include "calibrate/gpu/device/cublaslt.hpp"

namespace stagecraft::gpu {
namespace lt {

struct LibraryContext {};
struct PreferenceOpaque {};
struct DescriptionOpaque {
  int transpose_first = kTransposeNo, transpose_second = kTransposeNo, processors = 0;
  bool fast = false;
};
struct LayoutOpaque {
  cudaDataType type;
  std::int64_t rows, columns, leading, stride;
  int batch;
};

} // namespace lt

namespace {

constexpr int kInvalid = 7;
constexpr std::int64_t kMostComputed = 3 * 64 * 96 * 128; // those that are compared with the host's

std::size_t version() { return 130100; }

int create(lt::Handle* handle) {
  static lt::LibraryContext one;
  *handle = &one;
  return 0;
}

int description_create(lt::Description* description, int, cudaDataType) {
  *description = new lt::DescriptionOpaque;
  return 0;
}

int description_destroy(lt::Description description) {
  delete description;
  return 0;
}

int description_set(lt::Description description, int attribute, const void* value, std::size_t bytes) {
  if (attribute == lt::kDescriptionFastAccumulation && bytes == 1) {
    description->fast = *static_cast<const std::int8_t*>(value) != 0;
    return 0;
  }
  const int number = *static_cast<const int*>(value);
  switch (attribute) {
  case lt::kDescriptionTransposeA:
    description->transpose_first = number;
    return 0;
  case lt::kDescriptionTransposeB:
    description->transpose_second = number;
    return 0;
  case lt::kDescriptionSmCountTarget:
    description->processors = number;
    return 0;
  default:
    return kInvalid;
  }
}

int layout_create(lt::Layout* layout, cudaDataType type, std::uint64_t rows, std::uint64_t columns,
                  std::int64_t leading) {
  *layout =
      new lt::LayoutOpaque{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading, 0, 1};
  return 0;
}

int layout_destroy(lt::Layout layout) {
  delete layout;
  return 0;
}

int layout_set(lt::Layout layout, int attribute, const void* value, std::size_t) {
  if (attribute == lt::kLayoutBatchCount) {
    layout->batch = *static_cast<const std::int32_t*>(value);
  } else if (attribute == lt::kLayoutBatchStride) {
    layout->stride = *static_cast<const std::int64_t*>(value);
  } else {
    return kInvalid;
  }
  return 0;
}

int preference_create(lt::Preference* preference) {
  *preference = new lt::PreferenceOpaque;
  return 0;
}

int preference_destroy(lt::Preference preference) {
  delete preference;
  return 0;
}

int preference_set(lt::Preference, int, const void*, std::size_t) { return 0; }

// A matrix as it enters the product.
struct Operand {
  const lt::LayoutOpaque& layout;
  bool transposed;

  std::int64_t rows() const { return transposed ? layout.columns : layout.rows; }
  std::int64_t columns() const { return transposed ? layout.rows : layout.columns; }
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return transposed ? row * layout.leading + column : column * layout.leading + row;
  }
};

bool is_fp8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

// Of 8 bits only the product of a transposed matrix is known, into bf16 and with at most one operand of gradients.
bool is_known(const Operand& first, const Operand& second, const lt::LayoutOpaque& result) {
  if (!is_fp8(first.layout.type) && !is_fp8(second.layout.type)) {
    return first.layout.type == second.layout.type && result.type == first.layout.type;
  }
  return !fake::state().refuses_fp8 && is_fp8(first.layout.type) && is_fp8(second.layout.type) && first.transposed &&
         !second.transposed && result.type == CUDA_R_16BF &&
         (first.layout.type == CUDA_R_8F_E4M3 || second.layout.type == CUDA_R_8F_E4M3) && first.columns() % 16 == 0 &&
         first.rows() % 16 == 0;
}

bool fits(const Operand& first, const Operand& second, const lt::LayoutOpaque& result) {
  return first.columns() == second.rows() && first.rows() == result.rows && second.columns() == result.columns;
}

int heuristic(lt::Handle, lt::Description description, lt::Layout a, lt::Layout b, lt::Layout, lt::Layout d,
              lt::Preference, int, lt::Heuristic* found, int* count) {
  const Operand first{*a, description->transpose_first == lt::kTransposeYes};
  const Operand second{*b, description->transpose_second == lt::kTransposeYes};
  *found = {};
  found->waves = 1.5F;
  *count = is_known(first, second, *d) ? 1 : 0;
  return fits(first, second, *d) ? 0 : kInvalid;
}

int config(const lt::Algorithm*, int attribute, void* value, std::size_t, std::size_t* written) {
  *static_cast<std::int32_t*>(value) = attribute;
  *written = sizeof(std::int32_t);
  return 0;
}

int matmul(lt::Handle, lt::Description description, const void*, const void* a, lt::Layout a_layout, const void* b,
           lt::Layout b_layout, const void*, const void*, lt::Layout, void* d, lt::Layout layout, const lt::Algorithm*,
           void*, std::size_t, cudaStream_t stream) {
  const Operand first{*a_layout, description->transpose_first == lt::kTransposeYes};
  const Operand second{*b_layout, description->transpose_second == lt::kTransposeYes};
  const std::int64_t m = layout->rows, n = layout->columns, k = first.columns();
  fake::state().product = {a, b, d, description->processors, description->fast};
  fake::spend(stream, static_cast<double>(layout->batch * m * n * k) / fake::kProductRate);
  if (layout->batch * m * n * k > kMostComputed || layout->type != CUDA_R_32F) {
    return 0;
  }
  for (int batch = 0; batch < layout->batch; ++batch) {
    const float* left = static_cast<const float*>(a) + batch * a_layout->stride;
    const float* right = static_cast<const float*>(b) + batch * b_layout->stride;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += left[first.at(i, p)] * right[second.at(p, j)];
        }
        static_cast<float*>(d)[batch * layout->stride + j * layout->leading + i] = sum;
      }
    }
  }
  return 0;
}

} // namespace

CublasLt open_cublaslt(const std::vector<std::string>&) {
  CublasLt lt;
  lt.library = SharedLibrary::open({"libc.so.6"}, {}); // any library that exists
  lt.version = version;
  lt.create = create;
  lt.description_create = description_create;
  lt.description_destroy = description_destroy;
  lt.description_set = description_set;
  lt.layout_create = layout_create;
  lt.layout_destroy = layout_destroy;
  lt.layout_set = layout_set;
  lt.preference_create = preference_create;
  lt.preference_destroy = preference_destroy;
  lt.preference_set = preference_set;
  lt.heuristic = heuristic;
  lt.config = config;
  lt.matmul = matmul;
  return lt;
}

} // namespace stagecraft::gpu
