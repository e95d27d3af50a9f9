// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/sweep.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace stagecraft::cpu {
namespace {

using gpu::Kernel;
using gpu::Op;
using gpu::Pass;
using gpu::Point;
using Extents = std::vector<std::int64_t>;

// Limit of a kernel's size, about 30 ms on one core: a larger one tells no more than one of a quarter of its size.
constexpr double kMostFlops = 2.5e9;

Kernel make(Op op, Pass pass, const Extents& extents) {
  return gpu::make_kernel(op, pass, gpu::Precision::fp32, extents);
}

class Points {
public:
  void add(const Kernel& kernel) {
    const gpu::KernelPoint point{kernel, gpu::Regime::burst};
    if (gpu::flops_of(kernel) <= kMostFlops && seen_.insert(gpu::identity(point)).second) {
      points_.emplace_back(point);
    }
  }
  std::vector<Point> ordered() const { return gpu::spread(points_); }

private:
  std::vector<Point> points_;
  std::set<std::string> seen_;
};

// Sizes of real layers: powers of two, and three times those. Rows are samples times positions.
std::vector<Point> gemm_points() {
  Points points;
  const Extents rows = {1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  const Extents widths = {64, 128, 256, 512, 768, 1024, 2048, 3072, 4096};
  for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
    std::size_t turn = 0;
    for (const std::int64_t m : rows) {
      for (const std::int64_t n : widths) {
        for (const std::int64_t k : widths) {
          if (++turn % 3 == static_cast<std::size_t>(pass)) { // a third of the shapes, with every size
            points.add(pass == Pass::backward_weight ? make(Op::gemm, pass, {1, n, k, m})
                                                     : make(Op::gemm, pass, {1, m, n, k}));
          }
        }
      }
    }
  }
  for (const std::int64_t batch : {12, 48}) { // the products of attention
    for (const std::int64_t m : {128, 512}) {
      points.add(make(Op::gemm, Pass::forward, {batch, m, m, 64}));
      points.add(make(Op::gemm, Pass::forward, {batch, m, 64, m}));
    }
  }
  return points.ordered();
}

// Layers of VGG-16 and ResNet-50, also in their forms for small images; for one image or a few.
std::vector<Point> convolution_points() {
  Points points;
  const std::vector<Extents> layers = {
      {3, 224, 224, 64, 7, 7, 2, 3, 1},   {3, 224, 224, 64, 3, 3, 1, 1, 1},  {64, 56, 56, 64, 1, 1, 1, 0, 1},
      {64, 56, 56, 64, 3, 3, 1, 1, 1},    {64, 56, 56, 256, 1, 1, 1, 0, 1},  {256, 56, 56, 64, 1, 1, 1, 0, 1},
      {128, 56, 56, 128, 3, 3, 2, 1, 1},  {128, 28, 28, 512, 1, 1, 1, 0, 1}, {256, 56, 56, 512, 1, 1, 2, 0, 1},
      {128, 28, 28, 128, 3, 3, 1, 1, 1},  {256, 28, 28, 256, 3, 3, 2, 1, 1}, {256, 14, 14, 1024, 1, 1, 1, 0, 1},
      {1024, 14, 14, 256, 1, 1, 1, 0, 1}, {256, 14, 14, 256, 3, 3, 1, 1, 1}, {512, 14, 14, 512, 3, 3, 1, 1, 1},
      {512, 7, 7, 2048, 1, 1, 1, 0, 1},   {512, 7, 7, 512, 3, 3, 1, 1, 1},   {3, 32, 32, 64, 3, 3, 1, 1, 1},
      {64, 32, 32, 64, 3, 3, 1, 1, 1},    {128, 16, 16, 128, 3, 3, 1, 1, 1}, {256, 8, 8, 256, 3, 3, 1, 1, 1},
      {512, 4, 4, 512, 3, 3, 1, 1, 1},    {256, 14, 14, 256, 3, 3, 1, 1, 32}};
  for (const std::int64_t images : {1, 4, 8}) {
    for (const Extents& layer : layers) {
      Extents extents = {images};
      extents.insert(extents.end(), layer.begin(), layer.end());
      for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
        points.add(make(Op::convolution, pass, extents));
      }
    }
  }
  return points.ordered();
}

std::vector<Point> attention_points() {
  Points points;
  for (const std::int64_t sequence : {64, 128, 256, 512, 1024, 2048}) {
    for (const std::int64_t causal : {0, 1}) {
      for (const Extents& heads : {Extents{1, 1}, Extents{4, 4}, Extents{12, 12}, Extents{16, 4}}) {
        for (const std::int64_t size : {64, 128}) {
          for (const Pass pass : {Pass::forward, Pass::backward_input}) {
            points.add(make(Op::attention, pass, {1, sequence, heads[0], heads[1], size, causal}));
          }
        }
      }
    }
  }
  return points.ordered();
}

std::vector<Point> elementwise_points() {
  Points points;
  for (const std::int64_t columns : {64, 768, 4096}) {
    for (const std::int64_t cells : {1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 22, 1 << 24}) {
      const Extents extents = {std::max<std::int64_t>(1, cells / columns), columns};
      for (const Op op : gpu::kElementwiseForward) {
        points.add(make(op, Pass::forward, extents));
      }
      points.add(make(Op::adam, Pass::forward, extents));
      for (const Op op : gpu::kElementwiseBackward) {
        points.add(make(op, Pass::backward_input, extents));
      }
      points.add(make(Op::embedding, Pass::backward_weight, extents));
    }
  }
  return points.ordered();
}

std::vector<Point> copy_points() {
  std::vector<Point> points;
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4) {
    points.emplace_back(gpu::CopyPoint{gpu::End::host, gpu::End::host, false, false, bytes});
    points.emplace_back(gpu::CopyPoint{gpu::End::host, gpu::End::host, false, false, 3 * bytes});
  }
  return points;
}

std::vector<Point> launch_points() {
  return {gpu::KernelPoint{make(Op::launch, Pass::forward, {}), gpu::Regime::burst}};
}

} // namespace

const std::vector<GroupRow>& group_rows() {
  static const std::vector<GroupRow> kRows = {
      {"launch", "an empty task", 1, launch_points},
      {"gemm", "matrix products", 24, gemm_points},
      {"elementwise", "operators that the memory bounds", 8, elementwise_points},
      {"convolution", "and both gradients", 10, convolution_points},
      {"attention", "and its gradients", 4, attention_points},
      {"copies", "from memory to memory", 2, copy_points},
  };
  return kRows;
}

std::vector<gpu::Group> plan_sweep(const std::vector<std::string>& groups, const std::vector<gpu::Kernel>& shapes) {
  std::string known;
  std::set<std::string> wanted(groups.begin(), groups.end());
  std::vector<gpu::Group> sweep;
  if (!shapes.empty()) {
    gpu::Group group{"shapes", "the shape list", 20, {}, 0};
    for (const Kernel& kernel : shapes) {
      group.points.emplace_back(gpu::KernelPoint{kernel, gpu::Regime::burst});
    }
    sweep.push_back(std::move(group));
  }
  for (const GroupRow& row : group_rows()) {
    known += (known.empty() ? "" : ", ") + std::string(row.name);
    if (groups.empty() || wanted.erase(row.name) > 0) {
      sweep.push_back({row.name, row.help, row.weight, row.points(), 0});
    }
  }
  if (!wanted.empty()) {
    throw std::invalid_argument("unknown group '" + *wanted.begin() + "'; allowed: " + known);
  }
  return sweep;
}

std::vector<gpu::Kernel> sentinels() {
  return {make(Op::gemm, Pass::forward, {1, 512, 512, 512}), make(Op::copy, Pass::forward, {4096, 1024})};
}

} // namespace stagecraft::cpu
