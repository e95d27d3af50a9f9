# expect: 3:46: unknown module 'core_atn' of --recompute-modules; did you mean 'core_attn'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --recompute-granularity selective --recompute-modules core_atn
