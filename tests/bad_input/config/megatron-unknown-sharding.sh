# expect: 3:76: unknown sharding strategy 'optim_grad'; did you mean 'optim_grads'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grad
