# SPDX-License-Identifier: Apache-2.0
torchrun --nproc-per-node 8 pretrain_gpt.py \
    --tensor-model-parallel-size 8 --sequence-parallel --expert-tensor-parallel-size 8 \
    --micro-batch-size 1 --global-batch-size 8 --bf16 --use-distributed-optimizer \
    --num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall \
    --moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity --moe-token-drop-policy probs
