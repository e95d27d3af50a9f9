#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
TP=2
GPT_ARGS=(
  --num-layers 12 --hidden-size 768 --seq-length 1024
  --micro-batch-size 1 --global-batch-size 32
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2
  --num-layers-per-virtual-pipeline-stage 3 --sequence-parallel
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
  --bf16 --recompute-granularity selective --tp-comm-overlap
)
torchrun --nproc-per-node 8 --nnodes 1 pretrain_gpt.py "${GPT_ARGS[@]}"
