# expect: 3:1: the variable 'TP' refers to itself; allowed: a value
# SPDX-License-Identifier: Apache-2.0
TP=$PP
PP=$TP
--micro-batch-size 1 --tensor-model-parallel-size $TP
