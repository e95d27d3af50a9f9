// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/chosen_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace stagecraft {
namespace {

// Of one of an A100's 108 multiprocessors: multiply-adds of 16 bits, and bytes, a second.
constexpr double kMultiplyAdds = 3.12e14 / 2 / 108, kBandwidth = 1.766e12 / 108;
constexpr double kLaunch = 3e-6;  // s, of its roofline
constexpr double kLeast = 10e-6;  // s, of T, beside arithmetic and memory
constexpr double kReached = 0.66; // the part of the bandwidth that T has

struct LibraryTile {
  double height, width;
  double results() const { return height * width; }
};
constexpr std::array kLibraryTiles = {LibraryTile{256, 128}, LibraryTile{128, 256}, LibraryTile{128, 128},
                                      LibraryTile{128, 64},  LibraryTile{64, 128},  LibraryTile{64, 64}};
constexpr std::size_t kLargeTiles = 2; // the first ones
constexpr std::array<double, 9> kParts = {1, 2, 3, 4, 6, 8, 12, 16, 32};

// What a tile takes in multiply-adds: those of its results, more for operands that it loads, over the depth and some
// more, with which it begins and ends.
struct TileCost {
  double operands, begin;
  double of(LibraryTile tile, double depth) const {
    return tile.results() * (1 + operands * (1 / tile.height + 1 / tile.width)) * (depth + begin);
  }
};
constexpr TileCost kSeems{50, 420}, kTakes{28, 220};

// Sums of parts are written and read again, element by element, and added up by a kernel of their own.
constexpr double kPerPartialSum = 540, kAddingUp = 5e6;

struct TiledProduct {
  double batch, rows, columns, depth, processors;

  TiledProduct(const Kernel& kernel, double of_device) : processors(of_device) {
    const ProductShape all = product_of(kernel);
    batch = kernel.op == KernelOp::gemm ? std::max(1.0, kernel.shape[0]) : 1;
    rows = all.rows / batch;
    columns = all.columns;
    depth = all.depth;
  }
  double tiles(LibraryTile tile) const {
    return batch * std::ceil(rows / tile.height) * std::ceil(columns / tile.width);
  }
  // Multiply-adds of a multiprocessor, by a rule for the cost of a tile.
  double work(LibraryTile tile, double parts, const TileCost& cost) const {
    constexpr double kStep = 32; // of the depth
    const double waves = std::ceil(tiles(tile) * parts / processors);
    const double sums = parts > 1 ? kPerPartialSum * batch * rows * columns * parts / processors + kAddingUp : 0;
    return waves * cost.of(tile, kStep * std::ceil(depth / parts / kStep)) + sums;
  }
  // Where large tiles fill more than one wave, libraries take no others.
  std::size_t tiles_to_choose() const {
    return std::min(tiles(kLibraryTiles[0]), tiles(kLibraryTiles[1])) > processors ? kLargeTiles : kLibraryTiles.size();
  }
};

double chosen_work(const TiledProduct& product) {
  double least = std::numeric_limits<double>::infinity();
  double work = product.work(kLibraryTiles.front(), 1, kTakes);
  for (std::size_t tile = 0; tile < product.tiles_to_choose(); ++tile) {
    for (const double parts : kParts) {
      const double seems = product.work(kLibraryTiles[tile], parts, kSeems);
      if (seems < least) {
        least = seems;
        work = product.work(kLibraryTiles[tile], parts, kTakes);
      }
    }
  }
  return work;
}

// Whatever is chosen takes as long as this: work rises with every extent, whichever the tile and the parts. Where large
// tiles alone are chosen at the low end, they are in all of the range.
FeatureRange any_work(const TiledProduct& low, const TiledProduct& high) {
  FeatureRange work{std::numeric_limits<double>::infinity(), 0};
  for (std::size_t tile = 0; tile < low.tiles_to_choose(); ++tile) {
    for (const double parts : kParts) {
      work.low = std::min(work.low, low.work(kLibraryTiles[tile], parts, kTakes));
      work.high = std::max(work.high, high.work(kLibraryTiles[tile], parts, kTakes));
    }
  }
  return work;
}

double time_of_work(double work, const Kernel& kernel, double processors) {
  const double arithmetic = work / kMultiplyAdds;
  const double memory = bytes_of(kernel).value / (kReached * kBandwidth * processors);
  return kLeast + std::cbrt(arithmetic * arithmetic * arithmetic + memory * memory * memory);
}

double roofline_of(const Kernel& kernel, double processors) {
  return kLaunch + std::max(flops_of(kernel).value / (2 * kMultiplyAdds * processors),
                            bytes_of(kernel).value / (kBandwidth * processors));
}

} // namespace

double chosen_tiles(const Kernel& kernel, double processors) {
  return std::log(time_of_work(chosen_work(TiledProduct(kernel, processors)), kernel, processors) /
                  roofline_of(kernel, processors));
}

FeatureRange chosen_tiles_range(const KernelRange& kernels, double processors) {
  if (kernels.low.shape == kernels.high.shape) {
    const double value = chosen_tiles(kernels.low, processors);
    return {value, value};
  }
  const FeatureRange work = any_work(TiledProduct(kernels.low, processors), TiledProduct(kernels.high, processors));
  // Each part of a product's T is at least so many times that of its roofline: the largest tile loads the fewest
  // operands. Other kernels' FLOPs are not those of the product that stands for them.
  constexpr double kAlways = 1 + kTakes.operands * (1 / kLibraryTiles[0].height + 1 / kLibraryTiles[0].width);
  static_assert(kAlways < 1 / kReached && kAlways < kLeast / kLaunch);
  const double least = time_of_work(work.low, kernels.low, processors) / roofline_of(kernels.high, processors);
  const double most = time_of_work(work.high, kernels.high, processors) / roofline_of(kernels.low, processors);
  return {std::log(kernels.low.op == KernelOp::gemm ? std::max(least, kAlways) : least), std::log(most)};
}

} // namespace stagecraft
