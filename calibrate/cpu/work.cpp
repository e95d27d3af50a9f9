// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/work.hpp"

#include <cstring>
#include <stdexcept>

namespace stagecraft::cpu {

const float* Maker::read(Work& work, const char* name, Index count) const {
  const float* values = arena.random(count);
  work.operands.push_back({name, values, count});
  return values;
}

float* Maker::write(Work& work, const char* name, Index count, bool zeroed) const {
  float* values = arena.space(count, zeroed);
  work.operands.push_back({name, values, count});
  return values;
}

Work make_work(const Kernel& kernel, const Maker& maker) {
  if (kernel.precision != gpu::Precision::fp32) {
    throw std::runtime_error("the processor computes in fp32 here");
  }
  switch (kernel.op) {
  case gpu::Op::gemm:
    return make_gemm(kernel, maker);
  case gpu::Op::convolution:
    return make_convolution(kernel, maker);
  case gpu::Op::attention:
    return make_attention(kernel, maker);
  default:
    return make_elementwise(kernel, maker);
  }
}

Work make_copy(std::int64_t bytes, const Maker& maker) {
  Work work;
  work.items = bytes;
  const auto* from = reinterpret_cast<const char*>(maker.arena.random((bytes + 3) / 4));
  auto* to = reinterpret_cast<char*>(maker.arena.space((bytes + 3) / 4));
  work.run = [=](int, Index begin, Index end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  };
  return work;
}

} // namespace stagecraft::cpu
