# expect: 4:29: unknown variable 'TENSR_MODEL_PARALLEL'; did you mean 'TENSOR_MODEL_PARALLEL'?
# SPDX-License-Identifier: Apache-2.0
export MINIBS=1
export TENSR_MODEL_PARALLEL=2
