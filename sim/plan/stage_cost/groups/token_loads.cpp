// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/groups/token_loads.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Sums of the keys that the first queries see. Within a document, and between those at which the window begins to hold
// back, a causal query sees one key more than the one before it.
class SeenKeys {
public:
  explicit SeenKeys(const AttentionMask& mask) : mask_(mask), documents_(mask.documents.begin(), mask.documents.end()) {
    if (documents_.empty()) {
      documents_.push_back(mask.tokens);
    }
  }

  /// Of the first `queries`.
  double before(std::int64_t queries) const {
    double sum = 0;
    for (const std::int64_t length : documents_) {
      sum += in_document(std::min(queries, length), length);
      queries -= std::min(queries, length);
    }
    return sum;
  }

private:
  double in_document(std::int64_t queries, std::int64_t length) const {
    if (!mask_.causal) {
      return static_cast<double>(queries) * static_cast<double>(length);
    }
    const std::int64_t rising = mask_.window > 0 ? std::min<std::int64_t>(queries, mask_.window) : queries;
    return static_cast<double>(rising) * static_cast<double>(rising + 1) / 2 +
           static_cast<double>(queries - rising) * mask_.window;
  }

  const AttentionMask& mask_;
  std::vector<std::int64_t> documents_;
};

} // namespace

std::vector<double> token_loads(const AttentionMask& mask, const Context& context) {
  const int ranks = context.loops();
  std::vector<double> loads(ranks, 1.0);
  if (ranks == 1 || context.order == TokenOrder::by_document) {
    return loads;
  }
  const SeenKeys seen(mask);
  const int parts = context.order == TokenOrder::zig_zag ? 2 * ranks : ranks;
  const auto in_part = [&](int part) {
    return seen.before(mask.tokens * (part + 1) / parts) - seen.before(mask.tokens * part / parts);
  };
  const double equal = seen.before(mask.tokens) / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const double own = in_part(rank) + (parts > ranks ? in_part(parts - 1 - rank) : 0);
    loads[rank] = own / equal;
  }
  return loads;
}

} // namespace stagecraft
