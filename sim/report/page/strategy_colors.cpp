// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/strategy_colors.hpp"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

// In the order of the page's colours; each further eight have the same colours and other symbols.
constexpr std::array<std::string_view, 30> kOrder = {
    "optimal", "data-parallel", "pipedream",    "block-partition", "dapple",  "capability", "uniform",
    "mesh",    "best-known",    "framework",    "antichain",       "by-hand", "piper",      "capability-refined",
    "single",  "amp",           "layered",      "parameters",      "mcmc",    "eft",        "capability-calibrated",
    "heft",    "ideal",         "ideal-linear", "best-of-random",  "random",  "dynamic",    "eft-contiguous",
    "others",  "best-of-all"};

} // namespace

int strategy_color(std::string_view strategy) {
  const auto found = std::find(kOrder.begin(), kOrder.end(), strategy);
  if (found != kOrder.end()) {
    return static_cast<int>(found - kOrder.begin());
  }
  unsigned hash = 0;
  for (const char c : strategy) {
    constexpr unsigned kFactor = 31;
    hash = kFactor * hash + static_cast<unsigned char>(c);
  }
  return static_cast<int>(hash % kOrder.size());
}

} // namespace stagecraft
