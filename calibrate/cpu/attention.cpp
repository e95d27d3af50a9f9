// Scaled dot-product attention over blocks of queries, whose scores stay in the cache; backward computes the scores
// again (Dao et al. 2022). The rows of a head are adjacent in memory: [batch, heads, sequence, head_size].
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {
namespace {

constexpr Index kQueries = 64; // queries per block

struct AttentionGeometry {
  Index batch, sequence, heads, kv_heads, size;
  bool causal;

  explicit AttentionGeometry(const gpu::Shape& shape)
      : batch(shape[0]), sequence(shape[1]), heads(shape[2]), kv_heads(shape[3]), size(shape[4]), causal(shape[5] > 0) {
    if (heads % kv_heads != 0) {
      throw std::runtime_error("kv_heads do not divide heads");
    }
  }
  Index of_queries() const { return batch * heads * sequence * size; }
  Index of_keys() const { return batch * kv_heads * sequence * size; }
  /// Offset of the keys that a head of the batch uses.
  Index keys_of(Index head) const {
    return (head / heads * kv_heads + head % heads / (heads / kv_heads)) * sequence * size;
  }
  Index seen_by(Index last) const { return causal ? last : sequence; }
};

// softmax(q k' / sqrt(size)) of queries [first, last), a row per query.
void find_weights(const AttentionGeometry& g, const Routines& routines, const float* q, const float* k, Index first,
                  Index last, float* weights) {
  const Index keys = g.seen_by(last);
  routines.product({.transpose_b = true,
                    .m = last - first,
                    .n = keys,
                    .k = g.size,
                    .a = q + first * g.size,
                    .lda = g.size,
                    .b = k,
                    .ldb = g.size,
                    .c = weights,
                    .ldc = g.sequence});
  const float scale = 1 / std::sqrt(static_cast<float>(g.size));
  for (Index row = 0; row < last - first; ++row) {
    float* scores = weights + row * g.sequence;
    for (Index key = 0; key < keys; ++key) {
      scores[key] *= scale;
    }
    if (g.causal) {
      std::fill(scores + first + row + 1, scores + keys, -std::numeric_limits<float>::infinity());
    }
  }
  routines.softmax({weights, weights, last - first, keys, g.sequence});
}

Work make_forward(const AttentionGeometry& g, const Maker& maker) {
  Work work;
  const float* q = maker.read(work, "q", g.of_queries());
  const float* k = maker.read(work, "k", g.of_keys());
  const float* v = maker.read(work, "v", g.of_keys());
  float* o = maker.write(work, "o", g.of_queries());
  float* scores = maker.arena.space(maker.parts * kQueries * g.sequence);
  work.items = g.batch * g.heads;
  work.run = [=, routines = &maker.routines](int part, Index begin, Index end) {
    float* weights = scores + part * kQueries * g.sequence;
    for (Index head = begin; head < end; ++head) {
      const Index at = head * g.sequence * g.size, keys_at = g.keys_of(head);
      for (Index first = 0; first < g.sequence; first += kQueries) {
        const Index last = std::min(g.sequence, first + kQueries);
        find_weights(g, *routines, q + at, k + keys_at, first, last, weights);
        routines->product({.m = last - first,
                           .n = g.size,
                           .k = g.seen_by(last),
                           .a = weights,
                           .lda = g.sequence,
                           .b = v + keys_at,
                           .ldb = g.size,
                           .c = o + at + first * g.size,
                           .ldc = g.size});
      }
    }
  };
  return work;
}

struct Gradients {
  const float *q, *k, *v, *d_o;
  float *dq, *dk, *dv;
};

// Gradients for queries [first, last) of one head: sets their dq, and adds their part to dk and dv.
void add_gradients(const AttentionGeometry& g, const Routines& routines, const Gradients& at, Index first, Index last,
                   float* weights, float* scores) {
  const Index keys = g.seen_by(last), rows = last - first;
  find_weights(g, routines, at.q, at.k, first, last, weights);
  const auto add_to_keys = [&](const float* row_weights, const float* rows_of,
                               float* sum) { // sum += row_weights' rows_of
    routines.product({.transpose_a = true,
                      .m = keys,
                      .n = g.size,
                      .k = rows,
                      .a = row_weights,
                      .lda = g.sequence,
                      .b = rows_of + first * g.size,
                      .ldb = g.size,
                      .c = sum,
                      .ldc = g.size,
                      .accumulate = true});
  };
  add_to_keys(weights, at.d_o, at.dv);
  routines.product({.transpose_b = true,
                    .m = rows,
                    .n = keys,
                    .k = g.size,
                    .a = at.d_o + first * g.size,
                    .lda = g.size,
                    .b = at.v,
                    .ldb = g.size,
                    .c = scores,
                    .ldc = g.sequence});
  routines.softmax_gradient({weights, scores, rows, keys, g.sequence}, scores);
  const float scale = 1 / std::sqrt(static_cast<float>(g.size));
  for (Index row = 0; row < rows; ++row) {
    for (Index key = 0; key < keys; ++key) {
      scores[row * g.sequence + key] *= scale;
    }
  }
  routines.product({.m = rows,
                    .n = g.size,
                    .k = keys,
                    .a = scores,
                    .lda = g.sequence,
                    .b = at.k,
                    .ldb = g.size,
                    .c = at.dq + first * g.size,
                    .ldc = g.size});
  add_to_keys(scores, at.q, at.dk);
}

// Threads share heads of keys, so that no two threads add to the same dk and dv.
Work make_backward(const AttentionGeometry& g, const Maker& maker) {
  Work work;
  Gradients all{};
  all.q = maker.read(work, "q", g.of_queries());
  all.k = maker.read(work, "k", g.of_keys());
  all.v = maker.read(work, "v", g.of_keys());
  all.d_o = maker.read(work, "do", g.of_queries());
  all.dq = maker.write(work, "dq", g.of_queries());
  all.dk = maker.write(work, "dk", g.of_keys());
  all.dv = maker.write(work, "dv", g.of_keys());
  float* scratch = maker.arena.space(Index{maker.parts} * 2 * kQueries * g.sequence);
  work.items = g.batch * g.kv_heads;
  work.run = [=, routines = &maker.routines](int part, Index begin, Index end) {
    float* weights = scratch + Index{part} * 2 * kQueries * g.sequence;
    const Index sharing = g.heads / g.kv_heads, head_size = g.sequence * g.size;
    for (Index key_head = begin; key_head < end; ++key_head) {
      std::fill_n(all.dk + key_head * head_size, head_size, 0.0F);
      std::fill_n(all.dv + key_head * head_size, head_size, 0.0F);
      for (Index head = key_head * sharing; head < (key_head + 1) * sharing; ++head) {
        const Index at = head * head_size, keys_at = key_head * head_size;
        const Gradients here{all.q + at,  all.k + keys_at,  all.v + keys_at, all.d_o + at,
                             all.dq + at, all.dk + keys_at, all.dv + keys_at};
        for (Index first = 0; first < g.sequence; first += kQueries) {
          add_gradients(g, *routines, here, first, std::min(g.sequence, first + kQueries), weights,
                        weights + kQueries * g.sequence);
        }
      }
    }
  };
  return work;
}

} // namespace

Work make_attention(const Kernel& kernel, const Maker& maker) {
  const AttentionGeometry geometry(kernel.shape);
  if (kernel.pass == gpu::Pass::backward_weight) {
    throw std::runtime_error("attention has no weights; backward-input makes all three gradients");
  }
  return kernel.pass == gpu::Pass::forward ? make_forward(geometry, maker) : make_backward(geometry, maker);
}

} // namespace stagecraft::cpu
