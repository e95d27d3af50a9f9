// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/check/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "calibrate/gpu/check/expected.hpp"
#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

// Errors allowed, from the bits of a precision's mantissa and from functions that trade accuracy for speed.
double allowed(Stored stored) {
  switch (stored) {
  case Stored::fp16:
    return 2e-3;
  case Stored::bf16:
    return 1e-2;
  case Stored::e4m3:
  case Stored::e5m2:
    return 7e-2;
  default:
    return 1e-4;
  }
}

/// The error of a kernel's result that exhausts most of what is allowed.
struct Error {
  double worst = 0, most = 0;

  void take(double error, double tolerance) {
    if (most == 0 || !(error / tolerance <= worst / most)) {
      worst = error;
      most = tolerance;
    }
  }
  void take(const Expected& expected, double tolerance) {
    const auto count = static_cast<std::int64_t>(expected.values.size());
    take(error_of(expected, read_values(expected.stored, expected.at, count)), tolerance);
  }
};

Error check_elementwise(Session& session, const Kernel& kernel, cudaStream_t stream) {
  session.arena.reset();
  const ElementwiseOperands operands = take_elementwise(session, kernel, stream);
  if (kernel.op == Op::cast) {
    write_value(operands.statistics, 2);
  }
  if (kernel.op == Op::embedding && kernel.pass == Pass::forward) { // the table is read in the kernel's precision
    fill_gaussian(kernel.precision, operands.table, kVocabulary * kernel.shape[1], 1, stream);
  }
  const bool dropout = kernel.op == Op::dropout;
  std::vector<Expected> expected = dropout ? std::vector<Expected>() : expected_of(kernel, operands);
  run_elementwise(kernel, operands, stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  if (dropout) {
    expected = expected_of_dropout(kernel, operands);
  }
  Error error;
  for (const Expected& one : expected) {
    error.take(one, allowed(one.stored));
  }
  if (dropout && kernel.pass == Pass::forward) {
    constexpr double kOff = 0.02; // of a random share of thousands of values
    error.take(std::abs(kept_share(kernel, operands) - kKept), kOff);
  }
  return error;
}

Error check_product(Session& session, const Kernel& kernel, cudaStream_t stream) {
  const Operation operation = prepare(session, kernel, stream);
  operation.launch(stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  session.arena.reset(); // so that what is taken now is what prepare() took, in its order
  const std::int64_t batch = kernel.shape[0], m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  const auto taken = [&](std::int64_t count) {
    return session.arena.take(static_cast<std::size_t>(count * bytes_of(kernel.precision)));
  };
  const void* a = taken(batch * m * k);
  const void* b = taken(batch * k * n);
  const void* c = session.arena.take(static_cast<std::size_t>(batch * m * n * bytes_of(result_of(kernel.precision))));
  const Expected expected = expected_product(kernel, a, b, c);
  constexpr double kOfTf32 = 5e-3;
  Error error;
  error.take(expected, kernel.precision == Precision::tf32 ? kOfTf32 : allowed(expected.stored));
  return error;
}

std::vector<Kernel> elementwise_kernels() {
  std::vector<Kernel> kernels;
  for (const OpRow& row : kOps) {
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp8}) {
      for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
        // Vectors divide the first rows, not the second; several warps share the third.
        for (const auto& extents : std::vector<std::vector<std::int64_t>>{{70, 96}, {37, 101}, {40, 9000}}) {
          const Kernel kernel = make_kernel(row.op, pass, precision, extents);
          const bool large = row.op == Op::embedding && extents[1] > 1000; // its table would be
          if (has_elementwise(kernel) && !large) {
            kernels.push_back(kernel);
          }
        }
      }
    }
  }
  return kernels;
}

std::vector<Kernel> products() {
  std::vector<Kernel> kernels;
  for (std::size_t precision = 0; precision < kPrecisions.size(); ++precision) {
    for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
      kernels.push_back(make_kernel(Op::gemm, pass, static_cast<Precision>(precision), {1, 64, 96, 128}));
    }
  }
  kernels.push_back(make_kernel(Op::gemm, Pass::forward, Precision::bf16, {3, 64, 96, 128}));
  return kernels;
}

} // namespace

Checked check_kernels(Session& session, cudaStream_t stream, const std::function<void(const std::string&)>& say) {
  Checked checked;
  std::vector<Kernel> kernels = elementwise_kernels();
  const std::vector<Kernel> of_products = products();
  kernels.insert(kernels.end(), of_products.begin(), of_products.end());
  for (const Kernel& kernel : kernels) {
    try {
      const Error error =
          kernel.op == Op::gemm ? check_product(session, kernel, stream) : check_elementwise(session, kernel, stream);
      const bool right = error.worst <= error.most;
      ++(right ? checked.right : checked.wrong);
      std::array<char, 64> numbers{};
      std::snprintf(numbers.data(), numbers.size(), ": error %.2g, allowed %.2g", error.worst, error.most);
      say((right ? "right  " : "WRONG  ") + to_text(kernel) + numbers.data());
    } catch (const DeviceError& error) {
      if (error.sticky()) {
        throw DeviceError(to_text(kernel) + ": " + error.what(), true);
      }
      ++checked.left_out;
      say("left out: " + to_text(kernel) + ": " + error.what());
    }
  }
  return checked;
}

} // namespace stagecraft::gpu
