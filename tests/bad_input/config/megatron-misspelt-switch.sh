# expect: 3:22: unknown argument '--use-distributed-optimiser'; did you mean '--use-distributed-optimizer'?
# SPDX-License-Identifier: Apache-2.0
--micro-batch-size 1 --use-distributed-optimiser
