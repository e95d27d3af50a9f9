// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/sweep.hpp"

#include <algorithm>
#include <set>

namespace stagecraft::gpu {
namespace {

constexpr std::int64_t kKibi = 1024, kMebi = kKibi * kKibi;
constexpr std::int64_t kColumns = 4096, kHeadSize = 128; // of operators on tokens
constexpr double kMostShareOfMemory = 0.4;
// Limit of a kernel's size, about 50 ms: a larger one tells no more than one of a quarter of its size.
constexpr double kMostMatrixFlops = 2e13, kMostFp32Flops = 2e12;

using Extents = std::vector<std::int64_t>;

class Points {
public:
  explicit Points(const Machine& machine) : most_bytes_(machine.memory * kMostShareOfMemory) {}

  void add(const Kernel& kernel, Regime regime = Regime::burst) {
    const double most_flops = kernel.precision == Precision::fp32 ? kMostFp32Flops : kMostMatrixFlops;
    if (bytes_of(kernel) <= most_bytes_ && flops_of(kernel) <= most_flops) {
      points_.emplace_back(KernelPoint{kernel, regime});
    }
  }

  /// All points in the order of their parts, those of a part in an order whose every prefix covers its whole range.
  std::vector<Point> ordered() {
    end_part();
    return done_;
  }
  /// What is added from now on comes after everything before.
  void end_part() {
    for (const Point& point : spread(points_)) {
      done_.push_back(point);
    }
    points_.clear();
  }

private:
  double most_bytes_;
  std::vector<Point> points_, done_;
};

void add_gemm_grid(Points& points, Precision precision, const Extents& rows, const Extents& widths) {
  for (const std::int64_t m : rows) {
    for (const std::int64_t n : widths) {
      for (const std::int64_t k : widths) {
        points.add(make_kernel(Op::gemm, Pass::forward, precision, {1, m, n, k}));
      }
    }
  }
}

// Adds products of backward passes, whose operands have other layouts.
void add_gemm_layouts(Points& points) {
  for (const std::int64_t m : {512, 2048, 8192}) {
    for (const std::int64_t n : {1024, 4096, 12288}) {
      for (const std::int64_t k : {1024, 4096, 12288}) {
        points.add(make_kernel(Op::gemm, Pass::backward_input, Precision::bf16, {1, m, n, k}));
        points.add(make_kernel(Op::gemm, Pass::backward_weight, Precision::bf16, {1, m, n, k}));
      }
    }
  }
}

// Adds shapes that no tile divides, and batches of small products.
void add_gemm_edges(Points& points) {
  for (const std::int64_t m : {127, 129, 250, 1000, 2049, 5000}) {
    for (const std::int64_t n : {1000, 3072, 4104, 10000}) {
      points.add(make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, m, n, n / 8 * 8}));
    }
  }
  // Vocabularies as they are: rows of GPT-2's begin at multiples of 2 bytes, of BERT's of 4, of others of 8.
  for (const std::int64_t words : {50257, 30522, 50260}) {
    for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
      const bool input = pass == Pass::backward_input, weight = pass == Pass::backward_weight;
      points.add(make_kernel(Op::gemm, pass, Precision::bf16,
                             {1, weight ? 768 : 8192, input ? 768 : words,
                              input    ? words
                              : weight ? 8192
                                       : 768}));
    }
  }
  for (const std::int64_t batch : {16, 128}) {
    for (const std::int64_t m : {256, 1024, 2048}) {
      points.add(make_kernel(Op::gemm, Pass::forward, Precision::bf16, {batch, m, m, 64}));
      points.add(make_kernel(Op::gemm, Pass::forward, Precision::bf16, {batch, m, 64, m}));
    }
  }
}

// Adds products of 8 bits, and those of square matrices.
void add_gemm_fp8(Points& points, const Extents& rows, const Extents& widths) {
  add_gemm_grid(points, Precision::fp8, rows, widths);
  for (const std::int64_t size : {1024, 3072, 4096, 6144, 12288, 16384}) {
    points.add(make_kernel(Op::gemm, Pass::forward, Precision::fp8, {1, size, size, size}));
  }
  for (const std::int64_t m : {512, 2048, 8192}) {
    for (const std::int64_t n : {1024, 4096, 12288}) {
      for (const Pass pass : {Pass::backward_input, Pass::backward_weight}) {
        points.add(make_kernel(Op::gemm, pass, Precision::fp8, {1, m, n, 4096}));
      }
    }
  }
}

std::vector<Point> gemm_points(const Machine& machine) {
  const Extents widths = {256, 512, 1024, 2048, 4096, 8192, 16384};
  const Extents few_rows = {128, 512, 2048, 8192, 32768}, few_widths = {512, 2048, 4096, 8192};
  Points points(machine);
  add_gemm_grid(points, Precision::bf16, {1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}, widths);
  add_gemm_layouts(points);
  add_gemm_edges(points);
  points.end_part();
  add_gemm_fp8(points, few_rows, few_widths);
  points.end_part();
  for (const Precision precision : {Precision::fp16, Precision::tf32, Precision::fp32}) {
    add_gemm_grid(points, precision, few_rows, few_widths);
  }
  return points.ordered();
}

// Different layers of VGG-16 and ResNet-50, as dimensions of a convolution without n.
const std::vector<Extents>& convolution_layers() {
  static const std::vector<Extents> kLayers = {
      {3, 224, 224, 64, 3, 3, 1, 1, 1},    {64, 224, 224, 64, 3, 3, 1, 1, 1},  {64, 112, 112, 128, 3, 3, 1, 1, 1},
      {128, 112, 112, 128, 3, 3, 1, 1, 1}, {128, 56, 56, 256, 3, 3, 1, 1, 1},  {256, 56, 56, 256, 3, 3, 1, 1, 1},
      {256, 28, 28, 512, 3, 3, 1, 1, 1},   {512, 28, 28, 512, 3, 3, 1, 1, 1},  {512, 14, 14, 512, 3, 3, 1, 1, 1},
      {3, 224, 224, 64, 7, 7, 2, 3, 1},    {64, 56, 56, 64, 1, 1, 1, 0, 1},    {64, 56, 56, 64, 3, 3, 1, 1, 1},
      {64, 56, 56, 256, 1, 1, 1, 0, 1},    {256, 56, 56, 64, 1, 1, 1, 0, 1},   {256, 56, 56, 128, 1, 1, 1, 0, 1},
      {128, 56, 56, 128, 3, 3, 2, 1, 1},   {128, 28, 28, 512, 1, 1, 1, 0, 1},  {256, 56, 56, 512, 1, 1, 2, 0, 1},
      {512, 28, 28, 128, 1, 1, 1, 0, 1},   {128, 28, 28, 128, 3, 3, 1, 1, 1},  {512, 28, 28, 256, 1, 1, 1, 0, 1},
      {256, 28, 28, 256, 3, 3, 2, 1, 1},   {256, 14, 14, 1024, 1, 1, 1, 0, 1}, {512, 28, 28, 1024, 1, 1, 2, 0, 1},
      {1024, 14, 14, 256, 1, 1, 1, 0, 1},  {256, 14, 14, 256, 3, 3, 1, 1, 1},  {1024, 14, 14, 512, 1, 1, 1, 0, 1},
      {512, 14, 14, 512, 3, 3, 2, 1, 1},   {512, 7, 7, 2048, 1, 1, 1, 0, 1},   {1024, 14, 14, 2048, 1, 1, 2, 0, 1},
      {2048, 7, 7, 512, 1, 1, 1, 0, 1},    {512, 7, 7, 512, 3, 3, 1, 1, 1},    {256, 14, 14, 256, 3, 3, 1, 1, 32},
      {512, 14, 14, 512, 3, 3, 1, 1, 512},
  };
  return kLayers;
}

std::vector<Point> convolution_points(const Machine& machine) {
  Points points(machine);
  const auto add = [&](Precision precision, std::int64_t images, const Extents& layer) {
    Extents extents = {images};
    extents.insert(extents.end(), layer.begin(), layer.end());
    for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) {
      points.add(make_kernel(Op::convolution, pass, precision, extents));
    }
  };
  for (const std::int64_t images : {64, 8}) {
    for (const Extents& layer : convolution_layers()) {
      add(Precision::bf16, images, layer);
    }
    points.end_part();
  }
  return points.ordered();
}

std::vector<Point> attention_points(const Machine& machine) {
  constexpr std::int64_t kTokens = 16384;
  Points points(machine);
  const auto add = [&](Precision precision, const Extents& extents) {
    points.add(make_kernel(Op::attention, Pass::forward, precision, extents));
    points.add(make_kernel(Op::attention, Pass::backward_input, precision, extents));
  };
  for (const std::int64_t sequence : {512, 1024, 2048, 4096, 8192, 16384}) {
    for (const std::int64_t causal : {0, 1}) {
      add(Precision::bf16, {kTokens / sequence, sequence, 16, 16, 64, causal});
      add(Precision::bf16, {kTokens / sequence, sequence, 32, 32, 128, causal});
    }
    add(Precision::bf16, {kTokens / sequence, sequence, 32, 8, 128, 1});
  }
  add(Precision::bf16, {32, 512, 12, 12, 64, 0});
  add(Precision::bf16, {1, 2048, 25, 25, 64, 1});
  add(Precision::fp16, {8, 2048, 16, 16, 64, 1});
  add(Precision::fp16, {4, 4096, 32, 32, 128, 1});
  return points.ordered();
}

// Adds the operators of transformers at so many rows of kColumns.
void add_transformer(Points& points, Precision precision, std::int64_t rows) {
  const auto both = [&](Op op, const Extents& extents) {
    points.add(make_kernel(op, Pass::forward, precision, extents));
    points.add(make_kernel(op, Pass::backward_input, precision, extents));
  };
  both(Op::rms_norm, {rows, kColumns});
  both(Op::layer_norm, {rows, kColumns});
  both(Op::swiglu, {rows, kColumns});
  both(Op::gelu, {rows, kColumns});
  both(Op::rotary, {rows * kColumns / kHeadSize, kHeadSize});
  points.add(make_kernel(Op::add, Pass::forward, precision, {rows, kColumns}));
  points.add(make_kernel(Op::clip, Pass::forward, Precision::fp32, {rows, kColumns}));
  points.add(make_kernel(Op::adam, Pass::forward, Precision::fp32, {rows, kColumns}));
  points.add(make_kernel(Op::adam, Pass::forward, Precision::bf16, {rows, kColumns}));
  for (const Precision to : {Precision::bf16, Precision::fp32, Precision::fp8}) {
    points.add(make_kernel(Op::cast, Pass::forward, to, {rows, kColumns}));
  }
}

// Adds losses over vocabularies, and norms of other widths.
void add_vocabularies(Points& points) {
  for (const std::int64_t columns : {30522, 50304, 128256}) {
    for (const std::int64_t rows : {64, 512, 2048, 8192, 16384}) {
      points.add(make_kernel(Op::cross_entropy, Pass::forward, Precision::bf16, {rows, columns}));
      points.add(make_kernel(Op::cross_entropy, Pass::backward_input, Precision::bf16, {rows, columns}));
    }
  }
  for (const std::int64_t columns : {768, 1024, 2048, 8192, 16384}) {
    points.add(make_kernel(Op::rms_norm, Pass::forward, Precision::bf16, {16 * kMebi / columns, columns}));
    points.add(make_kernel(Op::rms_norm, Pass::backward_input, Precision::bf16, {16 * kMebi / columns, columns}));
  }
}

void add_elementwise(Points& points, Precision precision, std::int64_t rows, std::int64_t columns, Regime regime) {
  for (const Op op : kElementwiseForward) {
    points.add(make_kernel(op, Pass::forward, precision, {rows, columns}), regime);
  }
  for (const Op op : kElementwiseBackward) {
    points.add(make_kernel(op, Pass::backward_input, precision, {rows, columns}), regime);
  }
  points.add(make_kernel(Op::embedding, Pass::backward_weight, precision, {rows, columns}), regime);
}

std::vector<Point> elementwise_points(const Machine& machine) {
  Points points(machine);
  for (const std::int64_t rows : {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 131072}) {
    add_transformer(points, Precision::bf16, rows);
  }
  add_vocabularies(points);
  points.end_part();
  for (const std::int64_t rows : {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536}) {
    add_elementwise(points, Precision::bf16, rows, kColumns, Regime::burst);
  }
  for (const std::int64_t rows : {16, 1024, 65536}) {
    add_elementwise(points, Precision::fp32, rows, kColumns, Regime::burst);
  }
  for (const std::int64_t columns : {64, 256, 1024, 16384, 50304}) { // as many values in rows of different lengths
    for (const Op op : {Op::layer_norm, Op::softmax, Op::batch_norm}) {
      points.add(make_kernel(op, Pass::forward, Precision::bf16, {16 * kMebi / columns, columns}));
      points.add(make_kernel(op, Pass::backward_input, Precision::bf16, {16 * kMebi / columns, columns}));
    }
  }
  for (const std::int64_t rows : {64, 1024}) {
    add_elementwise(points, Precision::bf16, rows, kColumns, Regime::warm);
  }
  return points.ordered();
}

std::vector<Point> launch_points() {
  const Kernel launch = make_kernel(Op::launch, Pass::forward, Precision::fp32, {});
  std::vector<Point> points = {KernelPoint{launch, Regime::burst}, KernelPoint{launch, Regime::graph},
                               KernelPoint{launch, Regime::event}};
  for (const int streams : {1, 2, 4, 8}) {
    points.emplace_back(HostPoint{HostOp::launch, 1, streams, 0});
  }
  for (const int threads : {2, 4}) {
    points.emplace_back(HostPoint{HostOp::launch, threads, threads, 0});
  }
  points.emplace_back(HostPoint{HostOp::event, 1, 2, 0});
  for (const int nodes : {1, 10, 100}) {
    points.emplace_back(HostPoint{HostOp::graph, 1, 1, nodes});
  }
  return points;
}

std::vector<std::int64_t> copy_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = kKibi; size <= 256 * kMebi; size *= 4) {
    sizes.push_back(size);
  }
  return spread(sizes);
}

std::vector<Point> copy_points() {
  std::vector<Point> points;
  for (const std::int64_t size : copy_sizes()) {
    points.emplace_back(CopyPoint{End::host, End::device, true, false, size});
    points.emplace_back(CopyPoint{End::device, End::host, true, false, size});
    points.emplace_back(CopyPoint{End::host, End::device, true, true, size});
    points.emplace_back(CopyPoint{End::device, End::host, true, true, size});
    points.emplace_back(CopyPoint{End::device, End::device, true, false, size});
    points.emplace_back(CopyPoint{End::host, End::device, false, false, size});
    points.emplace_back(CopyPoint{End::device, End::host, false, false, size});
  }
  return points;
}

std::vector<Point> peer_points(const Machine& machine) {
  std::vector<Point> points;
  if (machine.devices > 1) {
    for (const std::int64_t size : copy_sizes()) {
      points.emplace_back(CopyPoint{End::device, End::peer, true, false, size});
      points.emplace_back(CopyPoint{End::device, End::peer, true, true, size});
    }
  }
  return points;
}

std::vector<Point> collective_points(const Machine& machine) {
  std::vector<Point> points;
  for (int devices = 2; devices <= machine.devices; devices *= 2) {
    for (const std::int64_t size : copy_sizes()) {
      for (std::size_t op = 0; op < kCollectives.size(); ++op) {
        if (static_cast<Collective>(op) != Collective::send || devices == 2) {
          points.emplace_back(CollectivePoint{static_cast<Collective>(op), devices, size});
        }
      }
    }
  }
  return points;
}

std::vector<Point> interference_points() {
  std::vector<Point> points;
  for (std::size_t beside = 0; beside < kBesides.size(); ++beside) {
    for (const Kernel& kernel : {make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 4096, 4096, 4096}),
                                 make_kernel(Op::layer_norm, Pass::forward, Precision::bf16, {16384, 4096}),
                                 make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 8192, 4096, 4096}),
                                 make_kernel(Op::copy, Pass::forward, Precision::fp32, {16384, 4096})}) {
      points.emplace_back(InterferencePoint{kernel, static_cast<Beside>(beside)});
    }
  }
  return points;
}

std::vector<Point> power_points() {
  std::vector<Point> points = {PowerPoint{PowerState::idle, {}}, PowerPoint{PowerState::blocked, {}}};
  for (const Kernel& kernel : {make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 8192, 8192, 8192}),
                               make_kernel(Op::copy, Pass::forward, Precision::fp32, {65536, 4096}),
                               make_kernel(Op::attention, Pass::forward, Precision::bf16, {4, 4096, 32, 32, 128, 1}),
                               make_kernel(Op::layer_norm, Pass::forward, Precision::bf16, {65536, 4096})}) {
    points.emplace_back(PowerPoint{PowerState::busy, kernel});
  }
  return points;
}

// Points measured after seconds of work, when power and temperature are stable.
std::vector<Point> sustained_points() {
  std::vector<Point> points;
  for (const Extents& extents : std::vector<Extents>{{1, 8192, 8192, 8192},
                                                     {1, 4096, 4096, 4096},
                                                     {1, 2048, 8192, 2048},
                                                     {1, 16384, 1024, 4096},
                                                     {1, 1024, 1024, 1024}}) {
    points.emplace_back(KernelPoint{make_kernel(Op::gemm, Pass::forward, Precision::bf16, extents), Regime::sustained});
  }
  points.emplace_back(
      KernelPoint{make_kernel(Op::copy, Pass::forward, Precision::fp32, {65536, 4096}), Regime::sustained});
  return points;
}

std::vector<Point> partition_points() {
  std::vector<Point> points;
  const std::vector<Kernel> kernels = {
      make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 2048, 2048, 2048}),
      make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 4096, 4096, 4096}),
      make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 512, 2048, 2048}),
      make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 8192, 1024, 1024}),
      make_kernel(Op::gemm, Pass::backward_input, Precision::bf16, {1, 2048, 2048, 2048}),
      make_kernel(Op::gemm, Pass::backward_weight, Precision::bf16, {1, 2048, 2048, 2048}),
      make_kernel(Op::copy, Pass::forward, Precision::fp32, {16384, 4096}),
      make_kernel(Op::gelu, Pass::forward, Precision::bf16, {16384, 4096}),
      make_kernel(Op::layer_norm, Pass::forward, Precision::bf16, {16384, 4096}),
  };
  for (const Regime regime : {Regime::burst, Regime::contended}) {
    for (const Kernel& kernel : kernels) {
      points.emplace_back(KernelPoint{kernel, regime});
    }
  }
  return points;
}

std::vector<Point> points_of(const std::vector<Kernel>& shapes) {
  std::vector<Point> points;
  for (const Kernel& kernel : shapes) {
    points.emplace_back(KernelPoint{kernel, Regime::burst});
  }
  return points;
}

// Each partition has points of its own, then the shape list.
std::vector<Group> partition_groups(const Machine& machine, const std::vector<Kernel>& shapes) {
  std::vector<Point> points = partition_points();
  const std::vector<Point> exact = points_of(shapes);
  points.insert(points.end(), exact.begin(), exact.end());
  std::vector<Group> groups;
  for (int processors = machine.processors_apart;
       processors > 0 && processors + machine.processors_apart <= machine.processors; processors *= 2) {
    groups.push_back({"partitions", "some of the multiprocessors, alone and while the others work",
                      4 + 0.1 * static_cast<double>(shapes.size()), points, processors});
  }
  return groups;
}

// Drops points that an earlier group measures.
void drop_repeated(std::vector<Group>& groups) {
  std::set<std::string> seen;
  for (Group& group : groups) {
    const auto repeated = [&](const Point& point) {
      return !seen.insert(std::to_string(group.processors) + " " + std::string(section_of(point)) + identity(point))
                  .second;
    };
    group.points.erase(std::remove_if(group.points.begin(), group.points.end(), repeated), group.points.end());
  }
}

} // namespace

const std::vector<std::string>& group_names() {
  static const std::vector<std::string> kNames = {
      "shapes",      "launch",       "gemm",  "attention", "elementwise", "copies",     "peers",
      "collectives", "interference", "power", "sustained", "partitions",  "convolution"};
  return kNames;
}

std::vector<Group> plan_sweep(const Machine& machine, const std::vector<Kernel>& shapes) {
  std::vector<Group> groups = {
      {"shapes", "the shape list, exactly", std::min(150.0, 0.2 * static_cast<double>(shapes.size())),
       points_of(shapes), 0},
      {"launch", "empty kernels, in graphs, after events; the host's launches on streams and by threads", 4,
       launch_points(), 0},
      {"gemm", "matrix products by shape, precision and layout", 115, gemm_points(machine), 0},
      {"attention", "fused attention, forward and backward", 30, attention_points(machine), 0},
      {"elementwise", "memory-bound operators, of transformers first, and the optimiser step", 45,
       elementwise_points(machine), 0},
      {"copies", "between host and device, and on the device", 15, copy_points(), 0},
      {"peers", "between devices", machine.devices > 1 ? 15.0 : 0.0, peer_points(machine), 0},
      {"collectives", "NCCL", machine.devices > 1 ? 40.0 : 0.0, collective_points(machine), 0},
      {"interference", "kernels beside copies and beside kernels of a network", 25, interference_points(), 0},
      {"power", "idle, blocked and busy power", 43, power_points(), 0},
      {"sustained", "kernels after seconds of work", 14, sustained_points(), 0},
  };
  const std::vector<Group> partitions = partition_groups(machine, shapes);
  groups.insert(groups.end(), partitions.begin(), partitions.end());
  groups.push_back({"convolution", "convolutions and their gradients", 30, convolution_points(machine), 0});
  drop_repeated(groups);
  return groups;
}

std::vector<Kernel> sentinels() {
  return {make_kernel(Op::gemm, Pass::forward, Precision::bf16, {1, 4096, 4096, 4096}),
          make_kernel(Op::copy, Pass::forward, Precision::fp32, {32768, 4096}),
          make_kernel(Op::launch, Pass::forward, Precision::fp32, {})};
}

std::vector<std::size_t> spread_order(std::size_t size) {
  std::size_t bits = 0;
  while ((std::size_t{1} << bits) < size) {
    ++bits;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < (std::size_t{1} << bits); ++i) {
    std::size_t reversed = 0;
    for (std::size_t bit = 0; bit < bits; ++bit) {
      reversed |= (i >> bit & 1) << (bits - 1 - bit);
    }
    if (reversed < size) {
      order.push_back(reversed);
    }
  }
  return order;
}

} // namespace stagecraft::gpu
