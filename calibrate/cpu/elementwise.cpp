// Operators that are bound by memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {
namespace {

using gpu::Op;

struct Extent {
  Index rows, columns;
  Index cells() const { return rows * columns; }
};

// y = f(x), element by element.
template <class F> Work map(const Extent& e, const Maker& maker, const char* in, const char* out, F f) {
  Work work;
  const float* x = maker.read(work, in, e.cells());
  float* y = maker.write(work, out, e.cells());
  work.items = e.cells();
  work.run = [=](int, Index begin, Index end) { f(x + begin, y + begin, end - begin); };
  return work;
}

// z = f(x, y), element by element.
template <class F> Work map2(const Extent& e, const Maker& maker, std::array<const char*, 3> names, F f) {
  Work work;
  const float* x = maker.read(work, names[0], e.cells());
  const float* y = maker.read(work, names[1], e.cells());
  float* z = maker.write(work, names[2], e.cells());
  work.items = e.cells();
  work.run = [=](int, Index begin, Index end) { f(x + begin, y + begin, z + begin, end - begin); };
  return work;
}

Work make_dropout(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const float* in = maker.read(work, forward ? "x" : "dy", e.cells());
  float* out = maker.write(work, forward ? "y" : "dx", e.cells());
  auto* mask = reinterpret_cast<std::uint8_t*>(maker.write(work, "mask", (e.cells() + 3) / 4));
  work.items = e.cells();
  work.run = [=, routines = &maker.routines](int, Index begin, Index end) {
    forward ? routines->dropout(in + begin, out + begin, mask + begin, begin, end - begin)
            : routines->dropout_gradient(mask + begin, in + begin, out + begin, end - begin);
  };
  if (!forward) { // makes the mask that forward would have left
    maker.routines.dropout(in, out, mask, 0, e.cells());
  }
  return work;
}

struct Norm {
  const float *x, *scale, *shift, *dy = nullptr;
  float *y, *mean, *inverse, *d_scale = nullptr, *d_shift = nullptr;
};

Norm norm_operands(Work& work, const Extent& e, const Maker& maker, Index statistics, bool forward) {
  Norm norm{};
  norm.x = maker.read(work, "x", e.cells());
  norm.scale = maker.read(work, "scale", e.columns);
  norm.shift = maker.read(work, "shift", e.columns);
  if (!forward) {
    norm.dy = maker.read(work, "dy", e.cells());
  }
  norm.y = maker.write(work, forward ? "y" : "dx", e.cells());
  norm.mean = maker.write(work, "mean", statistics);
  norm.inverse = maker.write(work, "inverse", statistics);
  if (!forward) {
    norm.d_scale = maker.write(work, "dscale", e.columns, true);
    norm.d_shift = maker.write(work, "dshift", e.columns, true);
  }
  return norm;
}

// In backward each thread sums its gradients of scale and shift; the sums are added at the end.
Work make_layer_norm(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const Norm o = norm_operands(work, e, maker, e.rows, forward);
  const Routines* routines = &maker.routines;
  const auto rows_of = [=](Index begin, Index end) {
    return Rows{o.x + begin * e.columns, o.y + begin * e.columns, end - begin, e.columns, e.columns};
  };
  work.items = e.rows;
  if (forward) {
    work.run = [=](int, Index begin, Index end) {
      routines->layer_norm(rows_of(begin, end), o.scale, o.shift, o.mean + begin, o.inverse + begin);
    };
    return work;
  }
  routines->layer_norm(rows_of(0, e.rows), o.scale, o.shift, o.mean, o.inverse);
  float* sums = maker.arena.space(Index{maker.parts} * 2 * e.columns);
  work.run = [=](int part, Index begin, Index end) {
    float* mine = sums + Index{part} * 2 * e.columns;
    std::fill_n(mine, 2 * e.columns, 0.0F);
    routines->layer_norm_gradient(rows_of(begin, end), o.dy + begin * e.columns, o.scale, o.mean + begin,
                                  o.inverse + begin, mine, mine + e.columns);
  };
  work.finish = [=, parts = maker.parts] {
    std::copy_n(sums, e.columns, o.d_scale);
    std::copy_n(sums + e.columns, e.columns, o.d_shift);
    for (int part = 1; part < parts; ++part) {
      const float* more = sums + Index{part} * 2 * e.columns;
      routines->add(o.d_scale, more, o.d_scale, e.columns);
      routines->add(o.d_shift, more + e.columns, o.d_shift, e.columns);
    }
  };
  return work;
}

// Threads share columns, which do not depend on each other.
Work make_batch_norm(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const Norm o = norm_operands(work, e, maker, e.columns, forward);
  const Routines* routines = &maker.routines;
  const auto columns_of = [=](Index begin, Index end) {
    return Rows{o.x + begin, o.y + begin, e.rows, end - begin, e.columns};
  };
  work.items = e.columns;
  if (forward) {
    work.run = [=](int, Index begin, Index end) {
      routines->batch_norm(columns_of(begin, end), o.scale + begin, o.shift + begin, o.mean + begin, o.inverse + begin);
    };
    return work;
  }
  routines->batch_norm(columns_of(0, e.columns), o.scale, o.shift, o.mean, o.inverse);
  work.run = [=](int, Index begin, Index end) {
    routines->batch_norm_gradient(columns_of(begin, end), o.dy + begin, o.scale + begin, o.mean + begin,
                                  o.inverse + begin, o.d_scale + begin, o.d_shift + begin);
  };
  return work;
}

Work make_softmax(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const float* x = maker.read(work, "x", e.cells());
  const float* dy = forward ? nullptr : maker.read(work, "dy", e.cells());
  float* y = maker.write(work, "y", e.cells());
  float* dx = forward ? nullptr : maker.write(work, "dx", e.cells());
  const Routines* routines = &maker.routines;
  work.items = e.rows;
  if (forward) {
    work.run = [=](int, Index begin, Index end) {
      routines->softmax({x + begin * e.columns, y + begin * e.columns, end - begin, e.columns, e.columns});
    };
    return work;
  }
  routines->softmax({x, y, e.rows, e.columns, e.columns});
  work.run = [=](int, Index begin, Index end) {
    const Index at = begin * e.columns;
    routines->softmax_gradient({y + at, dx + at, end - begin, e.columns, e.columns}, dy + at);
  };
  return work;
}

// The gradient of the scale is summed by each thread, and added up at the end.
Work make_rms_norm(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const float* x = maker.read(work, "x", e.cells());
  const float* scale = maker.read(work, "scale", e.columns);
  const float* dy = forward ? nullptr : maker.read(work, "dy", e.cells());
  float* y = maker.write(work, forward ? "y" : "dx", e.cells());
  float* inverse = maker.write(work, "inverse", e.rows);
  const Routines* routines = &maker.routines;
  const auto rows_of = [=](Index begin, Index end) {
    return Rows{x + begin * e.columns, y + begin * e.columns, end - begin, e.columns, e.columns};
  };
  work.items = e.rows;
  if (forward) {
    work.run = [=](int, Index begin, Index end) { routines->rms_norm(rows_of(begin, end), scale, inverse + begin); };
    return work;
  }
  float* d_scale = maker.write(work, "dscale", e.columns, true);
  routines->rms_norm(rows_of(0, e.rows), scale, inverse);
  float* sums = maker.arena.space(Index{maker.parts} * e.columns, true);
  work.run = [=](int part, Index begin, Index end) {
    float* mine = sums + Index{part} * e.columns;
    std::fill_n(mine, e.columns, 0.0F);
    routines->rms_norm_gradient(rows_of(begin, end), dy + begin * e.columns, scale, inverse + begin, mine);
  };
  work.finish = [=, parts = maker.parts] {
    std::copy_n(sums, e.columns, d_scale);
    for (int part = 1; part < parts; ++part) {
      routines->add(d_scale, sums + Index{part} * e.columns, d_scale, e.columns);
    }
  };
  return work;
}

Work make_swiglu(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const float* gate = maker.read(work, "gate", e.cells());
  const float* up = maker.read(work, "up", e.cells());
  work.items = e.cells();
  if (forward) {
    float* y = maker.write(work, "y", e.cells());
    work.run = [=, run = maker.routines.swiglu](int, Index begin, Index end) {
      run(gate + begin, up + begin, y + begin, end - begin);
    };
    return work;
  }
  const float* dy = maker.read(work, "dy", e.cells());
  float* d_gate = maker.write(work, "dgate", e.cells());
  float* d_up = maker.write(work, "dup", e.cells());
  work.run = [=, run = maker.routines.swiglu_gradient](int, Index begin, Index end) {
    run(gate + begin, up + begin, dy + begin, d_gate + begin, d_up + begin, end - begin);
  };
  return work;
}

constexpr Index kRowsPerPosition = 32; // heads of a token

// Positions follow one another in the table of angles.
Work make_rotary(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const Index half = e.columns / 2;
  const float* x = maker.read(work, "x", e.cells());
  const float* cosine = maker.read(work, "cosine", gpu::kPositions * half);
  const float* sine = maker.read(work, "sine", gpu::kPositions * half);
  float* y = maker.write(work, "y", e.cells());
  work.items = e.rows;
  work.run = [=, run = maker.routines.rotate](int, Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const Index angles = row / kRowsPerPosition % gpu::kPositions * half;
      run(x + row * e.columns, cosine + angles, sine + angles, forward ? 1.0F : -1.0F, y + row * e.columns, half);
    }
  };
  return work;
}

// The logit that is right in a row.
Index target_of(Index row, Index columns) {
  return static_cast<Index>(static_cast<std::uint64_t>(row) * 2654435769U % static_cast<std::uint64_t>(columns));
}

Work make_cross_entropy(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  const float* x = maker.read(work, "x", e.cells());
  float* result = maker.write(work, forward ? "loss" : "dx", forward ? e.rows : e.cells());
  float* totals = maker.write(work, "totals", e.rows);
  const Routines* routines = &maker.routines;
  const float share = 1 / static_cast<float>(e.rows);
  const auto rows_of = [=](Index begin, Index end) {
    return Rows{x + begin * e.columns, forward ? nullptr : result + begin * e.columns, end - begin, e.columns,
                e.columns};
  };
  work.items = e.rows;
  if (forward) {
    work.run = [=](int, Index begin, Index end) {
      routines->log_sums(rows_of(begin, end), totals + begin);
      for (Index row = begin; row < end; ++row) {
        result[row] = totals[row] - x[row * e.columns + target_of(row, e.columns)];
      }
    };
    return work;
  }
  routines->log_sums(rows_of(0, e.rows), totals);
  work.run = [=](int, Index begin, Index end) {
    routines->log_sums_gradient(rows_of(begin, end), totals + begin, share);
    for (Index row = begin; row < end; ++row) {
      result[row * e.columns + target_of(row, e.columns)] -= share;
    }
  };
  return work;
}

// The row of the table that position `row` looks up.
Index looked_up(Index row) {
  return static_cast<Index>(static_cast<std::uint64_t>(row) * 2654435769U % gpu::kVocabulary);
}

Work make_embedding(const Extent& e, const Maker& maker, bool forward) {
  Work work;
  if (forward) {
    const float* table = maker.read(work, "table", gpu::kVocabulary * e.columns);
    float* y = maker.write(work, "y", e.cells());
    work.items = e.rows;
    work.run = [=](int, Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        std::copy_n(table + looked_up(row) * e.columns, e.columns, y + row * e.columns);
      }
    };
    return work;
  }
  const float* dy = maker.read(work, "dy", e.cells());
  float* gradient = maker.write(work, "dtable", gpu::kVocabulary * e.columns, true);
  work.items = e.columns; // so that no two threads add to the same element
  work.run = [=, add = maker.routines.add](int, Index begin, Index end) {
    for (Index row = 0; row < e.rows; ++row) {
      float* to = gradient + looked_up(row) * e.columns + begin;
      add(to, dy + row * e.columns + begin, to, end - begin);
    }
  };
  return work;
}

Work make_sum(const Extent& e, const Maker& maker) {
  Work work;
  const float* x = maker.read(work, "x", e.cells());
  float* result = maker.write(work, "y", 1);
  float* sums = maker.arena.space(maker.parts, true);
  work.items = e.cells();
  work.run = [=, sum = maker.routines.sum](int part, Index begin, Index end) {
    sums[part] = sum(x + begin, end - begin);
  };
  work.finish = [=, parts = maker.parts] {
    *result = 0;
    for (int part = 0; part < parts; ++part) {
      *result += sums[part];
    }
  };
  return work;
}

Work make_adam(const Extent& e, const Maker& maker) {
  Work work;
  const float* gradient = maker.read(work, "g", e.cells());
  float* weight = maker.write(work, "w", e.cells(), true);
  float* first = maker.write(work, "m", e.cells(), true);
  float* second = maker.write(work, "v", e.cells(), true);
  work.items = e.cells();
  work.run = [=, adam = maker.routines.adam](int, Index begin, Index end) {
    adam(gradient + begin, weight + begin, first + begin, second + begin, end - begin);
  };
  return work;
}

Work make_empty() {
  Work work;
  work.run = [](int, Index, Index) {};
  return work;
}

bool has_pass(const Kernel& kernel) {
  switch (kernel.op) {
  case Op::adam:
  case Op::sum:
  case Op::launch:
    return kernel.pass == gpu::Pass::forward;
  case Op::embedding:
    return kernel.pass != gpu::Pass::backward_input;
  default:
    return kernel.pass != gpu::Pass::backward_weight;
  }
}

} // namespace

Work make_elementwise(const Kernel& kernel, const Maker& maker) {
  const Extent e{kernel.shape[0], kernel.shape[1]};
  const bool forward = kernel.pass == gpu::Pass::forward;
  const Routines& r = maker.routines;
  if (!has_pass(kernel)) {
    throw std::runtime_error("it has no such pass");
  }
  const auto copy = [](const float* x, float* y, Index count) {
    std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(float));
  };
  switch (kernel.op) {
  case Op::add: // backward of add passes the gradient on to both inputs
  case Op::copy:
    return kernel.op == Op::add && forward ? map2(e, maker, {"x", "y", "z"}, r.add) : map(e, maker, "x", "y", copy);
  case Op::relu:
    return forward ? map(e, maker, "x", "y", r.relu) : map2(e, maker, {"y", "dy", "dx"}, r.relu_gradient);
  case Op::gelu:
    return forward ? map(e, maker, "x", "y", r.gelu) : map2(e, maker, {"x", "dy", "dx"}, r.gelu_gradient);
  case Op::dropout:
    return make_dropout(e, maker, forward);
  case Op::layer_norm:
    return make_layer_norm(e, maker, forward);
  case Op::rms_norm:
    return make_rms_norm(e, maker, forward);
  case Op::batch_norm:
    return make_batch_norm(e, maker, forward);
  case Op::swiglu:
    return make_swiglu(e, maker, forward);
  case Op::rotary:
    return make_rotary(e, maker, forward);
  case Op::cross_entropy:
    return make_cross_entropy(e, maker, forward);
  case Op::softmax:
    return make_softmax(e, maker, forward);
  case Op::embedding:
    return make_embedding(e, maker, forward);
  case Op::sum:
    return make_sum(e, maker);
  case Op::adam:
    return make_adam(e, maker);
  case Op::launch:
    return make_empty();
  default:
    throw std::runtime_error("the processor has no such kernel here");
  }
}

} // namespace stagecraft::cpu
