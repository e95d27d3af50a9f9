# expect: 4:15: 'MINIBS' is '$(( 8 * SAMPLES ))', which only a shell can tell; allowed: a number of samples
# SPDX-License-Identifier: Apache-2.0
export TP=8
export MINIBS=$(( 8 * SAMPLES ))
