# expect: 3:51: both '--fp16' and '--bf16' are given; allowed: one of them
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --global-batch-size 8 --bf16 --fp16
