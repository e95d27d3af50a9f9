# expect: 3:21: 'FP8' is '7'; allowed: True, False, 1, 0
# SPDX-License-Identifier: Apache-2.0
export MINIBS=1 FP8=7
