# expect: 3:39: TENSOR_MODEL_PARALLEL 3 does not divide the 8 ranks that the file asks for; nearest that do: 2 or 4
# SPDX-License-Identifier: Apache-2.0
export MINIBS=1 TENSOR_MODEL_PARALLEL=3
export DGXNNODES=1
