# expect: 3:22: unknown argument '--fp8-fromat'; did you mean '--fp8-format'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --fp8-fromat hybrid
