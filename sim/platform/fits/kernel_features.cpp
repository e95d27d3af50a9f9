// The table of features, and how each follows from a kernel's shape.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/kernel_features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/platform/fits/chosen_tiles.hpp"

namespace stagecraft {
namespace {

double dimension(const Kernel& kernel, std::size_t index) { return std::max(1.0, kernel.shape[index]); }

// Output positions along one side of an image, from window, stride and padding.
double outputs(const Kernel& kernel, std::size_t side, std::size_t window) {
  const KernelShape& shape = kernel.shape;
  const double stride = std::max(1.0, shape[7]);
  return std::max(1.0, std::floor((shape[side] + 2 * shape[8] - shape[window]) / stride) + 1);
}
double height(const Kernel& kernel) { return outputs(kernel, 2, 5); }
double width(const Kernel& kernel) { return outputs(kernel, 3, 6); }

// Number of Height x Width tiles that cover the result.
template <int Height, int Width> double tiles(const Kernel& kernel) {
  const ProductShape product = product_of(kernel);
  if (kernel.op == KernelOp::gemm) { // a tile never spans two products of a batch
    return dimension(kernel, 0) * std::ceil(dimension(kernel, 1) / Height) * std::ceil(product.columns / Width);
  }
  if (kernel.op == KernelOp::attention) { // a tile is a block of queries of one head
    return dimension(kernel, 0) * dimension(kernel, 2) * std::ceil(dimension(kernel, 1) / Height);
  }
  return std::ceil(product.rows / Height) * std::ceil(product.columns / Width);
}

// The logarithm of a rounded amount over the exact one, where both rise with every extent.
FeatureRange logarithm_of(FeatureRange rounded, FeatureRange exact) {
  const double least = rounded.low / exact.high;
  return {least > 1 ? std::log(least) : 0, std::log(rounded.high / exact.low)};
}

// Tiles run in waves, one tile per multiprocessor. ln of (time of whole waves / time if the last wave could be partly
// full).
template <int Height, int Width> double wave(const Kernel& kernel, double processors) {
  const double waves = tiles<Height, Width>(kernel) / processors;
  return std::log(std::ceil(waves) / waves);
}

// The same between so many tiles and so many.
FeatureRange wave_between(double fewest, double most, double processors) {
  const FeatureRange waves{fewest / processors, most / processors};
  return logarithm_of({std::ceil(waves.low), std::ceil(waves.high)}, waves);
}
template <int Height, int Width> FeatureRange wave_range(const KernelRange& kernels, double processors) {
  return wave_between(tiles<Height, Width>(kernels.low), tiles<Height, Width>(kernels.high), processors);
}

// The same as wave(), but 0 unless there is more than one wave (later_wave), or unless there is just one (first_wave).
// They are apart because kernels that split a product's depth can fill the first wave, never a later one.
template <int Height, int Width> double later_wave(const Kernel& kernel, double processors) {
  return tiles<Height, Width>(kernel) > processors ? wave<Height, Width>(kernel, processors) : 0;
}
template <int Height, int Width> double first_wave(const Kernel& kernel, double processors) {
  return tiles<Height, Width>(kernel) > processors ? 0 : wave<Height, Width>(kernel, processors);
}

template <int Height, int Width> FeatureRange later_wave_range(const KernelRange& kernels, double processors) {
  const double most = tiles<Height, Width>(kernels.high);
  if (most <= processors) {
    return {};
  }
  const double fewest = tiles<Height, Width>(kernels.low);
  const FeatureRange range = wave_between(fewest, most, processors);
  return {fewest > processors ? range.low : 0, range.high};
}
template <int Height, int Width> FeatureRange first_wave_range(const KernelRange& kernels, double processors) {
  const double fewest = tiles<Height, Width>(kernels.low);
  if (fewest > processors) {
    return {};
  }
  const double most = tiles<Height, Width>(kernels.high);
  const FeatureRange range = wave_between(fewest, most, processors);
  return {most > processors ? 0 : range.low, range.high};
}

// What whole waves of tiles cost, with the tile that a library would choose, that of the least time. The cost of a tile
// per result grows with the operands that it loads: 1 + c (1/height + 1/width).
double best_tiles(const Kernel& kernel, double processors) {
  static constexpr std::array<double, 4> kSides = {64, 128, 192, 256};
  struct Tile {
    std::size_t height, width; // places among the sides
    double results = kSides[height] * kSides[width];
    double cost = 1 + 20 * (1 / kSides[height] + 1 / kSides[width]); // of a result
  };
  static constexpr std::array<Tile, 9> kTiles = {
      {{3, 1}, {1, 3}, {2, 1}, {1, 2}, {1, 1}, {0, 3}, {1, 0}, {0, 1}, {0, 0}}};
  const ProductShape product = product_of(kernel);
  const double batch = kernel.op == KernelOp::gemm ? dimension(kernel, 0) : 1;
  std::array<double, kSides.size()> down{}, across{}; // tiles of such a side
  for (std::size_t side = 0; side < kSides.size(); ++side) {
    down[side] = batch * std::ceil(product.rows / batch / kSides[side]);
    across[side] = std::ceil(product.columns / kSides[side]);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double waves = std::ceil(down[tile.height] * across[tile.width] / processors);
    least = std::min(least, waves * tile.results * tile.cost);
  }
  return least * processors;
}
double result_of(const Kernel& kernel) {
  const ProductShape product = product_of(kernel);
  return product.rows * product.columns;
}
double best_wave(const Kernel& kernel, double processors) {
  return std::log(best_tiles(kernel, processors) / result_of(kernel));
}
FeatureRange best_wave_range(const KernelRange& kernels, double processors) {
  return logarithm_of({best_tiles(kernels.low, processors), best_tiles(kernels.high, processors)},
                      {result_of(kernels.low), result_of(kernels.high)});
}

// ln of the factor by which a size grows when it is rounded up to a multiple of `step`.
double rounded_up(double size, double step) { return std::ceil(size / step) * step; }
double padding(double size, double step) { return std::log(rounded_up(size, step) / size); }
FeatureRange padding_range(double low, double high, double step) {
  return logarithm_of({rounded_up(low, step), rounded_up(high, step)}, {low, high});
}

// Rows of one product: those of a batch are apart.
double rows_of(const Kernel& kernel) {
  return kernel.op == KernelOp::gemm ? dimension(kernel, 1) : product_of(kernel).rows;
}
double columns_of(const Kernel& kernel) { return product_of(kernel).columns; }
template <int Step> double pad_rows(const Kernel& kernel, double) { return padding(rows_of(kernel), Step); }
template <int Step> FeatureRange pad_rows_range(const KernelRange& kernels, double) {
  return padding_range(rows_of(kernels.low), rows_of(kernels.high), Step);
}
template <int Step> double pad_columns(const Kernel& kernel, double) { return padding(columns_of(kernel), Step); }
template <int Step> FeatureRange pad_columns_range(const KernelRange& kernels, double) {
  return padding_range(columns_of(kernels.low), columns_of(kernels.high), Step);
}
// padding() of both sides of an image, for transforms of Step x Step outputs (Winograd).
template <int Step> double pad_image(const Kernel& kernel, double) {
  return padding(height(kernel), Step) + padding(width(kernel), Step);
}
template <int Step> FeatureRange pad_image_range(const KernelRange& kernels, double) {
  const FeatureRange rows = padding_range(height(kernels.low), height(kernels.high), Step);
  const FeatureRange columns = padding_range(width(kernels.low), width(kernels.high), Step);
  return {rows.low + columns.low, rows.high + columns.high};
}

bool divides(double size, double step) { return std::fmod(size, step) == 0; }
// What 1 where a size is no multiple of `step`, else 0, can be between two sizes.
FeatureRange odd_range(double low, double high, double step) {
  if (low == high) {
    const double odd = divides(low, step) ? 0 : 1;
    return {odd, odd};
  }
  return {std::floor(high / step) * step >= low ? 0.0 : 1.0, 1};
}
template <int Step> double odd_rows(const Kernel& kernel, double) {
  const double rows = rows_of(kernel);
  return rows > Step && !divides(rows, Step) ? 1 : 0;
}
template <int Step> FeatureRange odd_rows_range(const KernelRange& kernels, double) {
  const double least = rows_of(kernels.low);
  const double most = rows_of(kernels.high);
  if (most <= Step) {
    return {};
  }
  return {least > Step ? odd_range(least, most, Step).low : 0, odd_range(least, most, Step).high};
}
template <int Step> double odd_columns(const Kernel& kernel, double) {
  return divides(columns_of(kernel), Step) ? 0 : 1;
}
template <int Step> FeatureRange odd_columns_range(const KernelRange& kernels, double) {
  return odd_range(columns_of(kernels.low), columns_of(kernels.high), Step);
}
double depth_step(const Kernel& kernel) {
  return kernel.op == KernelOp::convolution ? dimension(kernel, 1) / dimension(kernel, 9) : product_of(kernel).depth;
}
template <int Step> double odd_depth(const Kernel& kernel, double) { return divides(depth_step(kernel), Step) ? 0 : 1; }
template <int Step> FeatureRange odd_depth_range(const KernelRange& kernels, double) {
  return odd_range(depth_step(kernels.low), depth_step(kernels.high), Step);
}
double single_row(const Kernel& kernel, double) { return product_of(kernel).rows == 1 ? 1 : 0; }
FeatureRange single_row_range(const KernelRange& kernels, double) {
  return {product_of(kernels.high).rows == 1 ? 1.0 : 0.0, product_of(kernels.low).rows == 1 ? 1.0 : 0.0};
}

double queries_per_key(const Kernel& kernel) { return dimension(kernel, 2) / dimension(kernel, 3); }
FeatureRange queries_per_key_range(const KernelRange& kernels, double) {
  return {dimension(kernels.low, 2) / dimension(kernels.high, 3),
          dimension(kernels.high, 2) / dimension(kernels.low, 3)};
}
FeatureRange ungrouped_range(const KernelRange& kernels, double processors) {
  const FeatureRange queries = queries_per_key_range(kernels, processors);
  return {queries.low == 1 && queries.high == 1 ? 1.0 : 0.0, queries.low <= 1 && queries.high >= 1 ? 1.0 : 0.0};
}

// Positions of an image in units of Winograd's transforms, Step x Step outputs each.
template <int Step> double transforms(const Kernel& kernel) {
  return dimension(kernel, 0) * std::ceil(height(kernel) / Step) * std::ceil(width(kernel) / Step);
}
// Operations of a 3 x 3 window by Winograd's F(Step x Step): two per multiplication.
template <int Step> double winograd_flops(const Kernel& kernel, double) {
  const double points = (Step + 2) * (Step + 2);
  return 2 * points * transforms<Step>(kernel) * dimension(kernel, 1) * dimension(kernel, 4);
}

// Operations of whole waves of tiles, with the depth rounded up.
template <int Height, int Width> double wave_flops(const Kernel& kernel, double processors) {
  const double waves = std::ceil(tiles<Height, Width>(kernel) / processors);
  return 2 * waves * processors * Height * Width * product_of(kernel).depth;
}

constexpr KernelFeature kFeatures[] = {
    {"rows", "rows of the product, all batches together", [](const Kernel& k, double) { return product_of(k).rows; }},
    {"columns", "columns of the product, or of the tensor",
     [](const Kernel& k, double) { return product_of(k).columns; }},
    {"depth", "inner dimension of the product", [](const Kernel& k, double) { return product_of(k).depth; }},
    {"batch", "products, images, sequences", [](const Kernel& k, double) { return dimension(k, 0); }},
    {"sequence", "positions of attention", [](const Kernel& k, double) { return dimension(k, 1); }},
    {"heads", "query heads", [](const Kernel& k, double) { return dimension(k, 2); }},
    {"kv-heads", "heads of keys and values", [](const Kernel& k, double) { return dimension(k, 3); }},
    {"head-size", "", [](const Kernel& k, double) { return dimension(k, 4); }},
    {"queries-per-key", "heads / kv-heads", [](const Kernel& k, double) { return queries_per_key(k); },
     queries_per_key_range},
    {"image", "side of the convolved image", [](const Kernel& k, double) { return height(k); }},
    {"channels", "of the convolved image", [](const Kernel& k, double) { return dimension(k, 1); }},
    {"launch", "1", [](const Kernel&, double) { return 1.0; }},
    {"flops", "arithmetic", [](const Kernel& k, double) { return flops_of(k).value; }},
    {"bytes", "what must be read and written", [](const Kernel& k, double) { return bytes_of(k).value; }},
    {"result", "elements of the result", [](const Kernel& k, double) { return result_of(k); }},
    {"wave-flops-64x64", "arithmetic of whole waves of such tiles", wave_flops<64, 64>},
    {"wave-flops-128x64", "", wave_flops<128, 64>},
    {"wave-flops-128x128", "", wave_flops<128, 128>},
    {"wave-flops-256x128", "", wave_flops<256, 128>},
    {"winograd-2-flops", "arithmetic of Winograd's F(2x2, 3x3)", winograd_flops<2>},
    {"winograd-4-flops", "of F(4x4, 3x3)", winograd_flops<4>},
    {"wave-64x64", "ln of what the last wave of such tiles leaves idle", wave<64, 64>, wave_range<64, 64>},
    {"wave-64x128", "", wave<64, 128>, wave_range<64, 128>},
    {"wave-128x64", "", wave<128, 64>, wave_range<128, 64>},
    {"wave-128x128", "", wave<128, 128>, wave_range<128, 128>},
    {"wave-128x256", "", wave<128, 256>, wave_range<128, 256>},
    {"wave-256x128", "", wave<256, 128>, wave_range<256, 128>},
    {"first-wave-128x128", "likewise, where one wave takes all tiles; else 0", first_wave<128, 128>,
     first_wave_range<128, 128>},
    {"first-wave-128x256", "", first_wave<128, 256>, first_wave_range<128, 256>},
    {"later-wave-64x64", "likewise, where one wave does not take all tiles; else 0", later_wave<64, 64>,
     later_wave_range<64, 64>},
    {"later-wave-128x128", "", later_wave<128, 128>, later_wave_range<128, 128>},
    {"later-wave-128x256", "", later_wave<128, 256>, later_wave_range<128, 256>},
    {"later-wave-256x128", "", later_wave<256, 128>, later_wave_range<256, 128>},
    {"best-wave", "ln of what whole waves of the best tiles cost", best_wave, best_wave_range},
    {"chosen-tiles", "ln of what tiles and parts of the depth take that a library chooses, over the roofline",
     chosen_tiles, chosen_tiles_range},
    {"pad-rows-64", "ln of what rounding up to such multiples adds", pad_rows<64>, pad_rows_range<64>},
    {"pad-rows-128", "", pad_rows<128>, pad_rows_range<128>},
    {"pad-rows-256", "", pad_rows<256>, pad_rows_range<256>},
    {"pad-columns-32", "", pad_columns<32>, pad_columns_range<32>},
    {"pad-columns-64", "", pad_columns<64>, pad_columns_range<64>},
    {"pad-columns-128", "", pad_columns<128>, pad_columns_range<128>},
    {"pad-image-2", "likewise, of both sides of an image", pad_image<2>, pad_image_range<2>},
    {"pad-image-4", "", pad_image<4>, pad_image_range<4>},
    {"pad-image-6", "", pad_image<6>, pad_image_range<6>},
    {"odd-rows-8", "1 where rows, more than that, are no multiple", odd_rows<8>, odd_rows_range<8>},
    {"odd-columns-2", "1 where columns are no multiple", odd_columns<2>, odd_columns_range<2>},
    {"odd-columns-4", "", odd_columns<4>, odd_columns_range<4>},
    {"odd-depth-2", "1 where the depth, or the channels, are no multiple", odd_depth<2>, odd_depth_range<2>},
    {"odd-depth-4", "", odd_depth<4>, odd_depth_range<4>},
    {"single-row", "1 where there is one row", single_row, single_row_range},
    {"ungrouped", "1 where each query head has its own keys",
     [](const Kernel& k, double) { return queries_per_key(k) == 1 ? 1.0 : 0.0; }, ungrouped_range},
    {"unmasked", "1 where queries of attention see later keys",
     [](const Kernel& k, double) { return dimension(k, 5) == 0 ? 1.0 : 0.0; }},
    {"inverse-image", "1 / image", [](const Kernel& k, double) { return 1 / height(k); },
     [](const KernelRange& kernels, double) {
       return FeatureRange{1 / height(kernels.high), 1 / height(kernels.low)};
     }},
};

} // namespace

ProductShape product_of(const Kernel& kernel) {
  switch (kernel.op) {
  case KernelOp::gemm:
    return {dimension(kernel, 0) * dimension(kernel, 1), dimension(kernel, 2), dimension(kernel, 3)};
  case KernelOp::convolution: {
    const double groups = dimension(kernel, 9);
    return {dimension(kernel, 0) * height(kernel) * width(kernel) * groups, dimension(kernel, 4) / groups,
            dimension(kernel, 1) / groups * dimension(kernel, 5) * dimension(kernel, 6)};
  }
  case KernelOp::attention:
    return {dimension(kernel, 0) * dimension(kernel, 2) * dimension(kernel, 1), dimension(kernel, 4),
            dimension(kernel, 1)};
  default:
    return {dimension(kernel, 0), dimension(kernel, 1), 1};
  }
}

std::span<const KernelFeature> kernel_features() { return kFeatures; }

FeatureRange range_of(const KernelFeature& feature, const KernelRange& kernels, double processors) {
  if (feature.range != nullptr) {
    return feature.range(kernels, processors);
  }
  return {feature.value(kernels.low, processors), feature.value(kernels.high, processors)};
}

} // namespace stagecraft
