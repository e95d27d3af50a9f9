# expect: 3:34: unknown optimizer 'adamx'; did you mean 'adam'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --optimizer adamx
