# expect: 3:55: unknown recipe of fp8 'tensorwize'; did you mean 'tensorwise'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --fp8-format hybrid --fp8-recipe tensorwize
