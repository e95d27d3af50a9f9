// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/dapple_latency.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

double both_passes(const PipelinePart& part) { return part.forward + part.backward; }

std::size_t pivot_of(std::span<const PipelinePart> parts, int micro_batches) {
  std::size_t pivot = parts.size() - 1;
  for (std::size_t s = parts.size() - 1; s-- > 0;) {
    double between = 0;
    for (std::size_t a = s + 1; a < pivot; ++a) {
      between += both_passes(parts[a]);
    }
    if ((micro_batches - 1) * both_passes(parts[s]) > (micro_batches - 1) * both_passes(parts[pivot]) + between) {
      pivot = s;
    }
  }
  return pivot;
}

} // namespace

double dapple_latency(std::span<const PipelinePart> parts, int micro_batches) {
  const std::size_t pivot = pivot_of(parts, micro_batches);
  double warm_up = 0;
  for (std::size_t s = 0; s <= pivot; ++s) {
    warm_up += parts[s].forward;
  }
  double ending = -kInfinity;
  double backward = 0; // sum from s to the pivot; negative after it
  for (std::size_t s = pivot + 1; s-- > 0;) {
    backward += parts[s].backward;
    ending = std::max(ending, parts[s].reduction + backward);
  }
  backward = 0;
  for (std::size_t s = pivot + 1; s < parts.size(); ++s) {
    backward -= parts[s].backward;
    ending = std::max(ending, parts[s].reduction + backward);
  }
  return warm_up + (micro_batches - 1) * both_passes(parts[pivot]) + ending;
}

double dapple_score(std::span<const PipelinePart> parts, int micro_batches) {
  double block = 0;
  double total = 0;
  for (const PipelinePart& part : parts) {
    block = std::max(block, both_passes(part));
    total += both_passes(part);
  }
  double exposed = 0;
  for (std::size_t stage = 0; 2 * stage < parts.size(); ++stage) { // transfers stand between stages
    exposed = std::max(exposed, parts[2 * stage].reduction - static_cast<double>(stage) * block);
  }
  return (micro_batches - 1) * block + total + exposed;
}

} // namespace stagecraft
