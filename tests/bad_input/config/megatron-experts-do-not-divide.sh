# expect: 3:51: --expert-model-parallel-size 3 does not divide the 8 ranks of a stage; nearest that do: 2 or 4
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --expert-model-parallel-size 3
