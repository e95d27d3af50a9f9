# expect: 5:36: 7 of 12 layers that --decoder-first-pipeline-num-layers 3 and --decoder-last-pipeline-num-layers 2 leave do not spread evenly over the 2 stages left; nearest that do: --decoder-last-pipeline-num-layers 1 or 3
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --pipeline-model-parallel-size 4
--decoder-first-pipeline-num-layers 3
--decoder-last-pipeline-num-layers 2
