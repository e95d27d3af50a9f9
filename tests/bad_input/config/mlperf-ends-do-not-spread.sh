# expect: 4:15: 14 layers, as ASYM_PP_EMBED and ASYM_PP_LOSS count them, do not spread evenly over 4 stages; nearest that do: 2 or 7 stages
# SPDX-License-Identifier: Apache-2.0
export MINIBS=8 PP=4 ASYM_PP_LOSS=True
ASYM_PP_EMBED=True
