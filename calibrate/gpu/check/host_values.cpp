// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/check/host_values.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "calibrate/gpu/device/cuda_error.hpp"

namespace stagecraft::gpu {
namespace {

template <class T> std::vector<T> read(const void* device, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  STAGECRAFT_CUDA_CHECK(cudaDeviceSynchronize());
  STAGECRAFT_CUDA_CHECK(cudaMemcpy(values.data(), device, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <class T> Values as_numbers(const void* device, std::int64_t count) {
  Values numbers;
  numbers.reserve(static_cast<std::size_t>(count));
  for (const T value : read<T>(device, count)) {
    numbers.push_back(static_cast<double>(static_cast<float>(value)));
  }
  return numbers;
}

} // namespace

Stored stored_as(Precision precision) {
  switch (precision) {
  case Precision::fp16:
    return Stored::fp16;
  case Precision::bf16:
    return Stored::bf16;
  case Precision::fp8:
    return Stored::e4m3;
  default:
    return Stored::fp32;
  }
}

Values read_values(Stored stored, const void* device, std::int64_t count) {
  switch (stored) {
  case Stored::fp16:
    return as_numbers<__half>(device, count);
  case Stored::bf16:
    return as_numbers<__nv_bfloat16>(device, count);
  case Stored::e4m3:
    return as_numbers<__nv_fp8_e4m3>(device, count);
  case Stored::e5m2:
    return as_numbers<__nv_fp8_e5m2>(device, count);
  default:
    return as_numbers<float>(device, count);
  }
}

std::vector<int> read_integers(const int* device, std::int64_t count) { return read<int>(device, count); }
std::vector<unsigned char> read_bytes(const unsigned char* device, std::int64_t count) {
  return read<unsigned char>(device, count);
}

void write_value(float* device, float value) {
  STAGECRAFT_CUDA_CHECK(cudaDeviceSynchronize());
  STAGECRAFT_CUDA_CHECK(cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice));
}

} // namespace stagecraft::gpu
