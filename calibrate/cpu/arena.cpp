// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "sim/base/random.hpp"

namespace stagecraft::cpu {
namespace {

constexpr Index kLine = 16;                   // floats per cache line
constexpr Index kPattern = (1 << 20) + kLine; // number of random floats drawn; the rest of the memory repeats them

float* reserve(Index floats) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(floats) * sizeof(float), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("no memory for operands");
  }
  return static_cast<float*>(memory);
}

// Fills with normally distributed numbers (Box and Muller 1958).
void draw(float* numbers, Index count) {
  Random random(20260717);
  for (Index i = 0; i + 1 < count; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    const double angle = 2 * std::numbers::pi * random.unit();
    numbers[i] = static_cast<float>(radius * std::cos(angle));
    numbers[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

} // namespace

Arena::Arena(std::int64_t bytes) : capacity_(std::max<Index>(bytes / static_cast<Index>(sizeof(float)), kPattern)) {
  random_ = reserve(capacity_);
  space_ = reserve(capacity_);
}

Arena::~Arena() {
  munmap(random_, static_cast<std::size_t>(capacity_) * sizeof(float));
  munmap(space_, static_cast<std::size_t>(capacity_) * sizeof(float));
}

std::int64_t Arena::bytes_by_default() { return sysconf(_SC_PHYS_PAGES) / 5 * sysconf(_SC_PAGE_SIZE); }

// Each slice begins some cache lines further, so that operands whose sizes are powers of two do not fall into the same
// cache sets.
Index Arena::take(Index& used, Index count) const {
  const Index begin = used;
  used += (count + kLine - 1) / kLine * kLine + 5 * kLine;
  if (used > capacity_) {
    throw std::runtime_error("its operands take more than " + std::to_string(capacity_ * 4 >> 20) + " MiB");
  }
  return begin;
}

const float* Arena::random(Index count) {
  const Index begin = take(random_used_, count);
  if (filled_ == 0) {
    draw(random_, kPattern);
    filled_ = kPattern;
  }
  for (; filled_ < random_used_; filled_ += kPattern) {
    std::copy_n(random_, std::min(kPattern, capacity_ - filled_), random_ + filled_);
  }
  filled_ = std::min(filled_, capacity_);
  return random_ + begin;
}

float* Arena::space(Index count, bool zeroed) {
  float* begin = space_ + take(space_used_, count);
  if (zeroed) {
    std::fill_n(begin, count, 0.0F);
  }
  return begin;
}

} // namespace stagecraft::cpu
