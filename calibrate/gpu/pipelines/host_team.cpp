// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/host_team.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <system_error>

namespace stagecraft::gpu {
namespace {

// Small values that differ by position, with exact sums.
std::vector<float> values(std::int64_t count) {
  std::vector<float> made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<float>(i * 7 % 11) - 5;
  }
  return made;
}

} // namespace

HostKernel::HostKernel(const Kernel& kernel) {
  const Shape& s = kernel.shape;
  product_ = kernel.op <= Op::attention;
  if (kernel.op == Op::gemm) {
    batch_ = s[0], m_ = s[1], n_ = s[2], k_ = s[3];
  } else if (product_) {
    m_ = n_ = k_ = std::max<std::int64_t>(1, std::llround(std::cbrt(flops_of(kernel) / 2)));
  } else if (kernel.op != Op::launch) {
    m_ = s[0] * s[1];
  }
  first_ = values(product_ ? batch_ * m_ * k_ : m_);
  second_ = values(product_ ? batch_ * k_ * n_ : m_);
  result_.resize(static_cast<std::size_t>(product_ ? batch_ * m_ * n_ : m_));
}

void HostKernel::run(int part, int parts) const {
  const std::int64_t items = product_ ? batch_ * m_ : m_;
  const std::int64_t begin = items * part / parts, end = items * (part + 1) / parts;
  product_ ? multiply(begin, end) : pass(begin, end);
}

// Blocks of the second matrix stay in the cache while rows go by; the innermost loop runs along a row, in vectors.
void HostKernel::multiply(std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t kDepth = 64, kWidth = 512;
  const std::int64_t n = n_, k = k_;
  std::fill(result_.begin() + begin * n, result_.begin() + end * n, 0.0F);
  for (std::int64_t depth = 0; depth < k; depth += kDepth) {
    for (std::int64_t column = 0; column < n; column += kWidth) {
      const std::int64_t width = std::min(kWidth, n - column);
      for (std::int64_t row = begin; row < end; ++row) {
        const float* a = first_.data() + row * k;
        const float* b = second_.data() + row / m_ * k * n + column;
        float* c = result_.data() + row * n + column;
        for (std::int64_t p = depth; p < std::min(k, depth + kDepth); ++p) {
          const float factor = a[p];
          const float* line = b + p * n;
          for (std::int64_t j = 0; j < width; ++j) {
            c[j] += factor * line[j];
          }
        }
      }
    }
  }
}

void HostKernel::pass(std::int64_t begin, std::int64_t end) const {
  constexpr float kHalf = 0.5F;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    result_[at] = kHalf * first_[at] + second_[at];
  }
}

HostTeam::HostTeam(int threads) {
  others_.reserve(static_cast<std::size_t>(threads) - 1);
  try {
    for (int part = 1; part < threads; ++part) {
      others_.emplace_back([this, part, threads] { serve(part, threads); });
    }
  } catch (const std::system_error& failure) {
    end();
    throw std::runtime_error("cannot make " + std::to_string(threads) + " threads: " + failure.what());
  }
}

HostTeam::~HostTeam() { end(); }

void HostTeam::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    share_ = nullptr;
    ++round_;
  }
  begin_.notify_all();
  for (std::thread& other : others_) {
    other.join();
  }
}

void HostTeam::run(const std::function<void(int, int)>& share) {
  const int parts = static_cast<int>(others_.size()) + 1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    share_ = &share;
    left_ = parts - 1;
    ++round_;
  }
  begin_.notify_all();
  share(0, parts);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [&] { return left_ == 0; });
}

void HostTeam::serve(int part, int parts) {
  int seen = 0;
  while (true) {
    const std::function<void(int, int)>* share = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      begin_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      share = share_;
    }
    if (share == nullptr) {
      return;
    }
    (*share)(part, parts);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--left_ == 0) {
      done_.notify_one();
    }
  }
}

} // namespace stagecraft::gpu
