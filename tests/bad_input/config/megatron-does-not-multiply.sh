# expect: 4:51: --tensor-model-parallel-size 3 x --pipeline-model-parallel-size 1 x --context-parallel-size 1 = 3 does not divide the 8
# SPDX-License-Identifier: Apache-2.0
WORLD_SIZE=8
--micro-batch-size 1 --tensor-model-parallel-size 3
