// Times of DeepEP's kernels: tables of them, and lines fitted to these. docs/formats/kernel-tables.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft::fit {

/// One measured dispatch or combine.
struct MeasuredDispatch {
  std::string op; ///< "dispatch" or "combine"
  int nodes = 1, processors = 1;
  double tokens = 1;              ///< of each rank
  double bytes = 0;               ///< of a token
  double inside = 0, between = 0; ///< copies of a token: DispatchTraffic
  Seconds time;
};

/// Reads the rows of a table, two of each. It does not say where tokens went: to experts that are all as likely, on
/// nodes of eight ranks, those of more than four nodes to experts of four at most, as DeepEP's own benchmark has it; in
/// 8 bits with scales on their way out, in 16 on their way back. InputError for impossible values.
std::vector<MeasuredDispatch> read_dispatch_table(std::string_view text, const std::string& file);

/// A line for each operation, number of nodes and number of multiprocessors, with the least relative errors. On one
/// node it has a part for each token, each of its bytes and each byte sent; on several, whose tables have one size of
/// tokens, for each byte sent to other nodes alone. `error` is that at every second number of tokens, of what the
/// others give.
std::vector<DispatchFit> fit_dispatches(const std::vector<MeasuredDispatch>& measured, const DispatchLinks& links);

} // namespace stagecraft::fit
