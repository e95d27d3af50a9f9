# expect: 4:24: unknown variable 'MICRO_BATCH_SIZ'; did you mean 'MICRO_BATCH_SIZE'?
# SPDX-License-Identifier: Apache-2.0
export MINIBS=8
export MICRO_BATCH_SIZ=2
