// What a program computes, as terms: two programs that differ may come to the same, as where two terms of one sum are
// exchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/program/program.hpp"

namespace stagecraft::testing {

/// Whether two programs of the same operators and tensors come to the same loss, gradients and parameters, whatever the
/// numbers are. Every value is written as a sum of terms. An operator that only adds has the terms of what it reads,
/// and passes its gradient on; a collective makes of each term a term of its own; all else makes one term of the sums
/// that it reads. Sums of the same terms are the same. True is proven; false only says that it was not.
bool mean_the_same(const Program& one, const Program& other);

} // namespace stagecraft::testing
