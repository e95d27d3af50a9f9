// How an operator's tensors lie along one dimension of a layout: this follows from the letter that the ranks share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/program/program.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {

/// A tensor of these dimensions, cut along one of them.
Placement shard_of(const TensorDimensions& dimensions, int dimension);

/// How an operator reads or keeps a tensor of these dimensions: cut where the shared letter stands, whole elsewhere.
Placement placement_used(const TensorDimensions& dimensions, int letter);

/// How an operator makes a tensor: as it would read it, but partial where the shared letter does not stand in it,
/// except for an `output` of an operator that reduces over the letter inside.
Placement placement_made(const Signature& signature, const TensorDimensions& dimensions, int letter, bool output);

/// The same of an input, which may be read as terms of a sum, and of the gradient that is passed back to it.
Placement placement_read(const InputSignature& input, int letter);
Placement placement_passed(const Signature& signature, const InputSignature& input, int letter);

/// How an operator takes the gradient of its output: as the value lies, unless it works on terms of it.
Placement placement_of_gradient(const Placement& value, int letter);

/// Gradients of what is whole are whole, of what is a term of a sum too.
Placement without_partial(const Placement& placement);

/// How a value made in terms of a sum is kept once it is whole: as all its readers need it, where they agree; otherwise
/// whole.
Placement agreed_placement(const std::vector<Placement>& needed);

/// How a parameter that is added last lies beside the operator's value, which is placed like `value`: cut where that is
/// cut along one of its letters. Where the value is cut along another, it is `otherwise`: each rank reads all of it, or
/// has a term of its gradient.
Placement placement_beside(const Signature& signature, const TensorDimensions& dimensions, const Placement& value,
                           Placement::Kind otherwise);

/// The step from one placement to another that differs from it.
StepKind way_between(const Placement& from, const Placement& to);

/// An operator that may hand out the indices of a letter in any order takes the order of its neighbours: a product
/// before attention has the outputs of a rank's heads on that rank.
void agree_on_order(std::vector<Signature>& operators);

} // namespace stagecraft
