# expect: 3:95: virtual stages of 4 layers do not divide 12 layers on 2 ranks; nearest that do: 3 or 6
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4
