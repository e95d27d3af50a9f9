// Which kernels compute attention, where a training says so: frameworks of different years run different ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

struct AttentionRow {
  std::string_view name, help;
  std::string_view variant = {}; ///< of the device's fits; "": theirs without one
  bool separate = false;         ///< products, softmax and dropout are kernels of their own
  bool eager = false;            ///< so are the scaling and the mask of scores, and copies of what heads hold
  int softmax_by = 1; ///< its softmax is one kernel where this divides a rank's heads times its samples at a time
  double widest = 0;  ///< features of a head, of which one of more takes as long as so many more heads; 0: none does
  double block = 0;   ///< queries, and keys, of a block that is computed whole where a causal mask cuts it; 0: none is
};
inline constexpr std::array kAttentions = {
    AttentionRow{"fused", "one kernel, as the device's fits or its roofline have it"},
    AttentionRow{"flash-1", "FlashAttention 1 (Dao et al. 2022), where the device has fits of it", "flash-1"},
    AttentionRow{.name = "triton-2022",
                 .help =
                     "FlashAttention 1 in Triton (Dao 2022), where the device has fits of FlashAttention 1: heads of "
                     "more than 64 features as so many more of 64",
                 .variant = "flash-1",
                 .widest = 64},
    AttentionRow{"triton", "FlashAttention in Triton (2023), where the device has fits of it", "triton"},
    AttentionRow{"flash-2", "FlashAttention 2 (Dao 2023), where the device has fits of it", "flash-2"},
    AttentionRow{.name = "splash",
                 .help =
                     "one kernel of JAX on TPUs, which computes blocks of 2048 queries and keys whole that a causal "
                     "mask cuts",
                 .block = 2048},
    AttentionRow{
        "separate", "a product, a softmax with its mask, dropout if the model has any, and a product", {}, true},
    AttentionRow{.name = "megatron",
                 .help =
                     "the same by Megatron-LM before FlashAttention: a softmax in steps, in fp32, where the heads of a "
                     "rank times its samples are no multiple of 4",
                 .separate = true,
                 .softmax_by = 4},
    AttentionRow{
        "eager", "the same with kernels that scale scores, mask them and copy heads, as in PyTorch", {}, true, true},
};

/// What a rank computes of an attention at a time.
struct RankHeads {
  int tensor = 1;  ///< ranks that divide the heads among them
  int samples = 0; ///< of a micro-batch; 0: not known
};

/// The model with the kernels of attention that the row names. Separate ones read and write the scores of all pairs of
/// a query and a key, also of those that a mask hides, and keep them for backward: 5 a s^2 b bytes in 16 bits
/// (Korthikanti et al. 2023, section 4.1). Eager ones are those of a module written in PyTorch, as BERT's in NVIDIA's
/// examples and Hugging Face's models before 2024 (docs/model.md, "Attention of several kernels"). Attention with a
/// window, documents, sinks or latent keys stays fused.
ModelGraph with_attention(ModelGraph model, const AttentionRow& row, const RankHeads& rank = {});

/// Whether a model has attention, or a state space in its place: as a kernel of its own, or as separate kernels, which
/// show in products of two results, that is without parameters.
bool has_attention(const ModelGraph& model);

} // namespace stagecraft
