# expect: 4:51: --tensor-model-parallel-size 3 does not divide the 8 ranks that the file asks for; nearest that do: 2 or 4
# SPDX-License-Identifier: Apache-2.0
WORLD_SIZE=8
--micro-batch-size 1 --tensor-model-parallel-size 3
