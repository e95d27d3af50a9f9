// How a tensor lies on the ranks of a layout, in the terms of PyTorch's DTensor and of GSPMD (Xu et al. 2021).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace stagecraft {

/// What the ranks along one dimension of a layout have of a tensor.
struct Placement {
  enum class Kind {
    replicate, ///< all of it, the same
    shard,     ///< a part of one dimension each
    partial    ///< terms of a sum each
  };
  Kind kind = Kind::replicate;
  int dimension = 0;                    ///< of a shard
  std::vector<std::int64_t> sections{}; ///< of a shard: each is cut into equal parts
  bool sorted = false;                  ///< of a shard: each has the rows of its experts, however many
  bool last = false;                    ///< of a shard: it cuts what other dimensions of the layout leave
  bool operator==(const Placement&) const = default;

  bool is_shard() const { return kind == Kind::shard; }
  bool is_partial() const { return kind == Kind::partial; }
};

/// One for each dimension of the layout. Where several cut the same dimension of a tensor, the outer cuts first, except
/// for one that cuts last.
using Placements = std::vector<Placement>;

} // namespace stagecraft
