# expect: 3:15: 'MICRO_BATCH_SIZE' is set only in line 4; allowed: a variable that a line above sets, or ${MICRO_BATCH_SIZE:-VALUE}
# SPDX-License-Identifier: Apache-2.0
export MINIBS=${MICRO_BATCH_SIZE}
export MICRO_BATCH_SIZE=${MINIBS}
