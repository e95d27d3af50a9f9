# expect: 3:39: TENSOR_MODEL_PARALLEL 3 x --pipeline-model-parallel-size 1 x --context-parallel-size 1 = 3 does not divide the 8 ranks
# SPDX-License-Identifier: Apache-2.0
export MINIBS=1 TENSOR_MODEL_PARALLEL=3
export DGXNNODES=1
