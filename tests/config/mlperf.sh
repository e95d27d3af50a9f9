# SPDX-License-Identifier: Apache-2.0
source $(dirname ${BASH_SOURCE[0]})/config_common.sh

export MINIBS=8
export TENSOR_MODEL_PARALLEL=2 PIPELINE_MODEL_PARALLEL=2
export INTERLEAVED_PIPELINE="3"
: "${CONTEXT_PARALLEL:=1}"
export MICRO_BATCH_SIZE=${SAMPLES:-1} # of a replica
export SEQ_PARALLEL=True USE_DIST_OPTIMIZER=True
export OVERLAP_GRAD_REDUCE='True'
export TP_COMM_OVERLAP=True

export DGXNNODES=1
export DGXNGPU=8
export WALLTIME=$((5 + ${NEXP:-1} * 10))

if [[ "${NO_CKPT:-0}" -eq 1 ]]; then
    export MINIBS=1
fi
