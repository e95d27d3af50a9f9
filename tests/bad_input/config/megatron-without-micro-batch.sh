# expect: 1:1: '--micro-batch-size' is missing: the samples of a replica at a time
# SPDX-License-Identifier: Apache-2.0
--tensor-model-parallel-size 2
