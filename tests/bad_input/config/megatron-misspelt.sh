# expect: 3:22: unknown argument '--tensor-model-paralel-size'; did you mean '--tensor-model-parallel-size'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --tensor-model-paralel-size 8
