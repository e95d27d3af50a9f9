// Convolutions as products with unrolled images (Chellapilla et al. 2006). A few output rows at a time are unrolled, so
// that they fit in the cache. Channels are outermost.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {
namespace {

constexpr Index kMostUnrolled = 1 << 17; // floats; half of a second-level cache

struct ConvolutionGeometry {
  Index n, c, h, w, k, r, s, stride, padding, groups; // dimensions as in the table of kernels
  Index out_h, out_w, group_in, group_out, depth, block;

  explicit ConvolutionGeometry(const gpu::Shape& shape)
      : n(shape[0]), c(shape[1]), h(shape[2]), w(shape[3]), k(shape[4]), r(shape[5]), s(shape[6]), stride(shape[7]),
        padding(shape[8]), groups(shape[9]), out_h(gpu::output_extent(h, r, stride, padding)),
        out_w(gpu::output_extent(w, s, stride, padding)), group_in(c / groups), group_out(k / groups),
        depth(group_in * r * s) {
    if (out_h < 1 || out_w < 1 || h + 2 * padding < r || w + 2 * padding < s) {
      throw std::runtime_error("its window is larger than the image");
    }
    if (c % groups != 0 || k % groups != 0) {
      throw std::runtime_error("its groups do not divide the channels");
    }
    block = std::clamp<Index>(kMostUnrolled / (depth * out_w), 1, out_h);
  }

  Index image_in() const { return c * h * w; }
  Index image_out() const { return k * out_h * out_w; }
  Index weights() const { return k * depth; }
  bool plain() const { return r == 1 && s == 1 && stride == 1 && padding == 0; }
};

// The output columns for which column `offset` of the window lies inside the image.
struct Inside {
  Index begin, end;

  Inside(const ConvolutionGeometry& g, Index offset) {
    const Index before = g.padding - offset; // columns by which the first window starts left of the image
    begin = std::min(g.out_w, before > 0 ? (before + g.stride - 1) / g.stride : 0);
    end = std::clamp((g.w - 1 + before) / g.stride + 1, begin, g.w - 1 + before < 0 ? begin : g.out_w);
  }
};

// Calls `row(is inside the image, offset in the image, offset in the unrolled rows, columns inside)` for output rows
// [first, last) of one group.
template <class Row> void for_rows(const ConvolutionGeometry& g, Index first, Index last, const Row& row) {
  for (Index channel = 0; channel < g.group_in; ++channel) {
    for (Index i = 0; i < g.r; ++i) {
      for (Index j = 0; j < g.s; ++j) {
        const Index unrolled = ((channel * g.r + i) * g.s + j) * (last - first) * g.out_w;
        const Inside inside(g, j);
        for (Index y = first; y < last; ++y) {
          const Index line = y * g.stride - g.padding + i;
          const Index at = line < 0 || line >= g.h ? -1 : (channel * g.h + line) * g.w + j - g.padding;
          row(line >= 0 && line < g.h, at, unrolled + (y - first) * g.out_w, inside);
        }
      }
    }
  }
}

void unroll(const ConvolutionGeometry& g, const float* image, Index first, Index last, float* columns) {
  for_rows(g, first, last, [&](bool within, Index at, Index unrolled, const Inside& inside) {
    float* to = columns + unrolled;
    if (!within) {
      std::fill_n(to, g.out_w, 0.0F);
      return;
    }
    std::fill_n(to, inside.begin, 0.0F);
    if (g.stride == 1) {
      std::copy_n(image + at + inside.begin, inside.end - inside.begin, to + inside.begin);
    } else {
      for (Index x = inside.begin; x < inside.end; ++x) {
        to[x] = image[at + x * g.stride];
      }
    }
    std::fill_n(to + inside.end, g.out_w - inside.end, 0.0F);
  });
}

void add_rolled(const ConvolutionGeometry& g, const float* columns, Index first, Index last, float* image) {
  for_rows(g, first, last, [&](bool within, Index at, Index unrolled, const Inside& inside) {
    for (Index x = within ? inside.begin : inside.end; x < inside.end; ++x) {
      image[at + x * g.stride] += columns[unrolled + x];
    }
  });
}

// Calls `part(image, group, first row, last row)` for every block of output rows of images [begin, end).
template <class Part> void for_blocks(const ConvolutionGeometry& g, Index begin, Index end, const Part& part) {
  for (Index image = begin; image < end; ++image) {
    for (Index group = 0; group < g.groups; ++group) {
      for (Index first = 0; first < g.out_h; first += g.block) {
        part(image, group, first, std::min(g.out_h, first + g.block));
      }
    }
  }
}

float* columns_of(const ConvolutionGeometry& g, const Maker& maker) {
  return maker.arena.space(maker.parts * g.depth * g.block * g.out_w);
}

// Offset of a group's part of the input, and of a block in the output.
Index input_at(const ConvolutionGeometry& g, Index image, Index group) {
  return image * g.image_in() + group * g.group_in * g.h * g.w;
}
Index output_at(const ConvolutionGeometry& g, Index image, Index group, Index row) {
  return image * g.image_out() + (group * g.group_out * g.out_h + row) * g.out_w;
}

Work make_forward(const ConvolutionGeometry& g, const Maker& maker) {
  Work work;
  const float* x = maker.read(work, "x", g.n * g.image_in());
  const float* weight = maker.read(work, "w", g.weights());
  float* y = maker.write(work, "y", g.n * g.image_out());
  float* columns = columns_of(g, maker);
  work.items = g.n;
  work.run = [=, compute = maker.routines.product](int part, Index begin, Index end) {
    float* mine = columns + part * g.depth * g.block * g.out_w;
    for_blocks(g, begin, end, [&](Index image, Index group, Index first, Index last) {
      const Index positions = (last - first) * g.out_w;
      const float* in = x + input_at(g, image, group);
      if (!g.plain()) {
        unroll(g, in, first, last, mine);
      }
      compute({.m = g.group_out,
               .n = positions,
               .k = g.depth,
               .a = weight + group * g.group_out * g.depth,
               .lda = g.depth,
               .b = g.plain() ? in + first * g.out_w : mine,
               .ldb = g.plain() ? g.h * g.w : positions,
               .c = y + output_at(g, image, group, first),
               .ldc = g.out_h * g.out_w});
    });
  };
  return work;
}

Work make_input_gradient(const ConvolutionGeometry& g, const Maker& maker) {
  Work work;
  const float* dy = maker.read(work, "dy", g.n * g.image_out());
  const float* weight = maker.read(work, "w", g.weights());
  float* dx = maker.write(work, "dx", g.n * g.image_in());
  float* columns = columns_of(g, maker);
  work.items = g.n;
  work.run = [=, compute = maker.routines.product](int part, Index begin, Index end) {
    float* mine = columns + part * g.depth * g.block * g.out_w;
    if (!g.plain()) {
      std::fill(dx + begin * g.image_in(), dx + end * g.image_in(), 0.0F);
    }
    for_blocks(g, begin, end, [&](Index image, Index group, Index first, Index last) {
      const Index positions = (last - first) * g.out_w;
      float* in = dx + input_at(g, image, group);
      compute({.transpose_a = true,
               .m = g.depth,
               .n = positions,
               .k = g.group_out,
               .a = weight + group * g.group_out * g.depth,
               .lda = g.depth,
               .b = dy + output_at(g, image, group, first),
               .ldb = g.out_h * g.out_w,
               .c = g.plain() ? in + first * g.out_w : mine,
               .ldc = g.plain() ? g.h * g.w : positions});
      if (!g.plain()) {
        add_rolled(g, mine, first, last, in);
      }
    });
  };
  return work;
}

// Each thread sums the gradients of its images; the threads' sums are added at the end.
Work make_weight_gradient(const ConvolutionGeometry& g, const Maker& maker) {
  Work work;
  const float* x = maker.read(work, "x", g.n * g.image_in());
  const float* dy = maker.read(work, "dy", g.n * g.image_out());
  float* dw = maker.write(work, "dw", g.weights(), true);
  float* others = maker.parts > 1 ? maker.arena.space((maker.parts - 1) * g.weights(), true) : nullptr;
  float* columns = columns_of(g, maker);
  const auto sum_of = [=](int part) { return part == 0 ? dw : others + (part - 1) * g.weights(); };
  work.items = g.n;
  work.run = [=, compute = maker.routines.product](int part, Index begin, Index end) {
    float* mine = columns + part * g.depth * g.block * g.out_w;
    std::fill_n(sum_of(part), g.weights(), 0.0F);
    for_blocks(g, begin, end, [&](Index image, Index group, Index first, Index last) {
      const Index positions = (last - first) * g.out_w;
      const float* in = x + input_at(g, image, group);
      if (!g.plain()) {
        unroll(g, in, first, last, mine);
      }
      compute({.transpose_b = true,
               .m = g.group_out,
               .n = g.depth,
               .k = positions,
               .a = dy + output_at(g, image, group, first),
               .lda = g.out_h * g.out_w,
               .b = g.plain() ? in + first * g.out_w : mine,
               .ldb = g.plain() ? g.h * g.w : positions,
               .c = sum_of(part) + group * g.group_out * g.depth,
               .ldc = g.depth,
               .accumulate = true});
    });
  };
  work.finish = [=, add = maker.routines.add, parts = maker.parts] {
    for (int part = 1; part < parts; ++part) {
      add(dw, sum_of(part), dw, g.weights());
    }
  };
  return work;
}

} // namespace

Work make_convolution(const Kernel& kernel, const Maker& maker) {
  const ConvolutionGeometry geometry(kernel.shape);
  return kernel.pass == gpu::Pass::forward          ? make_forward(geometry, maker)
         : kernel.pass == gpu::Pass::backward_input ? make_input_gradient(geometry, maker)
                                                    : make_weight_gradient(geometry, maker);
}

} // namespace stagecraft::cpu
