# expect: 3:1: unknown argument '--microbatch-size'; did you mean '--micro-batch-size'?
# SPDX-License-Identifier: Apache-2.0
--microbatch-size 1 --tensor-model-parallel-size 2
