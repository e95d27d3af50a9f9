// Which variables of MLPerf's config_*.sh are arguments of Megatron-LM, as NVIDIA's submissions have them: conf/*.yaml
// of llama31_405b, llama31_8b, gpt_oss_20b and deepseekv3_671b (training_results v5.0 to v6.0), and of gpt3 and
// llama2_70b_lora (v4.0); GBS is AMD's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace stagecraft {

/// A variable and the argument that it is. Several may be the same one; the first is what we write.
struct MlPerfVariable {
  std::string_view name, flag;
};
inline constexpr std::array kMlPerfVariables = {
    MlPerfVariable{"TENSOR_MODEL_PARALLEL", "tensor-model-parallel-size"},
    MlPerfVariable{"TP", "tensor-model-parallel-size"},
    MlPerfVariable{"PIPELINE_MODEL_PARALLEL", "pipeline-model-parallel-size"},
    MlPerfVariable{"PP", "pipeline-model-parallel-size"},
    MlPerfVariable{"CONTEXT_PARALLEL", "context-parallel-size"},
    MlPerfVariable{"CP", "context-parallel-size"},
    MlPerfVariable{"CP_COMM_TYPE", "cp-comm-type"},
    MlPerfVariable{"EXPERT_PARALLEL", "expert-model-parallel-size"},
    MlPerfVariable{"EXPERT_MODEL_PARALLEL", "expert-model-parallel-size"},
    MlPerfVariable{"EXPERT_TENSOR_PARALLEL", "expert-tensor-parallel-size"},
    MlPerfVariable{"INTERLEAVED_PIPELINE", "num-virtual-stages-per-pipeline-rank"},
    MlPerfVariable{"VP", "num-virtual-stages-per-pipeline-rank"},
    MlPerfVariable{"PIPELINE_LAYOUT", "pipeline-model-parallel-layout"},
    MlPerfVariable{"ASYM_PP_EMBED", "account-for-embedding-in-pipeline-split"},
    MlPerfVariable{"ASYM_PP_LOSS", "account-for-loss-in-pipeline-split"},
    MlPerfVariable{"TP_PP_DP_MAPPING", "use-tp-pp-dp-mapping"},
    MlPerfVariable{"MICRO_BATCH_SIZE", "micro-batch-size"},
    MlPerfVariable{"MBS", "micro-batch-size"},
    MlPerfVariable{"GLOBAL_BATCH_SIZE", "global-batch-size"},
    MlPerfVariable{"GBS", "global-batch-size"},
    MlPerfVariable{"SEQ_LENGTH", "seq-length"},
    MlPerfVariable{"ENCODER_SEQ_LENGTH", "seq-length"},
    MlPerfVariable{"MAX_SEQLEN", "seq-length"},
    MlPerfVariable{"SEQ_PARALLEL", "sequence-parallel"},
    MlPerfVariable{"SP", "sequence-parallel"},
    MlPerfVariable{"USE_DIST_OPTIMIZER", "use-distributed-optimizer"},
    MlPerfVariable{"NUM_DISTOPT_INSTANCES", "num-distributed-optimizer-instances"},
    MlPerfVariable{"USE_MCORE_FSDP", "use-megatron-fsdp"},
    MlPerfVariable{"DP_SHARDING_STRATEGY", "data-parallel-sharding-strategy"},
    MlPerfVariable{"OVERLAP_GRAD_REDUCE", "overlap-grad-reduce"},
    MlPerfVariable{"OVERLAP_PARAM_GATHER", "overlap-param-gather"},
    MlPerfVariable{"BUCKET_SIZE", "ddp-bucket-size"},
    MlPerfVariable{"TP_COMM_OVERLAP", "tp-comm-overlap"},
    MlPerfVariable{"OVERLAP_MOE_EXPERT_PARALLEL_COMM", "overlap-moe-expert-parallel-comm"},
    MlPerfVariable{"DELAY_WGRAD_COMPUTE", "delay-wgrad-compute"},
    MlPerfVariable{"DEFER_EMBEDDING_WGRAD_COMPUTE", "defer-embedding-wgrad-compute"},
    MlPerfVariable{"WGRAD_DEFERRAL_LIMIT", "wgrad-deferral-limit"},
    MlPerfVariable{"FP8_RECIPE", "fp8-recipe"},
    MlPerfVariable{"FP4_RECIPE", "fp4-recipe"},
    MlPerfVariable{"FP8_PARAM_GATHER", "fp8-param-gather"},
    MlPerfVariable{"FP8_PARAMS", "fp8-param-gather"},
    MlPerfVariable{"FP8_ACTIVATION", "activation-func-fp8-input-store"},
    MlPerfVariable{"ACT_CKPT_GRANULARITY", "recompute-granularity"},
    MlPerfVariable{"ACG", "recompute-granularity"},
    MlPerfVariable{"ACT_CKPT_METHOD", "recompute-method"},
    MlPerfVariable{"ACM", "recompute-method"},
    MlPerfVariable{"ACT_CKPT_NUM_LAYERS", "recompute-num-layers"},
    MlPerfVariable{"ACL", "recompute-num-layers"},
    MlPerfVariable{"CUDA_GRAPH_IMPLEMENTATION", "cuda-graph-impl"},
    MlPerfVariable{"MOE_TOKEN_DISPATCHER_TYPE", "moe-token-dispatcher-type"},
    MlPerfVariable{"MOE_FLEX_DISPATCHER_BACKEND", "moe-flex-dispatcher-backend"},
    MlPerfVariable{"MOE_EXPERT_CAPACITY_FACTOR", "moe-expert-capacity-factor"},
    MlPerfVariable{"MOE_PAD_EXPERT_INPUT_TO_CAPACITY", "moe-pad-expert-input-to-capacity"},
    MlPerfVariable{"GRADIENT_CLIP_VAL", "clip-grad"},
};

} // namespace stagecraft
