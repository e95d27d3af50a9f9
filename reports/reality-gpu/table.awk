# The table of all runs from the rows that `run` prints.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = ","; print "| run | measured | predicted | error |"; print "|---|---|---|---|" }
NR > 1 { printf "| %s | %.1f ms | %.1f ms | %.2f %% |\n", $1, 1000 * $4, 1000 * $5, 100 * $6 }
