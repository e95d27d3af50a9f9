// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/output/unended.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace stagecraft::gpu {
namespace {

// "gemm 0: gemm forward bf16 " of "gemm 0: gemm forward bf16 batch=1 …".
std::string without_sizes(const std::string& point) {
  const std::size_t equals = point.find('=');
  return equals == std::string::npos ? point : point.substr(0, point.rfind(' ', equals) + 1);
}

} // namespace

Unended::Unended(const std::string& out) : path_(out + ".unended") {
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) {
      points_.push_back(line);
    }
  }
}

bool Unended::has(const std::string& point) const {
  constexpr std::ptrdiff_t kEnough = 2; // to believe that no size of it works
  const bool known = std::find(points_.begin(), points_.end(), point) != points_.end();
  return known || std::count_if(points_.begin(), points_.end(), [&](const std::string& one) {
                    return without_sizes(one) == without_sizes(point);
                  }) >= kEnough;
}

void Unended::begin(const std::string& point) const { write(point); }

void Unended::end() const {
  if (points_.empty()) {
    std::remove(path_.c_str());
  } else {
    write("");
  }
}

void Unended::write(const std::string& begun) const {
  std::ofstream out(path_, std::ios::trunc);
  for (const std::string& point : points_) {
    out << point << "\n";
  }
  if (!begun.empty()) {
    out << begun << "\n";
  }
}

} // namespace stagecraft::gpu
