# expect: 4:20: unknown variable 'SEQ_PARALEL'; did you mean 'SEQ_PARALLEL'?
# SPDX-License-Identifier: Apache-2.0
export MINIBS=8 TP=2
export SEQ_PARALEL=False
