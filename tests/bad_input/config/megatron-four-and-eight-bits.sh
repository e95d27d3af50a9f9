# expect: 3:55: both '--fp8-format' and '--fp4-format' are given; allowed: one of them
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --fp8-format hybrid --fp4-format e2m1
