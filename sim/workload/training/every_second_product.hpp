// What TorchTitan's selective checkpointing by operators computes again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// The products of blocks that run again under TorchTitan's policy `op`, which keeps the results of every other product
/// of a block (torchtitan/distributed/activation_checkpoint.py): of q, k, v, o, w1, w3 and w2 those of k, o and w3 run
/// again. w1 and w3 are one product here, which every second block runs again, and q, k and v one, which is kept.
std::vector<std::string> every_second_product(int blocks);

} // namespace stagecraft
