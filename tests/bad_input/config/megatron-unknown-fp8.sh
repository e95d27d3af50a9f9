# expect: 3:35: unknown format of fp8 'hybird'; did you mean 'hybrid'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --fp8-format hybird
